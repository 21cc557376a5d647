"""Undo restores files exactly as they were, and redo restores the changes."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from checkpoints.trees import shape
from interpreter.errors import UndoError


def test_undo_restores_content_mode_and_time(workspace: RecordedWorkspace) -> None:
    file = workspace.write("a", "before")
    file.chmod(0o750)
    os.utime(file, ns=(1, 123_456_789_012_345_678))
    before = shape(workspace.root)
    workspace.block(file.unlink)
    workspace.record.undo()
    assert shape(workspace.root) == before


def test_blocks_can_be_undone_and_redone_together_or_one_by_one(workspace: RecordedWorkspace) -> None:
    for number in range(4):
        workspace.block(lambda number=number: workspace.write("a", str(number)))  # type: ignore[misc]
    workspace.record.undo(workspace.record.plan_undo(3))
    assert (
        workspace.read("a") == "0" and workspace.record.blocks == ("1",) and workspace.record.undone == ("2", "3", "4")
    )
    workspace.record.redo()
    assert workspace.read("a") == "1"
    workspace.record.redo(workspace.record.plan_redo(until=4))
    assert workspace.read("a") == "3"
    workspace.record.undo(workspace.record.plan_undo(since=2))
    assert workspace.read("a") == "0"


def test_a_plan_lists_its_steps_without_changing_files(workspace: RecordedWorkspace) -> None:
    workspace.write("old", "1")
    workspace.write("changed", "1")

    def act() -> None:
        (workspace.root / "old").unlink()
        workspace.write("changed", "2")
        workspace.write("new", "1")
        workspace.write("program", "1")

    workspace.block(act)
    workspace.block(lambda: (workspace.root / "program").chmod(0o700))
    before = shape(workspace.root)
    plan = workspace.record.plan_undo(2)
    assert {step.path: step.verb for step in plan.steps} == {
        "old": "create",
        "changed": "restore",
        "new": "delete",
        "program": "delete",
    }
    assert [step.verb for step in workspace.record.plan_undo().steps] == ["attributes"]
    assert plan.blocks == ("2", "1") and shape(workspace.root) == before


def test_undo_and_redo_without_blocks_are_errors(workspace: RecordedWorkspace) -> None:
    for plan in (workspace.record.plan_undo, workspace.record.plan_redo):
        with pytest.raises(UndoError):
            plan()
    workspace.block(lambda: None)
    with pytest.raises(UndoError):
        workspace.record.plan_undo(2)


def test_a_new_block_clears_redo(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: workspace.write("a", "1"))
    workspace.record.undo()
    workspace.block(lambda: workspace.write("b", "1"))
    assert workspace.record.undone == ()
    with pytest.raises(UndoError):
        workspace.record.plan_redo()


def test_an_outdated_plan_is_refused(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: workspace.write("a", "1"))
    plan = workspace.record.plan_undo()
    workspace.block(lambda: workspace.write("b", "1"))
    with pytest.raises(UndoError, match="Plan it again"):
        workspace.record.undo(plan)


def test_folders_and_files_that_replace_each_other_are_restored(workspace: RecordedWorkspace) -> None:
    workspace.write("x/y/z", "deep")
    workspace.write("f", "flat")
    before = shape(workspace.root)

    def act() -> None:
        shutil.rmtree(workspace.root / "x")
        workspace.write("x", "a file now")
        (workspace.root / "f").unlink()
        workspace.write("f/g", "a folder now")

    workspace.block(act)
    after = shape(workspace.root)
    workspace.record.undo()
    assert shape(workspace.root) == before
    workspace.record.redo()
    assert shape(workspace.root) == after


def test_a_deleted_workspace_is_restored(workspace: RecordedWorkspace) -> None:
    workspace.write("d/a", "1")
    before = shape(workspace.root)
    workspace.block(lambda: shutil.rmtree(workspace.root))
    workspace.record.undo()
    assert shape(workspace.root) == before


def test_undoing_a_rename_keeps_the_inode(workspace: RecordedWorkspace) -> None:
    inode = workspace.write("a", "1").stat().st_ino
    workspace.block(lambda: (workspace.root / "a").rename(workspace.root / "b"))
    workspace.record.undo()
    assert (workspace.root / "a").stat().st_ino == inode


def test_hard_links_stay_linked(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "1")
    os.link(workspace.root / "a", workspace.root / "b")
    workspace.write("c", "1")
    os.link(workspace.root / "c", workspace.root / "d")

    def act() -> None:
        workspace.write("a", "2")  # through both names
        (workspace.root / "d").unlink()

    workspace.block(act)
    workspace.record.undo()
    for one, other in ("ab", "cd"):
        assert workspace.read(one) == workspace.read(other) == "1"
        assert (workspace.root / one).samefile(workspace.root / other)


def test_a_reused_inode_makes_no_hard_link(workspace: RecordedWorkspace) -> None:
    """A deleted file's inode was reused by another file, which was deleted too: they were never the same file."""
    for name, time in (("a", 1_000_000_000), ("b", 2_000_000_000)):
        os.utime(workspace.write(name, "the same"), ns=(time, time))
    before = shape(workspace.root)
    workspace.block((workspace.root / "a").unlink)
    workspace.block((workspace.root / "b").unlink)
    plan = workspace.record.plan_undo(2)
    number = (workspace.root / "..").stat().st_ino
    wants = [step.want._replace(inode=number) for step in plan.steps if step.want is not None]
    steps = tuple(replace(step, want=want) for step, want in zip(plan.steps, wants, strict=True))
    workspace.record.undo(replace(plan, steps=steps))
    assert shape(workspace.root) == before
    assert not os.path.samefile(workspace.root / "a", workspace.root / "b")


def test_a_stored_copy_is_never_a_link_to_the_live_file(workspace: RecordedWorkspace) -> None:
    file = workspace.write("a", "1")
    workspace.record.prepare()
    with file.open("r+") as live:
        live.write("2")
    assert file.stat().st_nlink == 1
    workspace.block(file.unlink)
    workspace.record.undo()
    assert workspace.read("a") == "2"


def test_names_are_case_sensitive(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "1")
    if (workspace.root / "A").exists():
        pytest.skip("this file system is not case-sensitive")
    workspace.write("A", "2")
    workspace.block(lambda: (workspace.root / "a").rename(workspace.root / "A"))
    workspace.record.undo()
    assert (workspace.read("a"), workspace.read("A")) == ("1", "2")


def test_links_are_not_followed(workspace: RecordedWorkspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("not ours")
    (workspace.root / "way_out").symlink_to(outside)
    (workspace.root / "loop").symlink_to("loop")
    (workspace.root / "up").symlink_to("..")

    def act() -> None:
        (outside / "a").write_text("changed")
        (workspace.root / "loop").unlink()

    changes = workspace.block(act)
    assert [change.path for change in changes.listed] == ["loop"]
    workspace.record.undo()
    assert os.readlink(workspace.root / "loop") == "loop" and (outside / "a").read_text() == "changed"


def test_nothing_is_written_through_a_link(workspace: RecordedWorkspace, tmp_path: Path) -> None:
    workspace.write("d/a", "1")
    workspace.block(lambda: workspace.write("d/a", "2"))
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(workspace.root / "d")
    (workspace.root / "d").symlink_to(outside)
    report = workspace.record.undo(overwrite={"d/a"})
    assert [kept.path for kept in report.kept] == ["d/a"] and os.listdir(outside) == []


def test_pipes_are_restored_but_sockets_are_not(workspace: RecordedWorkspace) -> None:
    os.mkfifo(workspace.root / "pipe", 0o600)

    def act() -> None:
        (workspace.root / "pipe").unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(workspace.root / "socket"))

    workspace.block(act)
    workspace.record.undo()
    assert os.listdir(workspace.root) == ["pipe"] and (workspace.root / "pipe").is_fifo()
    report = workspace.record.redo()
    assert [(kept.path, kept.why) for kept in report.kept] == [("socket", "a socket can't be recreated")]
    assert not workspace.record.prepare().not_covered


def test_sockets_are_reported_before_the_block_runs(workspace: RecordedWorkspace) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(workspace.root / "socket"))
        coverage = workspace.record.before(1)
    assert coverage.sentences == ["Undo doesn't cover: socket (a socket)"]


def test_devices_are_reported_before_the_block_runs(workspace: RecordedWorkspace) -> None:
    try:
        os.mknod(workspace.root / "null", 0o020600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can create devices")
    assert workspace.record.before(1).sentences == ["Undo doesn't cover: null (a device)"]


def test_a_created_folder_with_other_files_is_kept(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: workspace.write("d/a", "1"))
    workspace.write("d/mine", "1")
    report = workspace.record.undo()
    assert [(kept.path, kept.why) for kept in report.kept] == [("d", "the folder contains other files")]
    assert os.listdir(workspace.root / "d") == ["mine"]


def test_many_files_are_restored(workspace: RecordedWorkspace) -> None:
    for number in range(300):
        workspace.write(f"d{number % 7}/{number}", str(number))
    before = shape(workspace.root)

    def act() -> None:
        for folder in list(workspace.root.iterdir())[:3]:
            shutil.rmtree(folder)
        for number in range(200):
            workspace.write(f"new/{number}", "new")

    workspace.block(act)
    workspace.record.undo()
    assert shape(workspace.root) == before
