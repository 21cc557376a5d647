"""Full disks, deaths in the middle, files that vanish or may not be read: nothing is lost, and what is not done is said."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpoints.trees import Shape, shape
from checkpoints.workbench import Bench
from interpreter.workspace import FileRecord
from interpreter.workspace.restore import PREFIX


def in_child(act: Callable[[], object]) -> int:
    """Run something in a process of its own, which then just ends; gives how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(number: int, act: Callable[[], object]) -> Callable[[], object]:
    """The same, but killed when it is about to touch the disk for the so-many-th time."""
    left = [number]
    touching = {
        "open",
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.chmod",
        "os.utime",
        "os.symlink",
        "os.link",
    }

    def hear(event: str, args: tuple[object, ...]) -> None:
        if event in touching:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        sys.addaudithook(hear)
        act()

    return run


def cut_off(bench: Bench) -> None:
    """Begin an undo that does something and not all."""

    def seen() -> Shape:
        return {path: told for path, told in shape(bench.root).items() if PREFIX.encode() not in path}

    before, number = seen(), 0
    while seen() == before or not bench.opened().unfinished:
        number += 3
        assert in_child(killed_at(number, lambda: bench.opened().undo())) == -signal.SIGKILL


def busy(bench: Bench) -> None:
    """A block that does something of everything."""
    (bench.root / "deleted").unlink()
    bench.write("changed", "2")
    (bench.root / "renamed").rename(bench.root / "elsewhere")
    shutil.rmtree(bench.root / "folder")
    bench.write("folder", "a file now")
    bench.write("new/deep/file", "1")
    (bench.root / "file").unlink()
    bench.write("file/inside", "1")
    (bench.root / "link").unlink()
    (bench.root / "link").symlink_to("changed")
    (bench.root / "empty").rmdir()


def prepared(bench: Bench) -> None:
    for name in ("deleted", "changed", "renamed", "folder/a", "folder/b/c", "file"):
        bench.write(name, f"what {name} held")
    (bench.root / "link").symlink_to("nowhere")
    (bench.root / "empty").mkdir()


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_killed_at_every_moment_of_an_undo(bench: Bench, step: int, tmp_path: Path) -> None:
    prepared(bench)
    before = shape(bench.root)
    bench.block(lambda: busy(bench))
    after = shape(bench.root)
    for number in range(1, 1000, step):
        ended = in_child(killed_at(number, lambda: bench.opened().undo()))
        record = bench.opened()
        if record.unfinished:
            report = record.finish()
            assert report is not None and not report.kept and not report.failed
        if record.blocks:
            assert shape(bench.root) == after
            record.undo()
        assert shape(bench.root) == before
        record.redo()
        assert shape(bench.root) == after
        if ended == 0:
            break
    assert number > 20 and ended == 0


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_killed_at_every_moment_of_a_block(bench: Bench, step: int) -> None:
    prepared(bench)
    before = shape(bench.root)
    spare = bench.root.parent / "spare"
    shutil.copytree(bench.root, spare, symlinks=True)

    def act() -> None:
        bench.block(lambda: busy(bench))

    for number in range(1, 1000, step):
        ended = in_child(killed_at(number, act))
        bench.record = record = bench.opened()
        record.prepare()
        if record.blocks:
            report = record.undo()
            assert not report.kept and not report.failed
            assert shape(bench.root) == before
        elif shape(bench.root) != before:
            raise AssertionError("the block ran and nobody knows")
        if ended == 0:
            break
        for folder in (bench.root, bench.store):
            shutil.rmtree(folder)
        shutil.copytree(spare, bench.root, symlinks=True)
        bench.record = bench.opened()
    assert number > 20 and ended == 0


def test_an_undo_that_was_cut_off_is_finished_before_the_next_block(bench: Bench) -> None:
    prepared(bench)
    before = shape(bench.root)
    bench.block(lambda: busy(bench))
    cut_off(bench)
    record = bench.opened()
    assert record.unfinished and shape(bench.root) != before
    record.before(2)
    assert not record.unfinished and shape(bench.root) == before and record.blocks == ()


def test_what_somebody_changed_while_an_undo_lay_half_done_stays(bench: Bench) -> None:
    for number in range(10):
        bench.write(str(number), "0")
    bench.block(lambda: [bench.write(str(number), "1") for number in range(10)])
    cut_off(bench)
    assert {bench.read(str(number)) for number in range(10)} == {"0", "1"}
    bench.write("9", "mine")
    report = bench.opened().finish()
    assert report is not None and [kept.path for kept in report.kept] == ["9"]
    assert [bench.read(str(number)) for number in range(10)] == ["0"] * 9 + ["mine"]


@pytest.mark.parametrize("tear", [b'{"event":"begin","blo', b'{"event":"begin","block":"2"}'])
def test_a_torn_ledger(bench: Bench, tear: bytes) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    with (bench.store / "files.jsonl").open("ab") as file:
        file.write(tear)
    record = bench.opened()
    record.undo()
    assert bench.read("a") == "0"
    assert bench.opened().undone == ("1",)


def test_a_damaged_copy_is_not_used(bench: Bench) -> None:
    bench.write("a", "before")
    bench.block(lambda: bench.write("a", "after"))
    pack = bench.record.store.folder / "pack"
    pack.write_bytes(pack.read_bytes().replace(b"before", b"beXore"))
    report = bench.record.undo()
    assert bench.read("a") == "after" and "damaged" in report.kept[0].why


def test_a_large_damaged_copy_is_not_used(bench: Bench) -> None:
    bench.write("a", "before" * 20_000)
    bench.block(lambda: bench.write("a", "after"))
    (image,) = [path for path in bench.record.store.folder.iterdir() if path.name != "pack"]
    image.write_text("beXore" * 20_000)
    report = bench.record.undo()
    assert bench.read("a") == "after" and "damaged" in report.kept[0].why


@pytest.mark.parametrize("tail", [b"half a head", b"\0" * 100, b"x" * 32 + b"\0\0\0\x09short"])
def test_a_torn_pack(bench: Bench, tail: bytes) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    with (bench.store / "images" / "pack").open("ab") as file:
        file.write(tail)
    bench.record = bench.opened()
    bench.block(lambda: bench.write("a", "2"))
    bench.record = bench.opened()
    bench.record.undo(bench.record.plan_undo(2))
    assert bench.read("a") == "0"


# -- full disks ----------------------------------------------------------------------------------------------------


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses to let files grow beyond this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_no_room_for_a_copy_is_said_before_the_block_runs(bench: Bench) -> None:
    bench.write("a", "small")
    bench.write("b", b"x" * 100_000)
    os.utime(bench.write("c", b"y" * 90_000), (1, 1))  # older, so it is behind it
    with largest_file(50_000):
        coverage = bench.record.before(1)
    assert [each.path for each in coverage.not_covered] == ["b", "c"] and coverage.off is None
    assert coverage.sentences == [
        "Undo doesn't cover: b (no copy could be stored: File too large), c (no space for a copy)"
    ]
    assert not [path for path in bench.record.store.folder.iterdir() if path.name.startswith("unfinished")]
    bench.record.after(1)
    assert not bench.record.before(2).not_covered


def test_no_room_for_the_ledger(bench: Bench) -> None:
    for number in range(200):
        bench.write(f"a-file-with-a-long-name-{number}", "1")
    with largest_file(4_000):
        coverage = bench.record.before(1)
        assert coverage.trouble is not None and "File too large" in coverage.sentences[-1]
        bench.write("a-file-with-a-long-name-0", "2")
        bench.record.after(1)
    bench.record.before(2)
    bench.record.after(2)
    record = bench.opened()
    assert record.blocks == ("1", "2")
    record.undo(record.plan_undo(2))
    assert bench.read("a-file-with-a-long-name-0") == "1"


def test_no_room_for_what_is_restored(bench: Bench) -> None:
    bench.write("big", b"x" * 100_000)
    bench.write("small", "1")

    def act() -> None:
        (bench.root / "big").unlink()
        bench.write("small", "2")

    bench.block(act)
    with largest_file(50_000):
        report = bench.record.undo()
    assert [(each.path, each.why) for each in report.failed] == [("big", "File too large")]
    assert os.listdir(bench.root) == ["small"] and bench.read("small") == "1"
    again = bench.opened().finish()
    assert again is not None and again.restored == ("big",) and bench.read("big") == "x" * 100_000


FULL_DISK = """
import os, sys
from pathlib import Path
from interpreter.workspace import FileRecord
store, work = Path(sys.argv[1]), Path(sys.argv[2])
for number in range(40):
    (work / f"{number:02}").write_bytes(os.urandom(50_000))
record = FileRecord(work, store / "files")
coverage = record.before(1)
(work / "39").unlink()
record.after(1)
report = record.undo()
assert (work / "39").stat().st_size == 50_000
print(len(coverage.not_covered), next(iter(coverage.not_covered)).why)
"""


@pytest.mark.needs("unshare", "mount")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "work").mkdir()
    mounting = 'mount -t tmpfs -o size=1m none "$1" && exec "$0" -c "$3" "$1" "$2"'
    words = [sys.executable, str(tmp_path / "store"), str(tmp_path / "work"), FULL_DISK]
    try_out = subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True)
    if try_out.returncode:
        pytest.skip("this machine lets nobody mount")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mounting, *words], check=True, capture_output=True, text=True)
    count, _, why = done.stdout.strip().partition(" ")
    assert 15 < int(count) < 35 and why == "no copy could be stored: No space left on device"


# -- things that move while we look ----------------------------------------------------------------------------------


def test_files_that_come_and_go_during_the_look(bench: Bench) -> None:
    bench.write("still", "1")
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            bench.write(f"d/{number % 20}/a", "x" * number)
            shutil.rmtree(bench.root / "d" / str((number + 10) % 20), ignore_errors=True)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for number in range(60):
            assert bench.record.before(number).off is None
            bench.record.after(number)
    finally:
        stop.set()
        thread.join()
    bench.record.prepare()
    changes = bench.block(lambda: bench.write("still", "2"))
    assert [change.path for change in changes.listed] == ["still"]


def test_ctrl_c_in_the_middle_of_a_look(bench: Bench) -> None:
    for number in range(20):
        bench.write(str(number), "0")

    def act() -> None:
        left = [10]

        def hear(event: str, args: tuple[object, ...]) -> None:
            if event == "open" and str(args[0]).isdigit():  # a file of the workspace
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt

        bench.record.before(1)
        for number in range(20):
            bench.write(str(number), "1")
        sys.addaudithook(hear)
        with pytest.raises(KeyboardInterrupt):
            bench.record.after(1)
        assert len(bench.record.after(1).listed) == 20
        bench.record.undo()
        assert bench.read("19") == "0"

    assert in_child(act) == 0


# -- what may not be read ----------------------------------------------------------------------------------------------


def as_somebody(act: Callable[[Path], object]) -> None:
    """Run it as somebody who is not root, in a folder of their own; root may do everything."""
    folder = Path(tempfile.mkdtemp())
    somebody = 65534

    def run() -> None:
        if os.getuid() == 0:
            os.setgid(somebody)
            os.setuid(somebody)
        act(folder)

    try:
        if os.getuid() == 0:
            os.chown(folder, somebody, somebody)
        assert in_child(run) == 0
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
        shutil.rmtree(folder)


def test_a_file_that_may_not_be_read() -> None:
    def act(folder: Path) -> None:
        bench = Bench(folder.resolve())
        bench.write("secret", "1").chmod(0)
        assert bench.record.before(1).sentences == ["Undo doesn't cover: secret (may not be read)"]
        bench.record.after(1)

    as_somebody(act)


def test_a_block_that_closes_files_and_folders() -> None:
    def act(folder: Path) -> None:
        bench = Bench(folder.resolve())
        bench.write("a", "1")
        bench.write("d/b", "1")
        bench.write("fixed/c", "1")
        (bench.root / "fixed").chmod(0o500)
        before = shape(bench.root)

        def close() -> None:
            (bench.root / "a").chmod(0)
            (bench.root / "d").chmod(0)
            (bench.root / "fixed").chmod(0o700)
            (bench.root / "fixed" / "c").unlink()
            (bench.root / "fixed").chmod(0o500)

        changes = bench.block(close)
        assert {change.path: change.what for change in changes.listed} == {
            "a": "mode",
            "d": "mode",
            "fixed/c": "deleted",
        }
        assert [str(each) for each in changes.not_covered] == ["d/ (may not be read)"]
        report = bench.record.undo()
        assert not report.kept and not report.failed and shape(bench.root) == before

    as_somebody(act)


def test_a_store_that_cannot_be_written() -> None:
    def act(folder: Path) -> None:
        (folder / "work").mkdir()
        (folder / "work" / "a").write_text("1")
        (folder / "closed").mkdir(mode=0o500)
        coverage = FileRecord(folder / "work", folder / "closed" / "store").before(1)
        assert coverage.sentences[0] == "Undo doesn't cover: a (no copy could be stored: Permission denied)"
        assert "Permission denied" in coverage.sentences[1]

    as_somebody(act)
