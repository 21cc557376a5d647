"""Drift: files changed after a block are not overwritten unless the user asks for it."""

from __future__ import annotations

import os

from checkpoints.recorded_workspace import RecordedWorkspace
from checkpoints.trees import shape


def test_a_file_edited_after_the_block_stays(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "before\n")
    workspace.write("b", "before\n")

    def act() -> None:
        workspace.write("a", "block\n")
        workspace.write("b", "block\n")

    workspace.block(act)
    workspace.write("a", "mine\n")
    plan = workspace.record.plan_undo()
    (step,) = plan.drift
    assert step.path == "a"
    assert workspace.record.drift_diff(step) == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-mine\n+before\n"
    report = workspace.record.undo(plan)
    assert (workspace.read("a"), workspace.read("b")) == ("mine\n", "before\n")
    assert [(kept.path, kept.drift) for kept in report.kept] == [("a", True)] and report.restored == ("b",)


def test_edited_files_are_saved_and_overwritten_on_request(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "before")
    workspace.block(lambda: workspace.write("a", "block"))
    workspace.write("a", "mine")
    report = workspace.record.undo(overwrite={"a"})
    assert workspace.read("a") == "before"
    assert workspace.record.store.read(report.saved["a"]) == b"mine"


def test_redo_restores_what_undo_overwrote(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "before")
    workspace.write("b", "before")

    def act() -> None:
        workspace.write("a", "block")
        workspace.write("b", "block")

    workspace.block(act)
    workspace.block(lambda: workspace.write("c", "block"))
    workspace.write("a", "mine")
    (workspace.root / "b").unlink()
    before = shape(workspace.root)
    workspace.record.undo(workspace.record.plan_undo(2), overwrite={"a", "b"})
    assert (workspace.read("a"), workspace.read("b")) == ("before", "before")
    workspace.record = workspace.opened()
    workspace.record.redo()
    assert workspace.read("a") == "mine" and not (workspace.root / "b").exists()
    workspace.record.redo()
    assert shape(workspace.root) == before
    assert [step.path for step in workspace.record.plan_undo(2).drift] == ["a", "b"]


def test_undo_restores_what_redo_overwrote(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "before")
    workspace.block(lambda: workspace.write("a", "block"))
    workspace.record.undo()
    workspace.write("a", "mine")
    workspace.record.redo(overwrite={"a"})
    assert workspace.read("a") == "block"
    workspace.record.trim()
    workspace.record = workspace.opened()
    workspace.record.undo()
    assert workspace.read("a") == "mine"
    workspace.write("a", "before")
    workspace.record.redo()
    workspace.record.undo()
    assert workspace.read("a") == "before"


def test_an_edit_between_two_undone_blocks_is_drift(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    workspace.write("a", "mine")
    workspace.block(lambda: workspace.write("a", "2"))
    assert [step.path for step in workspace.record.plan_undo(2).drift] == ["a"]
    workspace.record.undo()
    assert workspace.read("a") == "mine"
    workspace.record.undo()
    assert workspace.read("a") == "mine"


def test_external_deletions_and_creations_are_drift(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.write("b", "0")

    def act() -> None:
        workspace.write("a", "1")
        (workspace.root / "b").unlink()

    workspace.block(act)
    (workspace.root / "a").unlink()
    workspace.write("b", "mine")
    assert [step.path for step in workspace.record.plan_undo().drift] == ["a", "b"]
    workspace.record.undo()
    assert not (workspace.root / "a").exists() and workspace.read("b") == "mine"


def test_an_external_change_with_the_same_result_is_not_drift(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    workspace.write("a", "0")
    plan = workspace.record.plan_undo()
    assert plan.drift == () and [step.verb for step in plan.steps] == ["attributes"]


def test_a_changed_timestamp_is_not_drift(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    os.utime(workspace.root / "a", (1, 1))
    workspace.record.undo()
    assert workspace.read("a") == "0"


def test_undo_ignores_files_the_block_did_not_change(workspace: RecordedWorkspace) -> None:
    workspace.write("mine", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    workspace.write("mine", "1")
    report = workspace.record.undo()
    assert report.kept == () and workspace.read("mine") == "1"


def test_a_change_after_planning_is_kept(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    plan = workspace.record.plan_undo()
    workspace.write("a", "just now")
    report = workspace.record.undo(plan)
    assert workspace.read("a") == "just now"
    assert [kept.why for kept in report.kept] == ["it has just changed"]


def test_redo_detects_drift(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.block(lambda: workspace.write("a", "1"))
    workspace.record.undo()
    workspace.write("a", "mine")
    plan = workspace.record.plan_redo()
    assert [step.path for step in plan.drift] == ["a"]
    workspace.record.redo(plan)
    assert workspace.read("a") == "mine"
    workspace.record.undo()
    assert workspace.read("a") == "mine"


def test_kept_files_stay_kept_in_redo_and_undo(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "0")
    workspace.write("b", "0")

    def act() -> None:
        workspace.write("a", "1")
        workspace.write("b", "1")

    workspace.block(act)
    workspace.write("a", "mine")
    workspace.record.undo()
    undone = shape(workspace.root)
    workspace.record.redo()
    assert (workspace.read("a"), workspace.read("b")) == ("mine", "1")
    workspace.record.undo()
    assert shape(workspace.root) == undone
