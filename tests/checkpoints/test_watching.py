"""Large workspaces are watched: unchanged files are not read, and no change is missed."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from interpreter.workspace import SnapshotLimits, tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="folders are only watched on Linux")


@pytest.fixture
def watched(workspace: RecordedWorkspace, monkeypatch: pytest.MonkeyPatch) -> RecordedWorkspace:
    """A small workspace that is watched nevertheless."""
    monkeypatch.setattr(tree, "WATCH_FROM", 0)
    for number in range(30):
        os.utime(workspace.write(f"d{number % 3}/e/{number}", f"first {number}"), (1, 1))
    time.sleep(0.05)
    workspace.block(lambda: None)
    assert workspace.record.snapshot.tree._watch is not None
    return workspace


def rewrite_is_detected(workspace: RecordedWorkspace, *paths: str) -> bool:
    """Whether a block that rewrites these files is recorded with exactly these changes, and can be undone."""
    texts = [workspace.read(path) for path in paths]
    changes = workspace.block(lambda: [workspace.write(path, "changed by a block") for path in paths])
    workspace.record.undo()
    return [each.path for each in changes.listed] == sorted(paths) and texts == [workspace.read(path) for path in paths]


def test_only_changed_files_are_read(watched: RecordedWorkspace) -> None:
    opened: list[str] = []
    listening = [True]

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and listening and isinstance(args[0], str) and not os.path.isabs(args[0]):
            opened.append(args[0])

    sys.addaudithook(audit)
    watched.record.before(1)
    watched.record.after(1)
    assert set(opened) == {"."}
    (watched.root / "d1" / "e" / "4").write_text("second")
    opened.clear()
    watched.record.before(2)
    assert [name for name in opened if name != "."] == ["4"]
    listening.clear()


def test_created_moved_replaced_and_deleted_folders_are_tracked(watched: RecordedWorkspace) -> None:
    root = watched.root

    def act() -> None:
        (root / "d0").rename(root / "d1" / "moved")
        watched.write("d1/moved/e/0", "second")
        shutil.rmtree(root / "d2")
        watched.write("d2/e/new", "new")

    watched.block(act)
    assert rewrite_is_detected(watched, "d1/moved/e/0", "d1/moved/e/3", "d2/e/new")
    watched.record.undo()
    assert watched.read("d0/e/0") == "first 0" and watched.read("d2/e/2") == "first 2"
    assert rewrite_is_detected(watched, "d0/e/0", "d2/e/2", "d1/e/1")


def test_a_replaced_workspace_is_tracked(watched: RecordedWorkspace) -> None:
    watched.root.rename(watched.root.with_name("old"))
    shutil.copytree(watched.root.with_name("old"), watched.root)
    assert rewrite_is_detected(watched, "d0/e/0", "d1/e/1")


def test_writes_to_memory_mapped_files_are_detected(watched: RecordedWorkspace) -> None:
    with (watched.root / "d0" / "e" / "0").open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    watched.block(lambda: None)
    time.sleep(0.05)
    changes = watched.block(lambda: memory.write(b"X"))
    assert [each.path for each in changes.listed] == ["d0/e/0"]
    memory.close()


def test_writes_through_a_hard_link_are_detected(watched: RecordedWorkspace) -> None:
    os.link(watched.root / "d0" / "e" / "0", watched.root / "second")
    watched.block(lambda: None)

    def act() -> None:
        with (watched.root / "second").open("a") as file:
            file.write("more")

    assert [each.path for each in watched.block(act).listed] == ["d0/e/0", "second"]
    watched.record.undo()
    assert watched.read("d0/e/0") == "first 0"


def test_an_overflow_of_kernel_events_loses_no_change(watched: RecordedWorkspace) -> None:
    def act() -> None:
        watched.write("d0/e/0", "second")
        for number in range(6_000):
            watched.write(f"many/{number}", "")

    assert len(watched.block(act).listed) == 6_002
    assert rewrite_is_detected(watched, "d0/e/0", "many/5999")


def test_folders_without_a_watch_are_scanned(workspace: RecordedWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "WATCH_FROM", 0)
    for number in range(30):
        workspace.write(f"d{number % 10}/{number}", "first")
    workspace.block(lambda: None)
    watching = workspace.record.snapshot.tree._watch
    assert watching is not None
    for path in [f"d{number}" for number in range(5, 10)]:
        watching.remove(path)
    watching._most = 6
    workspace.record.snapshot.tree._uncertain = True
    workspace.block(lambda: None)
    assert len(workspace.record.snapshot.tree._unwatched) == 5
    assert rewrite_is_detected(workspace, *(f"d{number}/{number}" for number in range(10)))


def test_network_file_systems_are_scanned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    monkeypatch.setattr(tree, "_LOCAL", set())
    assert not tree.can_watch(device)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_block_in_a_huge_workspace_adds_little_delay(tmp_path: Path) -> None:
    workspace = RecordedWorkspace(tmp_path.resolve(), SnapshotLimits())
    for number in range(2_000):
        folder = workspace.root / f"part{number // 100}" / f"{number}"
        folder.mkdir(parents=True)
        for name in range(100):
            with (folder / f"{name}.bin").open("wb") as file:
                file.truncate(100_000)
    workspace.write("analysis.py", "first")
    workspace.record.prepare()
    costs = []
    for _ in range(5):
        began = time.perf_counter()
        workspace.block(lambda: None)
        costs.append(time.perf_counter() - began)
    assert min(costs) <= 0.060
    assert rewrite_is_detected(workspace, "analysis.py")
