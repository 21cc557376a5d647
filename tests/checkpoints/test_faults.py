"""Full disks, crashes, vanishing and unreadable files: nothing is lost, and gaps are reported."""

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

from checkpoints.recorded_workspace import RecordedWorkspace
from checkpoints.trees import Shape, shape
from interpreter.workspace import FileRecord
from interpreter.workspace.restore import PREFIX


def in_child(act: Callable[[], object]) -> int:
    """Run a function in a forked process, and return its exit code."""
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
    """The same function, killed before its nth disk access."""
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

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event in touching:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        sys.addaudithook(audit)
        act()

    return run


def start_partial_undo(workspace: RecordedWorkspace) -> None:
    """Run an undo that is killed halfway."""

    def seen() -> Shape:
        return {path: entry for path, entry in shape(workspace.root).items() if PREFIX.encode() not in path}

    before, number = seen(), 0
    while seen() == before or not workspace.opened().unfinished:
        number += 3
        assert in_child(killed_at(number, lambda: workspace.opened().undo())) == -signal.SIGKILL


def change_everything(workspace: RecordedWorkspace) -> None:
    """A block with every kind of change."""
    (workspace.root / "deleted").unlink()
    workspace.write("changed", "2")
    (workspace.root / "renamed").rename(workspace.root / "elsewhere")
    shutil.rmtree(workspace.root / "folder")
    workspace.write("folder", "a file now")
    workspace.write("new/deep/file", "1")
    (workspace.root / "file").unlink()
    workspace.write("file/inside", "1")
    (workspace.root / "link").unlink()
    (workspace.root / "link").symlink_to("changed")
    (workspace.root / "empty").rmdir()


def create_files(workspace: RecordedWorkspace) -> None:
    for name in ("deleted", "changed", "renamed", "folder/a", "folder/b/c", "file"):
        workspace.write(name, f"what {name} held")
    (workspace.root / "link").symlink_to("nowhere")
    (workspace.root / "empty").mkdir()


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_an_undo_killed_at_any_moment_can_be_finished(workspace: RecordedWorkspace, step: int, tmp_path: Path) -> None:
    create_files(workspace)
    before = shape(workspace.root)
    workspace.block(lambda: change_everything(workspace))
    after = shape(workspace.root)
    for number in range(1, 1000, step):
        ended = in_child(killed_at(number, lambda: workspace.opened().undo()))
        record = workspace.opened()
        if record.unfinished:
            report = record.finish()
            assert report is not None and not report.kept and not report.failed
        if record.blocks:
            assert shape(workspace.root) == after
            record.undo()
        assert shape(workspace.root) == before
        record.redo()
        assert shape(workspace.root) == after
        if ended == 0:
            break
    assert number > 20 and ended == 0


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_a_block_killed_at_any_moment_can_be_undone(workspace: RecordedWorkspace, step: int) -> None:
    create_files(workspace)
    before = shape(workspace.root)
    spare = workspace.root.parent / "spare"
    shutil.copytree(workspace.root, spare, symlinks=True)

    def act() -> None:
        workspace.block(lambda: change_everything(workspace))

    for number in range(1, 1000, step):
        ended = in_child(killed_at(number, act))
        workspace.record = record = workspace.opened()
        record.prepare()
        if record.blocks:
            report = record.undo()
            assert not report.kept and not report.failed
            assert shape(workspace.root) == before
        elif shape(workspace.root) != before:
            raise AssertionError("the block ran but was not recorded")
        if ended == 0:
            break
        for folder in (workspace.root, workspace.store):
            shutil.rmtree(folder)
        shutil.copytree(spare, workspace.root, symlinks=True)
        workspace.record = workspace.opened()
    assert number > 20 and ended == 0


def test_an_interrupted_undo_is_finished_before_the_next_block(workspace: RecordedWorkspace) -> None:
    create_files(workspace)
    before = shape(workspace.root)
    workspace.block(lambda: change_everything(workspace))
    start_partial_undo(workspace)
    record = workspace.opened()
    assert record.unfinished and shape(workspace.root) != before
    record.before(2)
    assert not record.unfinished and shape(workspace.root) == before and record.blocks == ()


def test_files_changed_during_an_interrupted_undo_are_kept(workspace: RecordedWorkspace) -> None:
    for number in range(10):
        workspace.write(str(number), "0")
    workspace.block(lambda: [workspace.write(str(number), "1") for number in range(10)])
    start_partial_undo(workspace)
    assert {workspace.read(str(number)) for number in range(10)} == {"0", "1"}
    workspace.write("9", "mine")
    report = workspace.opened().finish()
    assert report is not None and [kept.path for kept in report.kept] == ["9"]
    assert [workspace.read(str(number)) for number in range(10)] == ["0"] * 9 + ["mine"]


@pytest.mark.parametrize("tear", [b'{"event":"begin","blo', b'{"event":"begin","block":"2"}'])
def test_undo_works_with_a_torn_ledger(workspace: RecordedWorkspace, tear: bytes) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    with (workspace.store / "files.jsonl").open("ab") as file:
        file.write(tear)
    record = workspace.opened()
    record.undo()
    assert workspace.read("a") == "0"
    assert workspace.opened().undone == ("1",)


def test_a_damaged_copy_is_not_used(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "before")
    workspace.block(lambda: workspace.write("a", "after"))
    pack = workspace.record.store.folder / "pack"
    pack.write_bytes(pack.read_bytes().replace(b"before", b"beXore"))
    report = workspace.record.undo()
    assert workspace.read("a") == "after" and "damaged" in report.kept[0].why


def test_a_large_damaged_copy_is_not_used(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "before" * 20_000)
    workspace.block(lambda: workspace.write("a", "after"))
    (image,) = [path for path in workspace.record.store.folder.iterdir() if path.name != "pack"]
    image.write_text("beXore" * 20_000)
    report = workspace.record.undo()
    assert workspace.read("a") == "after" and "damaged" in report.kept[0].why


@pytest.mark.parametrize("tail", [b"half a head", b"\0" * 100, b"x" * 32 + b"\0\0\0\x09short"])
def test_undo_works_with_a_torn_pack(workspace: RecordedWorkspace, tail: bytes) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    with (workspace.store / "images" / "pack").open("ab") as file:
        file.write(tail)
    workspace.record = workspace.opened()
    workspace.block(lambda: workspace.write("a", "2"))
    workspace.record = workspace.opened()
    workspace.record.undo(workspace.record.plan_undo(2))
    assert workspace.read("a") == "0"


# -- full disks ----------------------------------------------------------------------------------------------------


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file can grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_missing_disk_space_is_reported_before_the_block_runs(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "small")
    workspace.write("b", b"x" * 100_000)
    os.utime(workspace.write("c", b"y" * 90_000), (1, 1))  # older, so it comes second
    with file_size_limit(50_000):
        coverage = workspace.record.before(1)
    assert [each.path for each in coverage.not_covered] == ["b", "c"] and coverage.off is None
    assert coverage.sentences == [
        "Undo doesn't cover: b (no copy could be stored: File too large), c (no space for a copy)"
    ]
    assert not [path for path in workspace.record.store.folder.iterdir() if path.name.startswith("unfinished")]
    workspace.record.after(1)
    assert not workspace.record.before(2).not_covered


def test_undo_works_after_a_failed_ledger_write(workspace: RecordedWorkspace) -> None:
    for number in range(200):
        workspace.write(f"a-file-with-a-long-name-{number}", "1")
    with file_size_limit(4_000):
        coverage = workspace.record.before(1)
        assert coverage.trouble is not None and "File too large" in coverage.sentences[-1]
        workspace.write("a-file-with-a-long-name-0", "2")
        workspace.record.after(1)
    workspace.record.before(2)
    workspace.record.after(2)
    record = workspace.opened()
    assert record.blocks == ("1", "2")
    record.undo(record.plan_undo(2))
    assert workspace.read("a-file-with-a-long-name-0") == "1"


def test_a_failed_restore_can_be_finished_later(workspace: RecordedWorkspace) -> None:
    workspace.write("big", b"x" * 100_000)
    workspace.write("small", "1")

    def act() -> None:
        (workspace.root / "big").unlink()
        workspace.write("small", "2")

    workspace.block(act)
    with file_size_limit(50_000):
        report = workspace.record.undo()
    assert [(each.path, each.why) for each in report.failed] == [("big", "File too large")]
    assert os.listdir(workspace.root) == ["small"] and workspace.read("small") == "1"
    again = workspace.opened().finish()
    assert again is not None and again.restored == ("big",) and workspace.read("big") == "x" * 100_000


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
def test_undo_covers_what_fits_on_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "work").mkdir()
    mounting = 'mount -t tmpfs -o size=1m none "$1" && exec "$0" -c "$3" "$1" "$2"'
    words = [sys.executable, str(tmp_path / "store"), str(tmp_path / "work"), FULL_DISK]
    try_out = subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True)
    if try_out.returncode:
        pytest.skip("this machine does not allow mounting")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mounting, *words], check=True, capture_output=True, text=True)
    count, _, why = done.stdout.strip().partition(" ")
    assert 15 < int(count) < 35 and why == "no copy could be stored: No space left on device"


# -- concurrent changes ----------------------------------------------------------------------------------------------


def test_files_may_appear_and_vanish_during_a_scan(workspace: RecordedWorkspace) -> None:
    workspace.write("still", "1")
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            workspace.write(f"d/{number % 20}/a", "x" * number)
            shutil.rmtree(workspace.root / "d" / str((number + 10) % 20), ignore_errors=True)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for number in range(60):
            assert workspace.record.before(number).off is None
            workspace.record.after(number)
    finally:
        stop.set()
        thread.join()
    workspace.record.prepare()
    changes = workspace.block(lambda: workspace.write("still", "2"))
    assert [change.path for change in changes.listed] == ["still"]


def test_a_scan_interrupted_by_ctrl_c_can_be_repeated(workspace: RecordedWorkspace) -> None:
    for number in range(20):
        workspace.write(str(number), "0")

    def act() -> None:
        left = [10]

        def audit(event: str, args: tuple[object, ...]) -> None:
            if event == "open" and str(args[0]).isdigit():  # a file of the workspace
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt

        workspace.record.before(1)
        for number in range(20):
            workspace.write(str(number), "1")
        sys.addaudithook(audit)
        with pytest.raises(KeyboardInterrupt):
            workspace.record.after(1)
        assert len(workspace.record.after(1).listed) == 20
        workspace.record.undo()
        assert workspace.read("19") == "0"

    assert in_child(act) == 0


# -- permissions -------------------------------------------------------------------------------------------------------


def as_unprivileged_user(act: Callable[[Path], object]) -> None:
    """Run a function as an unprivileged user in their own folder; root could read everything."""
    folder = Path(tempfile.mkdtemp())
    uid = 65534

    def run() -> None:
        if os.getuid() == 0:
            os.setgid(uid)
            os.setuid(uid)
        act(folder)

    try:
        if os.getuid() == 0:
            os.chown(folder, uid, uid)
        assert in_child(run) == 0
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
        shutil.rmtree(folder)


def test_unreadable_files_are_reported() -> None:
    def act(folder: Path) -> None:
        workspace = RecordedWorkspace(folder.resolve())
        workspace.write("secret", "1").chmod(0)
        assert workspace.record.before(1).sentences == ["Undo doesn't cover: secret (may not be read)"]
        workspace.record.after(1)

    as_unprivileged_user(act)


def test_undo_restores_files_and_folders_made_inaccessible() -> None:
    def act(folder: Path) -> None:
        workspace = RecordedWorkspace(folder.resolve())
        workspace.write("a", "1")
        workspace.write("d/b", "1")
        workspace.write("fixed/c", "1")
        (workspace.root / "fixed").chmod(0o500)
        before = shape(workspace.root)

        def close() -> None:
            (workspace.root / "a").chmod(0)
            (workspace.root / "d").chmod(0)
            (workspace.root / "fixed").chmod(0o700)
            (workspace.root / "fixed" / "c").unlink()
            (workspace.root / "fixed").chmod(0o500)

        changes = workspace.block(close)
        assert {change.path: change.what for change in changes.listed} == {
            "a": "mode",
            "d": "mode",
            "fixed/c": "deleted",
        }
        assert [str(each) for each in changes.not_covered] == ["d/ (may not be read)"]
        report = workspace.record.undo()
        assert not report.kept and not report.failed and shape(workspace.root) == before

    as_unprivileged_user(act)


def test_an_unwritable_store_is_reported() -> None:
    def act(folder: Path) -> None:
        (folder / "work").mkdir()
        (folder / "work" / "a").write_text("1")
        (folder / "closed").mkdir(mode=0o500)
        coverage = FileRecord(folder / "work", folder / "closed" / "store").before(1)
        assert coverage.sentences[0] == "Undo doesn't cover: a (no copy could be stored: Permission denied)"
        assert "Permission denied" in coverage.sentences[1]

    as_unprivileged_user(act)
