"""A session on another machine: approval, journal and undo stay local, code and files are remote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import SettingError, UndoError
from model_server import text, tool_call
from remote.sshd import SSHD, Sshd, sshd

__all__ = ["chatting"]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an sshd that logs in others"),
    pytest.mark.skipif(not os.path.exists(SSHD), reason="sshd is not installed"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def remote_folder(server: Sshd) -> Path:
    """The empty workspace on the other machine."""
    for each in server.workspace.iterdir():
        each.unlink()
    return server.workspace


def move_to(interpreter: OpenInterpreter, server: Sshd) -> OpenInterpreter:
    interpreter.computer.remote_ssh = server.command
    interpreter.computer.remote = server.url()
    return interpreter


@pytest.fixture
def interpreter(server: Sshd) -> Iterator[OpenInterpreter]:
    made = move_to(OpenInterpreter(), server)
    yield made
    made.computer.terminate()
    made.timeline.reset()


def output(interpreter: OpenInterpreter, code: str, language: str = "python") -> str:
    shown = interpreter.computer.run(language, code)
    return "".join(each["content"] for each in shown if each["type"] == "console" and each["format"] == "output")


def test_remote_variables_are_listed_locally(interpreter: OpenInterpreter, remote_folder: Path, home: Path) -> None:
    assert output(interpreter, "import os; x = 41; print(os.getcwd())") == f"{remote_folder}\n"
    assert interpreter.computer.context.cwd == str(remote_folder)
    assert [each.name for each in interpreter.computer.variables()["Python"]] == ["x"]
    assert output(interpreter, "echo $((x + 1)); pwd", "shell") == f"1\n{remote_folder}\n"


def test_undo_restores_remote_files_and_variables(interpreter: OpenInterpreter, remote_folder: Path) -> None:
    (remote_folder / "data.csv").write_text("a\n1\n")
    output(interpreter, "x = 1")
    output(interpreter, "x = 2; open('data.csv', 'w').write('gone'); open('new.txt', 'w').write('n')")
    assert (remote_folder / "new.txt").exists()
    result = interpreter.undo(blocks=True)
    assert result.files is not None
    assert sorted(result.files.restored) == ["data.csv", "new.txt"]
    assert (remote_folder / "data.csv").read_text() == "a\n1\n"
    assert not (remote_folder / "new.txt").exists()
    assert output(interpreter, "print(x)") == "1\n"


@pytest.mark.full
def test_redo_restores_remote_files_and_variables(interpreter: OpenInterpreter, remote_folder: Path) -> None:
    output(interpreter, "x = 1")
    output(interpreter, "x = 2; open('new.txt', 'w').write('n')")
    interpreter.undo(blocks=True)
    interpreter.redo(blocks=True)
    assert (remote_folder / "new.txt").read_text() == "n"
    assert output(interpreter, "print(x)") == "2\n"


def test_the_approval_question_and_the_prompt_name_the_machine(
    chatting: Chatting, server: Sshd, remote_folder: Path
) -> None:
    code = tool_call("execute", {"language": "python", "code": "open('a.txt', 'w').write('1'); print('done')"})
    interpreter, model = chatting(code, text("Done."))
    move_to(interpreter, server)
    chunks = list(interpreter.chat("go", display=False, stream=True))
    (question,) = [chunk for chunk in chunks if chunk["type"] == "confirmation"]
    assert question["effects"][:2] == ["Runs on root@127.0.0.1", "Writes a.txt"]
    assert question["undo"]["kind"] == "reversible"
    assert (remote_folder / "a.txt").read_text() == "1"
    (files,) = [chunk for chunk in chunks if chunk.get("format") == "files"]
    assert [each["path"] for each in files["content"]["changed"]] == ["a.txt"]
    said = model.requests[0].body["messages"][0]["content"]
    assert f"(root@127.0.0.1, not the user's own machine) as root, in {remote_folder}" in said


def test_remote_calls_to_local_tools_need_approval(chatting: Chatting, server: Sshd, remote_folder: Path) -> None:
    code = "print(computer.clipboard.view())\ntry:\n    computer.files.search('x')\nexcept Exception as e: print(e)"
    interpreter, _ = chatting(tool_call("execute", {"language": "python", "code": code}), text("Done."), auto_run=True)
    move_to(interpreter, server)
    asked: list[str] = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation" and (pending := interpreter.pending) is not None:
            asked.append(getattr(pending, "words", "") or "")
    assert len(asked) == 1
    assert "Code on root@127.0.0.1 is calling a tool on this machine" in asked[0]
    printed = "".join(str(each["content"]) for each in interpreter.messages if each["type"] == "console")
    assert "was not called" in printed or "PermissionError" in printed


def test_a_local_sandbox_refuses_remote_code(interpreter: OpenInterpreter, remote_folder: Path) -> None:
    interpreter.sandbox = "workspace"
    shown = output(interpreter, "open('a.txt', 'w')")
    assert "can't contain code on root@127.0.0.1" in shown
    assert not (remote_folder / "a.txt").exists()


def test_remote_sessions_cannot_be_forked_or_previewed(interpreter: OpenInterpreter, remote_folder: Path) -> None:
    output(interpreter, "x = 1")
    with pytest.raises(UndoError, match="can't be forked"):
        interpreter.fork()
    assert not interpreter.computer.runtimes.can_dry_run("python")


@pytest.mark.full
def test_reset_ends_remote_runtimes(interpreter: OpenInterpreter, remote_folder: Path) -> None:
    output(interpreter, "x = 1")
    interpreter.reset()
    assert "NameError" in output(interpreter, "print(x)")


@pytest.mark.full
def test_a_named_machine_has_its_own_languages_and_folder(server: Sshd, remote_folder: Path, tmp_path: Path) -> None:
    made = OpenInterpreter(workspace=str(tmp_path))
    made.computer.remote_ssh, made.computer.remotes = server.command, {"gpu": server.url()}
    try:
        assert output(made, "x = 'here'; import os; print(os.getcwd())") == f"{tmp_path}\n"
        made.stream_all = True
        code = "x = 'there'; import os; print(os.getcwd()); open('r.txt', 'w').close()"
        shown = [str(chunk["content"]) for chunk in made.computer.run("python@gpu", code, stream=True)]
        assert f"{remote_folder}\n" in shown
        assert any("Files on gpu are not covered by undo" in each for each in shown)
        assert output(made, "print(x)") == "here\n"
        assert output(made, "print(x)", "python@gpu") == "there\n"
        assert made.computer.context.cwd == str(tmp_path)
        output(made, "rows = [1, 2]; share('rows')")
        assert output(made, "total = sum(rows); share('total'); print(total)", "python@gpu") == "3\n"
        assert output(made, "print(total + 1)") == "4\n"
        assert made.approver.analyze("python@gpu", "open('r.txt', 'w')").lines()[0] == "Runs on gpu"
        output(made, "x = 'changed'", "python@gpu")
        made.undo(blocks=True)
        assert output(made, "print(x)", "python@gpu") == "there\n"
    finally:
        made.computer.terminate()
        made.timeline.reset()


@pytest.mark.parametrize(
    "remotes",
    [{"a b": "ssh://host"}, {"gpu": 3}, {"gpu": "ftp://host"}],
    ids=["name with a space", "number", "other scheme"],
)
def test_invalid_addresses_in_the_settings_are_rejected(remotes: dict[str, Any]) -> None:
    interpreter = OpenInterpreter()
    interpreter.computer.remotes = remotes
    with pytest.raises(SettingError, match="ssh://user@host/folder"):
        _ = interpreter.computer.languages


def test_a_named_machine_is_not_contacted_before_its_first_block() -> None:
    interpreter = OpenInterpreter()
    interpreter.computer.remotes = {"gpu": "ssh://nowhere.invalid/"}
    described = interpreter.computer.runtimes.describe_languages()
    assert "python@gpu, shell@gpu, javascript@gpu" in described
    assert "ruby@gpu" not in described
    shown = output(interpreter, "1", "python@gpu")
    assert "Can't connect to nowhere.invalid" in shown
    interpreter.computer.terminate()
    interpreter.timeline.reset()


@pytest.mark.full
def test_undo_leaves_files_of_a_closed_keeper_unchanged(
    interpreter: OpenInterpreter, server: Sshd, remote_folder: Path
) -> None:
    output(interpreter, "open('a.txt', 'w').write('1')")
    interpreter.computer.machine.close()
    output(interpreter, "x = 1")
    plan = interpreter.timeline.plan(interpreter.timeline.destination("undo", 2, blocks=True))
    assert any("stay as they are: the workspace was" in note for note in plan.notes)
    interpreter.undo(2, blocks=True)
    assert (remote_folder / "a.txt").exists()
