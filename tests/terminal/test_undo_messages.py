"""The messages about changed files: one line after a block, and a list before an undo."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.errors import UndoError
from interpreter.frontends.terminal.magics import undo as undo_messages
from interpreter.frontends.terminal.magics.undo import parse
from interpreter.frontends.terminal.render import notes
from interpreter.frontends.terminal.render.ansi import cells
from interpreter.frontends.terminal.render.notes import diff_rows, files_note
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.runtimes.state import Restored
from interpreter.session.checkpoints import (
    UndoPlan,
    UndoResult,
    VariablesPlan,
)
from interpreter.workspace import (
    Item,
    NotCovered,
    RestorePlan,
    RestoreReport,
    Step,
)
from terminal.test_display import Stage, output

FILE = Item("file", 0o644, 1, 1, 1, "hash")
OTHER = FILE._replace(content="other", inode=2)
FOLDER = Item("folder", 0o755, 0, 0, 3, "")


def change(what: str, path: str, kind: str = "file", **more: str) -> dict[str, Any]:
    side = "before" if what == "deleted" else "after"
    return {"what": what, "path": path, side: {"kind": kind}, **more}


def files_line(*changed: dict[str, Any], width: int = 79) -> str:
    return files_note({"changed": list(changed), "not_covered": []}, width)


# -- after a block -----------------------------------------------------------------------------------------------


def test_one_line_lists_the_files_a_block_changed() -> None:
    deleted = [change("deleted", "old", "folder"), *(change("deleted", f"old/{name}") for name in "abc")]
    three = [change("changed", "data.json"), change("created", "out.csv"), *deleted]
    shown = "files: created out.csv · changed data.json · deleted old/ (3)"
    assert files_line(*three, width=99) == f"{shown} (%undo reverts it)"
    assert files_line(*three) == f"{shown} (%undo)"
    assert files_line(*three, width=65) == shown
    assert files_line(change("renamed", "new", **{"from": "was"})) == "files: renamed was to new (%undo reverts it)"
    assert files_line(change("mode", "run.sh"), change("touched", "x")).startswith("files: mode of run.sh · touched x")
    assert files_line(change("created", "empty", "folder")).startswith("files: created empty/ (%undo")


def test_a_renamed_folder_counts_as_one_change() -> None:
    folders = [change("created", name, "folder") for name in ("b", "b/in")]
    folders += [change("deleted", name, "folder") for name in ("a", "a/in", "other")]
    files = [change("renamed", f"b/{name}", **{"from": f"a/{name}"}) for name in ("x", "in/y")]
    assert files_line(*folders, *files) == "files: deleted other/ · renamed a/ to b/ (2) (%undo reverts it)"
    apart = change("renamed", "b/new", **{"from": "old"})
    assert files_line(*folders, *files, apart, change("created", "b/z"), width=99) == (
        "files: created b/z · deleted other/ · renamed a/ to b/ (2), old to b/new (%undo reverts it)"
    )


def test_the_line_is_empty_or_names_what_cannot_be_restored() -> None:
    assert files_line() == ""
    lost = files_note({"changed": [], "not_covered": [["big.bin", "too large", 10]]}, 79)
    assert lost == "files: not restorable: big.bin"
    changed = files_note({"changed": [change("changed", "big.bin")], "not_covered": [["big.bin", "too large", 10]]}, 79)
    assert changed == "files: changed big.bin · not restorable: big.bin"


def test_changes_in_a_git_folder_are_summarised() -> None:
    inside = [change("created", f".git/objects/{number}") for number in range(20)]
    assert files_line(*inside, change("changed", ".git/index")) == "files: changed .git/ (%undo reverts it)"


def test_the_line_does_not_promise_to_undo_what_git_manages_without_the_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "leaves", tuple)
    index, file = change("changed", "app/.git/index"), change("changed", "a.txt")
    assert files_line(index) == "files: changed app/.git/"
    assert files_line(index, file) == "files: changed a.txt, app/.git/ (%undo reverts all but .git)"
    assert files_line(index, file, width=40) == "files: changed a.txt, app/.git/"
    made = [change("created", "app/.git", "folder"), change("created", "app/.git/HEAD")]
    assert files_line(*made) == "files: created app/.git/ (1) (%undo reverts it)"
    assert files_line(*made, change("changed", ".git/HEAD")).endswith("(%undo reverts all but .git)")


def test_counts_replace_names_in_a_narrow_window() -> None:
    many = [change("created", f"file{number}.txt") for number in range(12)]
    assert files_line(*many) == "files: created file0.txt, file1.txt, file10.txt, 9 more (%undo reverts it)"
    assert files_line(*many, width=20) == "files: 12 created"
    assert files_line(*many, change("changed", "y"), change("deleted", "x"), width=25) == "files: 14 changes"
    assert files_line(*many, change("deleted", "x"), width=30) == "files: 12 created · deleted x"


@given(st.lists(st.tuples(st.sampled_from(["created", "changed", "deleted"]), st.text("ab漢/ \x1b", min_size=1))))
def test_the_line_is_never_wider_than_the_window(changed: list[tuple[str, str]]) -> None:
    for width in (10, 40, 80):
        shown = files_line(*(change(what, path) for what, path in changed), width=width)
        assert cells(shown) <= width
        assert "\n" not in shown and "\x1b" not in shown


@pytest.mark.parametrize(("columns", "silent"), [(80, True), (40, False)])
def test_the_line_appears_below_the_output(columns: int, silent: bool) -> None:
    stage = Stage(columns)
    content = {"changed": [change("created", "out.csv")], "not_covered": []}
    stage.show({"role": "computer", "type": "console", "start": True})
    if not silent:
        stage.show(output("printed\n"))
    stage.show({"role": "computer", "type": "status", "format": "files", "content": content})
    stage.show({"role": "computer", "type": "console", "format": "active_line", "content": None, "ended": "done"})
    stage.display.finish()
    last = "files: created out.csv (%undo reverts it)" if columns == 80 else "files: created out.csv (%undo)"
    assert stage.rows == ([last] if silent else ["printed", last])


# -- before an undo ------------------------------------------------------------------------------------------------


def plan(*steps: Step, direction: Any = "undo") -> RestorePlan:
    return RestorePlan(direction, ("1",), 0, steps)


def undo_plan(files: RestorePlan | None = None, **more: Any) -> UndoPlan:
    return UndoPlan(0, more.pop("back", True), (), ("conversation", "files", "variables"), files=files, **more)


def test_the_plan_lists_each_file_with_its_change() -> None:
    steps = [
        Step("a.txt", OTHER, FILE),
        Step("b.txt", None, FILE),
        Step("made", FOLDER, None),
        Step("made/x", FILE, None),
        Step("mine.txt", OTHER, None, drift=True),
        Step("new.txt", FILE, None),
        Step("old.txt", None, FILE, source="new.txt"),
        Step(".git/index", FILE, OTHER, repository=".git"),
    ]
    unit = plan(*steps)
    unit = RestorePlan(unit.direction, unit.blocks, unit.position, unit.steps, (repository(),))
    assert undo_messages.lines(undo_plan(unit)) == [
        "Files:",
        "  brought back b.txt",
        "  restored a.txt",
        "  deleted made/ (1)",
        "  renamed back new.txt to old.txt",
        "  changed since, outside this session: mine.txt",
        "  .git is left alone: git manages its commits and its index",
    ]


def repository() -> Any:
    from interpreter.workspace.restore import Repository

    return Repository(".git", comes_or_goes=False, in_use=False)


def test_a_repository_alone_needs_no_confirmation() -> None:
    alone = RestorePlan("undo", ("1",), 0, (Step(".git/index", FILE, OTHER, repository=".git"),), (repository(),))
    assert not undo_plan(alone).changes_files
    assert undo_plan(plan(Step("a", OTHER, FILE, drift=True))).changes_files


def test_long_lists_are_cut() -> None:
    steps = [Step(f"f{number:02}", FILE, FILE, None) for number in range(30)]
    messages = tuple({"role": "user", "type": "message", "content": str(number)} for number in range(20))
    shown = undo_messages.lines(undo_plan(plan(*steps), messages=messages))
    assert shown[6] == "  and 14 more messages"
    assert shown[-1] == "  and 20 more files" and len(shown) == 7 + 1 + 11


def test_the_plan_lists_variables_and_what_is_not_covered() -> None:
    variables = (VariablesPlan("Python"), VariablesPlan("Shell"), VariablesPlan("JavaScript", "it cannot"))
    shown = undo_messages.lines(undo_plan(variables=variables, notes=("It sent a mail.",)))
    assert shown == [
        "Variables: Python, Shell",
        "Can't restore the JavaScript variables: it cannot (%rerun javascript)",
        "Not covered: It sent a mail.",
    ]


def test_the_summary_says_what_was_undone() -> None:
    steps = [Step("a.txt", OTHER, FILE), Step("made", FOLDER, None)]
    found = undo_plan(plan(*steps), notes=("Known.",))
    report = RestoreReport("undo", ("1",), ("a.txt", "made"))
    undone = UndoResult(found, report, {"Python": Restored(lost=["thread Thread-1"])})
    assert undo_messages.summary(undone) == "Undone: 1 file, the Python variables."
    assert undo_messages.sentences(undone) == ["Python: Not restored: thread Thread-1."]
    assert undo_messages.summary(UndoResult(undo_plan())) == "There was nothing to restore."
    hidden = UndoResult(undo_plan(notes=("Known.",), variables=(VariablesPlan("JavaScript", "it cannot"),)))
    assert undo_messages.sentences(hidden, shown=True) == []
    expected = ["Can't restore the JavaScript variables: it cannot (%rerun javascript)", "Known."]
    assert undo_messages.sentences(hidden, shown=False) == expected
    again = UndoResult(undo_plan(plan(*steps, direction="redo"), back=False), report)
    assert undo_messages.summary(again) == "Redone: 1 file."


def test_a_file_that_is_not_covered_is_shown_with_its_size() -> None:
    assert str(NotCovered("big.bin", "too large", 2_000_000)) == "big.bin (1.9 MB)"


# -- differences and options ---------------------------------------------------------------------------------------


def test_diffs_are_coloured() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \x1b[31m\n same\n"
    painted, left = diff_rows(text, Theme())
    assert painted[3].startswith("\x1b[31m-old") and painted[4].startswith("\x1b[32m+new ␛")
    assert painted[5] == " same" and left == 0
    assert diff_rows(text, None, most=2) == (["--- a/x", "+++ b/x"], 4)


def test_undo_options_are_parsed() -> None:
    assert parse("").parts == ("conversation", "files", "variables")
    options = parse("3 --variables --files --blocks -y")
    assert (options.place, options.parts, options.blocks, options.yes) == ("3", ("files", "variables"), True, True)
    with pytest.raises(UndoError, match="Unknown option: --everything"):
        parse("--everything")
