"""What is said about files and points: in one line after a block, and before an undo."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.errors import UndoError
from interpreter.frontends.terminal.magics import undo as undo_words
from interpreter.frontends.terminal.magics.undo import parse
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


def told(*changed: dict[str, Any], width: int = 79) -> str:
    return files_note({"changed": list(changed), "not_covered": []}, width)


# -- after a block -----------------------------------------------------------------------------------------------


def test_a_line_for_what_a_block_changed() -> None:
    deleted = [change("deleted", "old", "folder"), *(change("deleted", f"old/{name}") for name in "abc")]
    three = [change("changed", "data.json"), change("created", "out.csv"), *deleted]
    shown = "files: created out.csv · changed data.json · deleted old/ (3)"
    assert told(*three, width=99) == f"{shown} (%undo reverts it)"
    assert told(*three) == f"{shown} (%undo)"
    assert told(*three, width=65) == shown
    assert told(change("renamed", "new", **{"from": "was"})) == "files: renamed was to new (%undo reverts it)"
    assert told(change("mode", "run.sh"), change("touched", "x")).startswith("files: mode of run.sh · touched x")
    assert told(change("created", "empty", "folder")).startswith("files: created empty/ (%undo")


def test_a_renamed_folder_is_one() -> None:
    folders = [change("created", name, "folder") for name in ("b", "b/in")]
    folders += [change("deleted", name, "folder") for name in ("a", "a/in", "other")]
    files = [change("renamed", f"b/{name}", **{"from": f"a/{name}"}) for name in ("x", "in/y")]
    assert told(*folders, *files) == "files: deleted other/ · renamed a/ to b/ (2) (%undo reverts it)"
    apart = change("renamed", "b/new", **{"from": "old"})
    assert told(*folders, *files, apart, change("created", "b/z"), width=99) == (
        "files: created b/z · deleted other/ · renamed a/ to b/ (2), old to b/new (%undo reverts it)"
    )


def test_nothing_to_tell() -> None:
    assert told() == ""
    lost = files_note({"changed": [], "not_covered": [["big.bin", "too large", 10]]}, 79)
    assert lost == "files: not restorable: big.bin"
    changed = files_note({"changed": [change("changed", "big.bin")], "not_covered": [["big.bin", "too large", 10]]}, 79)
    assert changed == "files: changed big.bin · not restorable: big.bin"


def test_what_git_writes_is_one_word() -> None:
    inside = [change("created", f".git/objects/{number}") for number in range(20)]
    assert told(*inside, change("changed", ".git/index")) == "files: changed .git/ (%undo reverts it)"


def test_names_give_way_to_numbers_where_there_is_no_room() -> None:
    many = [change("created", f"file{number}.txt") for number in range(12)]
    assert told(*many) == "files: created file0.txt, file1.txt, file10.txt, 9 more (%undo reverts it)"
    assert told(*many, width=20) == "files: 12 created"
    assert told(*many, change("changed", "y"), change("deleted", "x"), width=25) == "files: 14 changes"
    assert told(*many, change("deleted", "x"), width=30) == "files: 12 created · deleted x"


@given(st.lists(st.tuples(st.sampled_from(["created", "changed", "deleted"]), st.text("ab漢/ \x1b", min_size=1))))
def test_it_is_never_wider_than_the_window(changed: list[tuple[str, str]]) -> None:
    for width in (10, 40, 80):
        shown = told(*(change(what, path) for what, path in changed), width=width)
        assert cells(shown) <= width
        assert "\n" not in shown and "\x1b" not in shown


@pytest.mark.parametrize(("columns", "silent"), [(80, True), (40, False)])
def test_the_line_stands_below_the_output(columns: int, silent: bool) -> None:
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


def test_each_file_with_what_happens_to_it() -> None:
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
    assert undo_words.lines(undo_plan(unit)) == [
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


def test_a_repository_alone_is_no_reason_to_ask() -> None:
    alone = RestorePlan("undo", ("1",), 0, (Step(".git/index", FILE, OTHER, repository=".git"),), (repository(),))
    assert not undo_plan(alone).changes_files
    assert undo_plan(plan(Step("a", OTHER, FILE, drift=True))).changes_files


def test_long_lists_are_cut() -> None:
    steps = [Step(f"f{number:02}", FILE, FILE, None) for number in range(30)]
    messages = tuple({"role": "user", "type": "message", "content": str(number)} for number in range(20))
    shown = undo_words.lines(undo_plan(plan(*steps), messages=messages))
    assert shown[6] == "  and 14 more messages"
    assert shown[-1] == "  and 20 more files" and len(shown) == 7 + 1 + 11


def test_variables_and_what_is_not_covered() -> None:
    variables = (VariablesPlan("Python"), VariablesPlan("Shell"), VariablesPlan("JavaScript", "it cannot"))
    shown = undo_words.lines(undo_plan(variables=variables, notes=("It sent a mail.",)))
    assert shown == [
        "Variables: Python, Shell",
        "Can't restore the JavaScript variables: it cannot (%rerun javascript)",
        "Not covered: It sent a mail.",
    ]


def test_what_was_done() -> None:
    steps = [Step("a.txt", OTHER, FILE), Step("made", FOLDER, None)]
    found = undo_plan(plan(*steps), notes=("Known.",))
    report = RestoreReport("undo", ("1",), ("a.txt", "made"))
    undone = UndoResult(found, report, {"Python": Restored(lost=["thread Thread-1"])})
    assert undo_words.summary(undone) == "Undone: 1 file, the Python variables."
    assert undo_words.sentences(undone) == ["Python: Not restored: thread Thread-1."]
    assert undo_words.summary(UndoResult(undo_plan())) == "There was nothing to restore."
    hidden = UndoResult(undo_plan(notes=("Known.",), variables=(VariablesPlan("JavaScript", "it cannot"),)))
    assert undo_words.sentences(hidden, shown=True) == []
    told = ["Can't restore the JavaScript variables: it cannot (%rerun javascript)", "Known."]
    assert undo_words.sentences(hidden, shown=False) == told
    again = UndoResult(undo_plan(plan(*steps, direction="redo"), back=False), report)
    assert undo_words.summary(again) == "Redone: 1 file."


def test_a_file_that_is_not_covered_reads_like_a_sentence() -> None:
    assert str(NotCovered("big.bin", "too large", 2_000_000)) == "big.bin (1.9 MB)"


# -- differences and options ---------------------------------------------------------------------------------------


def test_a_difference_in_colours() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \x1b[31m\n same\n"
    painted, left = diff_rows(text, Theme())
    assert painted[3].startswith("\x1b[31m-old") and painted[4].startswith("\x1b[32m+new ␛")
    assert painted[5] == " same" and left == 0
    assert diff_rows(text, None, most=2) == (["--- a/x", "+++ b/x"], 4)


def test_options_of_undo() -> None:
    assert parse("").parts == ("conversation", "files", "variables")
    wanted = parse("3 --variables --files --blocks -y")
    assert (wanted.place, wanted.parts, wanted.blocks, wanted.yes) == ("3", ("files", "variables"), True, True)
    with pytest.raises(UndoError, match="Unknown option: --everything"):
        parse("--everything")
