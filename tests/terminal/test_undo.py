"""Undo and redo at a real terminal: what is shown first, what is asked, and the result."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from model_server import ModelServer, text, tool_call
from sampling import some
from terminal.person import CTRL_C, ENTER, Person, someone
from waiting import until

pytestmark = pytest.mark.usefixtures("no_strays")
APPROVAL = "Run? [y]es  [n]o"
QUESTION = "Change these files? [y/N]"
DOWN, ESCAPE = "\x1b[B", "\x1b"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def below(person: Person, text: str) -> str:
    """The text below the last line that starts with this text."""
    return person.screen.rpartition(f"\n{text}")[2]


def writing(name: str, content: str, more: str = "") -> str:
    return f"open({name!r}, 'w').write({content!r}); {more}None"


def test_undo_and_redo_cover_files_variables_and_conversation(work: Path) -> None:
    (work / "data.txt").write_text("old\n")
    code = writing("data.txt", "new\n", "open('made.txt', 'w').close(); x = 41; ")
    with ModelServer([tool_call("python", code), text("Done.")]) as server, someone("-y", server=server) as person:
        person.says(">>> x = 1")
        person.says("Change it")
        person.sees("files: created made.txt · changed data.txt (%undo reverts it)")
        person.sees("Done.")
        person.says("%undo")
        person.sees(QUESTION)
        asked = below(person, "> %undo")
        assert "  user message: Change it" in asked
        assert "  restored data.txt" in asked and "  deleted made.txt" in asked
        assert "Variables: Python" in asked
        assert (work / "data.txt").read_text() == "new\n"
        person.types("y" + ENTER)
        person.sees("Undone: 4 messages, 2 files, the Python variables.")
        assert (work / "data.txt").read_text() == "old\n" and not (work / "made.txt").exists()
        person.says("%redo -y")
        person.sees("Redone: 4 messages, 2 files, the Python variables.")
        assert (work / "data.txt").read_text() == "new\n" and (work / "made.txt").exists()
        person.says(">>> x * 100")
        person.sees("4100")
        person.says("%undo 2 -y")
        person.says(">>> x * 100")
        person.sees("\n100")
        assert person.leaves() == 0


@pytest.mark.parametrize("answer", some(1, ["", pytest.param("n", marks=pytest.mark.full), CTRL_C]))
def test_nothing_changes_without_a_yes(work: Path, answer: str) -> None:
    replies = [tool_call("python", writing("a.txt", "a")), text("Done."), text("Again.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("Write it")
        person.sees("Done.")
        person.says("%undo")
        person.sees(QUESTION)
        person.types(answer + ("" if answer == CTRL_C else ENTER))
        person.sees("Nothing was changed.")
        person.says("And now?")
        person.sees("Again.")
        assert (work / "a.txt").read_text() == "a"
        assert "Write it" in str(server.requests[-1].messages)
        assert person.leaves() == 0


@pytest.mark.full
def test_a_turn_without_files_is_undone_without_asking(work: Path) -> None:
    with ModelServer([text("Hello to you."), text("Who?")]) as server, someone(server=server) as person:
        person.says("%undo")
        person.sees("There is nothing to undo.")
        person.says("Hello")
        person.sees("Hello to you.")
        person.says("%undo")
        person.sees("Undone:\n  user message: Hello\n  assistant message: Hello to you.\nTo bring it back, use %redo")
        person.says("%redo")
        person.sees("Redone:\n  user message: Hello")
        person.says("%redo")
        person.sees("There is nothing to redo.")
        person.says("%undo")
        person.sees("Undone:", times=2)
        person.says("It is me")
        person.sees("Who?")
        assert "Hello" not in str(server.requests[-1].messages[1:])
        assert person.leaves() == 0


@pytest.mark.full
def test_undo_can_be_limited_to_files(work: Path) -> None:
    replies = [tool_call("python", writing("a.txt", "a", "x = 5; ")), text("Done."), text("Still here.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("Write it")
        person.sees("Done.")
        person.says("%undo --files -y")
        person.sees("Undone: 1 file.")
        assert not (work / "a.txt").exists()
        person.says(">>> x * 100")
        person.sees("500")
        person.says("What is there?")
        person.sees("Still here.")
        assert "Write it" in str(server.requests[-1].messages)
        person.says("%undo --everything")
        person.sees("Unknown option: --everything.")
        person.says("%undo 77")
        person.sees("steps can be undone.")
        assert person.leaves() == 0


@pytest.mark.full
def test_undo_can_be_limited_to_one_block(work: Path) -> None:
    replies = [tool_call("python", writing("a.txt", "a")), tool_call("python", writing("b.txt", "b")), text("Done.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("Write them")
        person.sees("Done.")
        person.says("%undo --block -y")
        person.sees("Undone: 3 messages, 1 file")
        assert [path.name for path in work.iterdir()] == ["a.txt"]
        assert person.leaves() == 0


def test_undo_asks_about_files_changed_outside_the_session(work: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (work / name).write_text("old\n")
    code = "for name in 'abc': open(f'{name}.txt', 'w').write('block\\n')"
    with ModelServer([tool_call("python", code), text("Done.")]) as server, someone("-y", server=server) as person:
        person.says("Change them")
        person.sees("Done.")
        (work / "a.txt").write_text("mine\n")
        (work / "b.txt").write_text("mine\n")
        person.says("%undo")
        person.sees("changed since, outside this session: a.txt")
        person.answers(QUESTION, "y")
        person.sees("a.txt has been changed since, outside this session.")
        person.sees("-mine\n+old")
        person.answers("r: restore it, a: restore all 2, n: keep all 2 [k]", "what?")
        person.answers("[k]", "", times=2)
        person.answers("r: restore it [k]", "r")
        person.sees("Undone: 4 messages, 2 files, the Python variables.")
        person.sees("a.txt was left unchanged: it was changed after the block.")
        found = {path.name: path.read_text() for path in work.iterdir()}
        assert found == {"a.txt": "mine\n", "b.txt": "old\n", "c.txt": "old\n"}
        assert person.leaves() == 0


@pytest.mark.full
@pytest.mark.needs("git")
def test_undo_restores_the_index_of_a_git_repository(work: Path) -> None:
    setup = "git init -q . && git config user.name A && git config user.email a@b && git add . && git commit -qm one"
    replies = [tool_call("shell", "echo new > a.txt; git add a.txt"), text("Done.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        (work / "a.txt").write_text("old\n")
        person.says(f"%% {setup}; echo ready$((40 + 2))")
        person.sees("ready42")
        person.says("Stage it")
        person.sees("files: changed .git/, a.txt (%undo reverts it)")
        person.sees("Done.")
        person.says("%undo")
        person.sees(".git: the index is restored")
        person.answers(QUESTION, "y")
        person.sees("Undone: 4 messages, 2 files")
        person.says("%% git status --short; echo clean$((40 + 2))")
        person.sees("clean42")
        assert (work / "a.txt").read_text() == "old\n"
        assert person.leaves() == 0


def test_rewind_offers_the_checkpoints(work: Path) -> None:
    replies = [tool_call("python", writing("a.txt", "a")), text("First."), text("Second.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("%rewind")
        person.sees("There is nothing to go back to yet.")
        person.says("Write it")
        person.sees("First.")
        person.says("Thanks")
        person.sees("Second.")
        person.says("%rewind")
        person.sees("Write it")
        person.sees("6 messages, 1 file, variables")
        person.types(DOWN)
        person.wait_until(lambda: any(row.startswith(">    2") for row in person.rows), "the second row marked")
        person.types(ESCAPE)
        person.sees("Nothing was changed.")
        person.says("%rewind")
        person.sees("Search:")
        person.types("thanks" + ENTER)
        person.sees("Undone:\n  user message: Thanks\n  assistant message: Second.")
        person.says("%rewind 1")
        person.answers(QUESTION, "y")
        person.sees("Undone: 4 messages, 1 file")
        assert not (work / "a.txt").exists()
        person.says("%rewind now -y")
        person.sees("Redone: 6 messages, 1 file")
        assert (work / "a.txt").read_text() == "a"
        assert person.leaves() == 0


def test_diff_and_why_show_a_blocks_changes_and_its_approval(work: Path) -> None:
    (work / "a.txt").write_text("one\ntwo\n")
    code = writing("a.txt", "one\n2\n", "open('b.bin', 'wb').write(bytes(9)); ")
    replies = [tool_call("python", code), tool_call("python", "print('no files')"), text("Done.")]
    with ModelServer(replies) as server, someone("--card_diff", "off", server=server) as person:
        person.says("Make it a number")
        person.answers(APPROVAL, "y")
        person.answers(APPROVAL, "y", times=2)
        person.sees("Done.")
        person.says("%diff")
        person.sees("Binary files /dev/null and b/b.bin differ")
        assert "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" in person.screen
        person.says("%diff 3")
        person.sees("It changed no files in the workspace.")
        person.says("%why a.txt:2")
        person.sees("a.txt:2: block 2, approved by you at ")
        person.sees("in reply to: Make it a number")
        person.sees("    open('a.txt', 'w').write(")
        person.says("%why a.txt:1")
        person.sees("No block in this conversation changed line 1 of a.txt.")
        person.says("!echo more >> a.txt")
        person.says("%why a.txt:3")
        person.sees("which you ran yourself at ")
        person.says("%why nothing.txt")
        person.sees("There is no such")
        assert person.leaves() == 0


def interrupts_an_undo(person: Person, work: Path, times: int) -> bool:
    """Press Ctrl-C once an undo has begun to delete, and return whether it was in time."""
    interrupted = "Interrupted halfway."
    person.says("%undo -y")
    until(lambda: len(os.listdir(work)) < 3000, "the first file to go")
    person.types(CTRL_C)
    person.wait_until(lambda: interrupted in person.screen or person.screen.count("Undone") == times, interrupted)
    return interrupted in person.screen


def test_an_interrupted_undo_is_reported_and_can_be_resumed(work: Path) -> None:
    with ModelServer([]) as server, someone("-y", server=server) as person:
        person.says(">>> _ = [open(f'f{number}', 'w').close() for number in range(3000)]")
        person.sees("files: created")
        person.at_prompt()
        for times in range(1, 21):  # try again if the undo was faster than the key
            if interrupts_an_undo(person, work, times):
                break
            person.says("%redo -y")
            person.sees("Redone", times)
        assert 0 < len(os.listdir(work)) < 3000
        person.says("%undo -y")
        person.sees("Undone")
        assert not os.listdir(work)
        assert person.leaves() == 0


@pytest.mark.full
@pytest.mark.needs("node")
def test_rerun_restores_javascript_variables(work: Path) -> None:
    with ModelServer([]) as server, someone("-y", server=server) as person:
        for code in ("let n = 1; 'one'", "n = 2; 'two'"):
            (work / "block.js").write_text(code)
            person.says("%run block.js")
            person.sees(code[-4:-1])
        person.says("%undo")
        person.sees("Can't restore the JavaScript variables: not possible in this language")
        person.sees("again (%rerun javascript)")
        assert "Not covered" not in person.screen
        person.says("%rerun javascript")
        person.sees("1 of 1 blocks were run again.")
        (work / "block.js").write_text("`n is ${n}`")
        person.says("%run block.js")
        person.sees("n is 1")
        assert person.leaves() == 0


@pytest.mark.full
def test_user_blocks_are_undone_one_by_one(work: Path) -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        person.says("!echo a > a.txt")
        person.sees("files: created a.txt")
        person.says("%% echo b > b.txt")
        person.sees("files: created b.txt")
        person.says("%undo -y")
        person.sees("Undone: 1 file, the Shell variables.")
        assert [path.name for path in work.iterdir()] == ["a.txt"]
        person.says("%undo -y")
        person.sees("Undone: 1 message, 1 file, the Shell variables.")
        assert not list(work.iterdir())
        assert person.leaves() == 0


def test_a_resumed_conversation_can_be_undone(work: Path) -> None:
    replies = [tool_call("python", writing("a.txt", "a", "x = 5; ")), text("Done."), text("More.")]
    with ModelServer(replies) as server:
        with someone("-y", server=server) as person:
            person.says("Write it")
            person.sees("Done.")
            person.says("And more")
            person.sees("More.")
            person.says("%undo")
            person.sees("Undone:")
            assert person.leaves() == 0
        with someone("-y", "--continue", server=server) as person:
            person.says("%undo")
            person.sees("Variables from an earlier run of the session can't be restored")
            person.answers(QUESTION, "y")
            person.sees("Undone: 4 messages, 1 file.")
            assert not (work / "a.txt").exists()
            person.says("%redo -y")
            person.sees("Redone: 4 messages, 1 file.")
            person.says("%branch")
            person.sees("a new conversation")
            person.says("%undo -y")
            person.sees("Undone: 4 messages, 1 file.", times=2)
            person.sees("Undone: 4 messages, 1 file.", times=2)
            assert not (work / "a.txt").exists()
            assert person.leaves() == 0


@pytest.mark.full
def test_a_reset_without_history_can_be_undone(work: Path) -> None:
    profile = work.parent / "unsaved.yaml"
    profile.write_text("conversation_history: false\n")
    arguments = ("-y", "--profile", str(profile))
    replies = [tool_call("python", writing("a.txt", "a")), text("Done.")]
    with ModelServer(replies) as server, someone(*arguments, server=server) as person:
        person.says("Write it")
        person.sees("Done.")
        person.says("%why a.txt")
        person.sees("who approved it is not recorded")
        person.says("%undo -y")
        person.sees("Undone: 4 messages, 1 file")
        person.says("%redo -y")
        person.sees("Redone: 4 messages, 1 file")
        person.says("%reset -y")
        person.sees("Cleared. Until you exit, %undo brings the conversation and the variables back")
        person.says("%undo")
        person.sees("Reset undone: 4 messages and the variables are back.")
        person.says("%undo -y")
        person.sees("ran before this session loaded the conversation")
        assert (work / "a.txt").exists()
        assert person.leaves() == 0


def test_a_reset_asks_and_can_be_undone(work: Path) -> None:
    replies = [tool_call("python", writing("a.txt", "a", "x = 41; ")), text("Done."), text("New."), text("Old.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("Write it")
        person.sees("Done.")
        person.says("%reset")
        person.answers("Clear the conversation and all variables? Files are not touched. (y/n)", "n")
        person.sees("Nothing changed.")
        person.says("%reset")
        person.answers("Files are not touched. (y/n)", "y", times=2)
        person.sees("Cleared.")
        person.says(">>> 'x' in globals()")
        person.sees("False")
        person.says("Something else")
        person.sees("New.")
        assert "Write it" not in str(server.requests[-1].messages)
        person.says("%undo 2 -y")
        person.sees("Undone:")
        person.says("%undo")
        person.sees("Reset undone: 4 messages and the variables are back.")
        person.says(">>> x + 1")
        person.sees("42")
        person.says("And before?")
        person.sees("Old.")
        assert "Write it" in str(server.requests[-1].messages)
        person.says("%undo 3 -y")
        person.sees("1 file")
        assert not (work / "a.txt").exists()
        assert person.leaves() == 0


@pytest.mark.full
def test_undo_works_in_plain_mode(work: Path) -> None:
    replies = [tool_call("python", writing("a.txt", "a")), text("Done.")]
    with ModelServer(replies) as server, someone("-y", "--plain", server=server) as person:
        person.at_prompt()
        person.types("Write it" + ENTER)
        person.sees("files: created a.txt\n")
        person.sees("Done.")
        person.at_prompt()
        person.types("%rewind" + ENTER)
        person.sees("%rewind NUMBER goes back")
        person.at_prompt()
        person.types("%undo" + ENTER)
        person.answers(QUESTION, "y")
        person.sees("Undone: 4 messages, 1 file")
        assert not (work / "a.txt").exists()
        person.at_prompt()
        person.types("%exit" + ENTER)
        assert person.ends() == 0
