"""What somebody else changed after a block is not overwritten, unless the user says so."""

from __future__ import annotations

import os

from checkpoints.trees import shape
from checkpoints.workbench import Bench


def test_a_file_edited_after_the_block_stays(bench: Bench) -> None:
    bench.write("a", "before\n")
    bench.write("b", "before\n")

    def act() -> None:
        bench.write("a", "block\n")
        bench.write("b", "block\n")

    bench.block(act)
    bench.write("a", "mine\n")
    plan = bench.record.plan_undo()
    (step,) = plan.drift
    assert step.path == "a"
    assert bench.record.drift_diff(step) == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-mine\n+before\n"
    report = bench.record.undo(plan)
    assert (bench.read("a"), bench.read("b")) == ("mine\n", "before\n")
    assert [(kept.path, kept.drift) for kept in report.kept] == [("a", True)] and report.restored == ("b",)


def test_it_is_overwritten_on_request_and_saved_first(bench: Bench) -> None:
    bench.write("a", "before")
    bench.block(lambda: bench.write("a", "block"))
    bench.write("a", "mine")
    report = bench.record.undo(overwrite={"a"})
    assert bench.read("a") == "before"
    assert bench.record.store.read(report.saved["a"]) == b"mine"


def test_what_was_overwritten_comes_back_with_the_redo(bench: Bench) -> None:
    bench.write("a", "before")
    bench.write("b", "before")

    def act() -> None:
        bench.write("a", "block")
        bench.write("b", "block")

    bench.block(act)
    bench.block(lambda: bench.write("c", "block"))
    bench.write("a", "mine")
    (bench.root / "b").unlink()
    before = shape(bench.root)
    bench.record.undo(bench.record.plan_undo(2), overwrite={"a", "b"})
    assert (bench.read("a"), bench.read("b")) == ("before", "before")
    bench.record = bench.opened()
    bench.record.redo()
    assert bench.read("a") == "mine" and not (bench.root / "b").exists()
    bench.record.redo()
    assert shape(bench.root) == before
    assert [step.path for step in bench.record.plan_undo(2).drift] == ["a", "b"]


def test_what_a_redo_overwrote_comes_back_with_the_undo(bench: Bench) -> None:
    bench.write("a", "before")
    bench.block(lambda: bench.write("a", "block"))
    bench.record.undo()
    bench.write("a", "mine")
    bench.record.redo(overwrite={"a"})
    assert bench.read("a") == "block"
    bench.record.trim()
    bench.record = bench.opened()
    bench.record.undo()
    assert bench.read("a") == "mine"
    bench.write("a", "before")
    bench.record.redo()
    bench.record.undo()
    assert bench.read("a") == "before"


def test_an_edit_between_two_blocks_that_are_undone_together(bench: Bench) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    bench.write("a", "mine")
    bench.block(lambda: bench.write("a", "2"))
    assert [step.path for step in bench.record.plan_undo(2).drift] == ["a"]
    bench.record.undo()
    assert bench.read("a") == "mine"
    bench.record.undo()
    assert bench.read("a") == "mine"


def test_a_deletion_and_a_creation_by_somebody_else(bench: Bench) -> None:
    bench.write("a", "0")
    bench.write("b", "0")

    def act() -> None:
        bench.write("a", "1")
        (bench.root / "b").unlink()

    bench.block(act)
    (bench.root / "a").unlink()
    bench.write("b", "mine")
    assert [step.path for step in bench.record.plan_undo().drift] == ["a", "b"]
    bench.record.undo()
    assert not (bench.root / "a").exists() and bench.read("b") == "mine"


def test_somebody_who_did_the_same_is_no_drift(bench: Bench) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    bench.write("a", "0")
    plan = bench.record.plan_undo()
    assert plan.drift == () and [step.verb for step in plan.steps] == ["attributes"]


def test_touching_is_no_drift(bench: Bench) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    os.utime(bench.root / "a", (1, 1))
    bench.record.undo()
    assert bench.read("a") == "0"


def test_other_files_are_not_looked_at(bench: Bench) -> None:
    bench.write("mine", "0")
    bench.block(lambda: bench.write("a", "1"))
    bench.write("mine", "1")
    report = bench.record.undo()
    assert report.kept == () and bench.read("mine") == "1"


def test_a_change_after_the_plan_was_made(bench: Bench) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    plan = bench.record.plan_undo()
    bench.write("a", "just now")
    report = bench.record.undo(plan)
    assert bench.read("a") == "just now"
    assert [kept.why for kept in report.kept] == ["it has just changed"]


def test_redo_has_drift_too(bench: Bench) -> None:
    bench.write("a", "0")
    bench.block(lambda: bench.write("a", "1"))
    bench.record.undo()
    bench.write("a", "mine")
    plan = bench.record.plan_redo()
    assert [step.path for step in plan.drift] == ["a"]
    bench.record.redo(plan)
    assert bench.read("a") == "mine"
    bench.record.undo()
    assert bench.read("a") == "mine"


def test_what_was_kept_is_kept_by_redo_and_undo(bench: Bench) -> None:
    bench.write("a", "0")
    bench.write("b", "0")

    def act() -> None:
        bench.write("a", "1")
        bench.write("b", "1")

    bench.block(act)
    bench.write("a", "mine")
    bench.record.undo()
    undone = shape(bench.root)
    bench.record.redo()
    assert (bench.read("a"), bench.read("b")) == ("mine", "1")
    bench.record.undo()
    assert shape(bench.root) == undone
