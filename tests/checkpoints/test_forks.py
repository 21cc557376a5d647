"""Forks: each has its own variables, conversation and workspace, and one of them is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import UndoError
from interpreter.tools import Tool, Toolbox
from model_replies import text, tool_call, usage

__all__ = ["chatting"]


def output_of(interpreter: OpenInterpreter, language: str, code: str) -> str:
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


def test_forks_share_earlier_variables_but_not_later_changes(first: OpenInterpreter, second: OpenInterpreter) -> None:
    assert output_of(second, "python", "x.append(2); print(x)") == "[1, 2]\n"
    assert output_of(first, "python", "print(x)") == "[1]\n"
    assert output_of(second, "shell", "echo $y; y=6") == "5\n"
    assert output_of(first, "shell", "echo $y") == "5\n"


def test_a_fork_has_no_variables_of_an_undone_shell_block(first: OpenInterpreter) -> None:
    first.undo(1, blocks=True)
    second = first.fork()
    assert output_of(second, "shell", "echo [$y]") == "[]\n"
    second.computer.terminate()


def test_a_fork_works_in_the_same_subfolder_of_a_copied_workspace(work: Path, second: OpenInterpreter) -> None:
    assert Path(output_of(second, "shell", "pwd").strip()) == Path(second.workspace) / "sub"
    second.computer.run("python", "open('../a.txt', 'w').write('two')")
    assert (Path(second.workspace) / "a.txt").read_text() == "two"
    assert (work / "a.txt").read_text() == "one\n"


def test_a_fork_has_the_tools_of_its_parent_and_its_own_built_in_ones(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def toolbox(built_in: list[Tool]) -> Toolbox:
        return Toolbox([*built_in, Tool("look", "Looks.", {"type": "object"}, lambda given: None)])

    monkeypatch.setattr("interpreter.agent.agent.Toolbox", toolbox)
    interpreter = OpenInterpreter(workspace=str(work))
    interpreter.tools.append(Tool("note", "Notes.", {"type": "object"}, lambda given: None))
    child = interpreter.fork()
    assert child.tools.names == ["execute", "look", "note"]
    assert child.tools["note"] is interpreter.tools["note"] and child.tools["look"] is not interpreter.tools["look"]
    child.computer.terminate()


def test_a_fork_inherits_settings_and_conversation(chatting: Chatting, work: Path) -> None:
    interpreter, _ = chatting(text("Hello.").then(usage(1000, 100)), workspace=str(work), max_output=1234)
    interpreter.chat("Hi", display=False)
    child = interpreter.fork()
    assert child.messages == interpreter.messages and child.messages is not interpreter.messages
    assert child.max_output == 1234 and child.llm.model == interpreter.llm.model
    assert child.journal.id not in (None, interpreter.journal.id)
    assert child.llm.cost == interpreter.llm.cost != 0 and child.journal.usage.tokens == 1100
    child.messages.append({"role": "user", "type": "message", "content": "more"})
    assert len(interpreter.messages) == 2


def test_keeping_a_fork_merges_its_files_into_the_workspace(work: Path, second: OpenInterpreter) -> None:
    second.computer.run("python", "x.append(2); open('new.txt', 'w').write('n'); open('../a.txt', 'w').write('two')")
    folder = Path(second.workspace)
    merged = second.keep()
    assert sorted(merged.paths) == ["a.txt", "sub/new.txt"] and merged.kept == []
    assert (work / "a.txt").read_text() == "two" and (work / "sub/new.txt").read_text() == "n"
    assert second.workspace == str(work.resolve()) and not folder.exists()
    assert output_of(second, "python", "import os; print(x, os.getcwd())") == f"[1, 2] {work.resolve()}/sub\n"


def test_keeping_a_fork_can_be_undone(work: Path, second: OpenInterpreter) -> None:
    second.computer.run("shell", "rm ../a.txt; echo n > new.txt")
    second.keep()
    assert not (work / "a.txt").exists()
    second.undo()
    assert (work / "a.txt").read_text() == "one\n" and not (work / "sub/new.txt").exists()


def test_blocks_of_a_kept_fork_can_be_undone(work: Path, second: OpenInterpreter) -> None:
    second.computer.run("python", "x.append(2); open('../a.txt', 'w').write('two')")
    second.keep()
    assert second.undo(2).sentences == [] and (work / "a.txt").read_text() == "one\n"
    assert output_of(second, "python", "import os; print(x, os.getcwd())") == f"[1] {work.resolve()}/sub\n"


def test_undo_past_the_start_of_a_fork_only_reverts_the_conversation(chatting: Chatting, work: Path) -> None:
    code = "open('a.txt', 'w').write('two')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), workspace=str(work), auto_run=True)
    interpreter.chat("Hi", display=False)
    child = interpreter.fork()
    undone = child.undo()
    assert child.messages == [] and (Path(child.workspace) / "a.txt").read_text() == "two"
    assert [words for words in undone.sentences if "stay as they are" in words]
    child.computer.terminate()


def test_the_system_prompt_names_the_workspace_after_keeping_a_fork(chatting: Chatting, work: Path) -> None:
    interpreter, server = chatting(text("One."), text("Two."), workspace=str(work))
    child = interpreter.fork()
    child.chat("Hi", display=False)
    folder = child.workspace
    assert f"in {folder}" in server.requests[0].messages[0]["content"]
    child.keep()
    child.chat("Hi", display=False)
    system = server.requests[1].messages[0]["content"]
    assert f"in {work.resolve()}" in system and folder not in system


def test_files_changed_in_both_sessions_are_not_merged(
    work: Path, first: OpenInterpreter, second: OpenInterpreter
) -> None:
    second.computer.run("python", "open('../a.txt', 'w').write('two'); open('b', 'w').write('b')")
    first.computer.run("python", "open('../a.txt', 'w').write('mine')")
    merged = second.keep()
    assert [kept.path for kept in merged.kept] == ["a.txt"]
    assert (work / "a.txt").read_text() == "mine" and (work / "sub/b").read_text() == "b"


def test_files_changed_in_both_sessions_are_overwritten_on_request(
    work: Path, first: OpenInterpreter, second: OpenInterpreter
) -> None:
    second.computer.run("python", "open('../a.txt', 'w').write('two')")
    first.computer.run("python", "open('../a.txt', 'w').write('mine')")
    assert second.keep(overwrite=["a.txt"]).kept == []
    assert (work / "a.txt").read_text() == "two"


def test_dropping_a_fork_leaves_nothing_behind(work: Path, first: OpenInterpreter, second: OpenInterpreter) -> None:
    second.computer.run("python", "open('../a.txt', 'w').write('two')")
    folder = Path(second.workspace)
    second.drop()
    assert (work / "a.txt").read_text() == "one\n" and not folder.exists()
    assert output_of(first, "python", "print(x)") == "[1]\n"


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


def test_forks_share_installed_packages(work: Path) -> None:
    (work / ".venv").mkdir()
    (work / ".venv/pyvenv.cfg").write_text("")
    child = OpenInterpreter(workspace=str(work)).fork()
    assert (Path(child.workspace) / ".venv").readlink() == work / ".venv"
    child.keep()
    assert (work / ".venv/pyvenv.cfg").exists() and not (work / ".venv").is_symlink()
