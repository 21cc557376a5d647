"""A large workspace is watched: what has not changed is not looked at, and nothing that has changed is missed."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from checkpoints.workbench import Bench
from interpreter.workspace import SnapshotLimits, tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are watches on Linux only")


@pytest.fixture
def watched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A workspace that is watched although it is small."""
    monkeypatch.setattr(tree, "WATCH_FROM", 0)
    for number in range(30):
        os.utime(bench.write(f"d{number % 3}/e/{number}", f"first {number}"), (1, 1))
    time.sleep(0.05)
    bench.block(lambda: None)
    assert bench.record.snapshot.tree._watch is not None
    return bench


def changed(bench: Bench, *paths: str) -> bool:
    """Whether a block that rewrites these files is seen to change exactly them, and is undone."""
    texts = [bench.read(path) for path in paths]
    changes = bench.block(lambda: [bench.write(path, "changed by a block") for path in paths])
    bench.record.undo()
    return [each.path for each in changes.listed] == sorted(paths) and texts == [bench.read(path) for path in paths]


def test_only_what_has_changed_is_looked_at(watched: Bench) -> None:
    opened: list[str] = []
    listening = [True]

    def hear(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and listening and isinstance(args[0], str) and not os.path.isabs(args[0]):
            opened.append(args[0])

    sys.addaudithook(hear)
    watched.record.before(1)
    watched.record.after(1)
    assert set(opened) == {"."}
    (watched.root / "d1" / "e" / "4").write_text("second")
    opened.clear()
    watched.record.before(2)
    assert [name for name in opened if name != "."] == ["4"]
    listening.clear()


def test_folders_that_are_made_moved_replaced_and_deleted(watched: Bench) -> None:
    root = watched.root

    def act() -> None:
        (root / "d0").rename(root / "d1" / "moved")
        watched.write("d1/moved/e/0", "second")
        shutil.rmtree(root / "d2")
        watched.write("d2/e/new", "new")

    watched.block(act)
    assert changed(watched, "d1/moved/e/0", "d1/moved/e/3", "d2/e/new")
    watched.record.undo()
    assert watched.read("d0/e/0") == "first 0" and watched.read("d2/e/2") == "first 2"
    assert changed(watched, "d0/e/0", "d2/e/2", "d1/e/1")


def test_the_workspace_is_replaced(watched: Bench) -> None:
    watched.root.rename(watched.root.with_name("old"))
    shutil.copytree(watched.root.with_name("old"), watched.root)
    assert changed(watched, "d0/e/0", "d1/e/1")


def test_a_file_that_is_mapped_into_memory(watched: Bench) -> None:
    with (watched.root / "d0" / "e" / "0").open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    watched.block(lambda: None)
    time.sleep(0.05)
    changes = watched.block(lambda: memory.write(b"X"))
    assert [each.path for each in changes.listed] == ["d0/e/0"]
    memory.close()


def test_a_file_with_two_names(watched: Bench) -> None:
    os.link(watched.root / "d0" / "e" / "0", watched.root / "second")
    watched.block(lambda: None)

    def act() -> None:
        with (watched.root / "second").open("a") as file:
            file.write("more")

    assert [each.path for each in watched.block(act).listed] == ["d0/e/0", "second"]
    watched.record.undo()
    assert watched.read("d0/e/0") == "first 0"


def test_more_events_than_the_kernel_holds(watched: Bench) -> None:
    def act() -> None:
        watched.write("d0/e/0", "second")
        for number in range(6_000):
            watched.write(f"many/{number}", "")

    assert len(watched.block(act).listed) == 6_002
    assert changed(watched, "d0/e/0", "many/5999")


def test_fewer_watches_than_folders(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "WATCH_FROM", 0)
    for number in range(30):
        bench.write(f"d{number % 10}/{number}", "first")
    bench.block(lambda: None)
    watching = bench.record.snapshot.tree._watch
    assert watching is not None
    for path in [f"d{number}" for number in range(5, 10)]:
        watching.remove(path)
    watching._most = 6
    bench.record.snapshot.tree._uncertain = True
    bench.block(lambda: None)
    assert len(bench.record.snapshot.tree._unwatched) == 5
    assert changed(bench, *(f"d{number}/{number}" for number in range(10)))


def test_network_file_systems_are_scanned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    monkeypatch.setattr(tree, "_LOCAL", set())
    assert not tree.can_watch(device)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_block_in_20_gigabytes_and_200_000_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path.resolve(), SnapshotLimits())
    for number in range(2_000):
        folder = bench.root / f"part{number // 100}" / f"{number}"
        folder.mkdir(parents=True)
        for name in range(100):
            with (folder / f"{name}.bin").open("wb") as file:
                file.truncate(100_000)
    bench.write("analysis.py", "first")
    bench.record.prepare()
    costs = []
    for _ in range(5):
        began = time.perf_counter()
        bench.block(lambda: None)
        costs.append(time.perf_counter() - began)
    assert min(costs) <= 0.060
    assert changed(bench, "analysis.py")
