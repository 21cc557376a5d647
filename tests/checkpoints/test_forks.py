"""Two ways from one point: each with the variables, the conversation and a workspace of its own; one is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import UndoError
from model_replies import text, tool_call, usage

__all__ = ["chatting"]


def said(interpreter: OpenInterpreter, language: str, code: str) -> str:
    return "".join(str(message["content"]) for message in interpreter.computer.run(language, code))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture
def first(work: Path) -> Iterator[OpenInterpreter]:
    interpreter = OpenInterpreter(workspace=str(work))
    interpreter.computer.run("python", "x = [1]")
    interpreter.computer.run("shell", "y=5; cd sub")
    yield interpreter
    interpreter.computer.terminate()


@pytest.fixture
def second(first: OpenInterpreter) -> Iterator[OpenInterpreter]:
    child = first.fork()
    yield child
    child.computer.terminate()


def test_both_have_the_variables_and_neither_sees_the_other(first: OpenInterpreter, second: OpenInterpreter) -> None:
    assert said(second, "python", "x.append(2); print(x)") == "[1, 2]\n"
    assert said(first, "python", "print(x)") == "[1]\n"
    assert said(second, "shell", "echo $y; y=6") == "5\n"
    assert said(first, "shell", "echo $y") == "5\n"


def test_a_fork_after_the_first_block_of_the_shell_was_undone(first: OpenInterpreter) -> None:
    first.undo(1, blocks=True)
    second = first.fork()
    assert said(second, "shell", "echo [$y]") == "[]\n"
    second.computer.terminate()


def test_the_fork_is_in_the_same_place_of_another_folder(work: Path, second: OpenInterpreter) -> None:
    assert Path(said(second, "shell", "pwd").strip()) == Path(second.workspace) / "sub"
    second.computer.run("python", "open('../a.txt', 'w').write('two')")
    assert (Path(second.workspace) / "a.txt").read_text() == "two"
    assert (work / "a.txt").read_text() == "one\n"


def test_settings_and_conversation_go_along(chatting: Chatting, work: Path) -> None:
    interpreter, _ = chatting(text("Hello.").then(usage(1000, 100)), workspace=str(work), max_output=1234)
    interpreter.chat("Hi", display=False)
    child = interpreter.fork()
    assert child.messages == interpreter.messages and child.messages is not interpreter.messages
    assert child.max_output == 1234 and child.llm.model == interpreter.llm.model
    assert child.journal.id not in (None, interpreter.journal.id)
    assert child.llm.cost == interpreter.llm.cost != 0 and child.journal.usage.tokens == 1100
    child.messages.append({"role": "user", "type": "message", "content": "more"})
    assert len(interpreter.messages) == 2


def test_keeping_the_fork_brings_its_files_and_goes_on_there(work: Path, second: OpenInterpreter) -> None:
    second.computer.run("python", "x.append(2); open('new.txt', 'w').write('n'); open('../a.txt', 'w').write('two')")
    folder = Path(second.workspace)
    merged = second.keep()
    assert sorted(merged.paths) == ["a.txt", "sub/new.txt"] and merged.kept == []
    assert (work / "a.txt").read_text() == "two" and (work / "sub/new.txt").read_text() == "n"
    assert second.workspace == str(work.resolve()) and not folder.exists()
    assert said(second, "python", "import os; print(x, os.getcwd())") == f"[1, 2] {work.resolve()}/sub\n"


def test_what_was_kept_can_be_taken_back(work: Path, second: OpenInterpreter) -> None:
    second.computer.run("shell", "rm ../a.txt; echo n > new.txt")
    second.keep()
    assert not (work / "a.txt").exists()
    second.undo()
    assert (work / "a.txt").read_text() == "one\n" and not (work / "sub/new.txt").exists()


def test_blocks_of_the_fork_are_taken_back_in_the_workspace(work: Path, second: OpenInterpreter) -> None:
    second.computer.run("python", "x.append(2); open('../a.txt', 'w').write('two')")
    second.keep()
    assert second.undo(2).sentences == [] and (work / "a.txt").read_text() == "one\n"
    assert said(second, "python", "import os; print(x, os.getcwd())") == f"[1] {work.resolve()}/sub\n"


def test_of_what_was_before_the_fork_only_the_words_are_taken_back(chatting: Chatting, work: Path) -> None:
    code = "open('a.txt', 'w').write('two')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), workspace=str(work), auto_run=True)
    interpreter.chat("Hi", display=False)
    child = interpreter.fork()
    undone = child.undo()
    assert child.messages == [] and (Path(child.workspace) / "a.txt").read_text() == "two"
    assert [words for words in undone.sentences if "stay as they are" in words]


def test_after_it_was_kept_the_model_is_told_where_it_is(chatting: Chatting, work: Path) -> None:
    interpreter, server = chatting(text("One."), text("Two."), workspace=str(work))
    child = interpreter.fork()
    child.chat("Hi", display=False)
    folder = child.workspace
    assert f"in {folder}" in server.requests[0].messages[0]["content"]
    child.keep()
    child.chat("Hi", display=False)
    system = server.requests[1].messages[0]["content"]
    assert f"in {work.resolve()}" in system and folder not in system


def test_what_was_changed_on_both_ways_stays(work: Path, first: OpenInterpreter, second: OpenInterpreter) -> None:
    second.computer.run("python", "open('../a.txt', 'w').write('two'); open('b', 'w').write('b')")
    first.computer.run("python", "open('../a.txt', 'w').write('mine')")
    merged = second.keep()
    assert [kept.path for kept in merged.kept] == ["a.txt"]
    assert (work / "a.txt").read_text() == "mine" and (work / "sub/b").read_text() == "b"


def test_unless_it_is_named(work: Path, first: OpenInterpreter, second: OpenInterpreter) -> None:
    second.computer.run("python", "open('../a.txt', 'w').write('two')")
    first.computer.run("python", "open('../a.txt', 'w').write('mine')")
    assert second.keep(overwrite=["a.txt"]).kept == []
    assert (work / "a.txt").read_text() == "two"


def test_dropping_the_fork_leaves_nothing(work: Path, first: OpenInterpreter, second: OpenInterpreter) -> None:
    second.computer.run("python", "open('../a.txt', 'w').write('two')")
    folder = Path(second.workspace)
    second.drop()
    assert (work / "a.txt").read_text() == "one\n" and not folder.exists()
    assert said(first, "python", "print(x)") == "[1]\n"


def test_a_fork_whose_origin_was_dropped_keeps_its_files(second: OpenInterpreter) -> None:
    third = second.fork()
    second.drop()
    with pytest.raises(UndoError, match="no longer exists"):
        third.keep()
    assert (Path(third.workspace) / "a.txt").exists()
    third.drop()


def test_only_a_fork_can_be_kept(first: OpenInterpreter) -> None:
    with pytest.raises(UndoError, match="not a fork"):
        first.keep()


def test_a_workspace_that_is_too_large_is_not_copied(work: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(work), undo_max_files=1)
    with pytest.raises(UndoError, match="Can't copy the workspace"):
        interpreter.fork()


def test_what_an_installer_put_there_is_shared(work: Path) -> None:
    (work / ".venv").mkdir()
    (work / ".venv/pyvenv.cfg").write_text("")
    child = OpenInterpreter(workspace=str(work)).fork()
    assert (Path(child.workspace) / ".venv").readlink() == work / ".venv"
    child.keep()
    assert (work / ".venv/pyvenv.cfg").exists() and not (work / ".venv").is_symlink()
