"""`p` at the approval: what the block would do is seen, and then applied, forgotten or edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.frontends.terminal.approval import APPLIED, DISCARDED, PREVIEW_BEGINS, PREVIEW_QUESTION, QUESTION
from model_server import ModelServer, text, tool_call
from preview.previewing import needs_views
from terminal.person import CTRL_C, Person, someone

pytestmark = [needs_views, pytest.mark.usefixtures("no_strays")]

CODE = "x = 40 + 2\nprint('it is', x)\nopen('new.txt', 'w').write('hello\\n')"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def asks_for_a_preview(person: Person, times: int = 1) -> None:
    person.answers(QUESTION, "p", times=times)
    person.sees(PREVIEW_QUESTION, times=times)


def test_it_is_seen_and_applied(workspace: Path) -> None:
    second = tool_call("python", "print('still', x)")
    replies = [tool_call("python", CODE), second, text("Done.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        asks_for_a_preview(person)
        for words in (PREVIEW_BEGINS, "it is 42", "+ created  new.txt", "+hello"):
            assert words in person.screen
        assert not (workspace / "new.txt").exists()
        person.types("y\r")
        person.sees(APPLIED)
        person.sees("files: created new.txt")
        person.answers(QUESTION, "y", times=2)
        person.sees("still 42")
        person.sees("Done.")
        assert person.screen.count("it is 42") == person.screen.count("files: created") == 1
        assert (workspace / "new.txt").read_text() == "hello\n"
        assert "it is 42" in str(server.requests[1].messages)


@pytest.mark.parametrize("answer", ["n\r", CTRL_C])
def test_it_is_forgotten_and_asked_about_again(workspace: Path, answer: str) -> None:
    with ModelServer([tool_call("python", CODE), text("Fine.")]) as server, someone(server=server) as person:
        person.says("run")
        asks_for_a_preview(person)
        person.types(answer)
        person.sees(DISCARDED)
        person.sees(QUESTION, times=2)
        assert not (workspace / "new.txt").exists()
        person.types("y\r")
        person.sees("Fine.")
        assert (workspace / "new.txt").exists()


def test_other_answers_explain(workspace: Path) -> None:
    with (
        ModelServer([tool_call("shell", "echo so > new.txt"), text("Fine.")]) as server,
        someone(server=server) as person,
    ):
        person.says("run")
        asks_for_a_preview(person)
        person.types("what\r")
        person.sees("y makes it real")
        person.sees(PREVIEW_QUESTION, times=2)
        person.types("d\r")
        person.sees("+so", times=2)
        person.sees(PREVIEW_QUESTION, times=3)
        person.types("y\r")
        person.sees("Fine.")
        assert (workspace / "new.txt").read_text() == "so\n"


def test_every_block_if_that_is_wanted(workspace: Path) -> None:
    replies = [tool_call("python", CODE), text("Done.")]
    with ModelServer(replies) as server, someone("--preview", server=server) as person:
        person.says("run")
        person.sees(PREVIEW_QUESTION)
        assert QUESTION not in person.screen
        person.types("y\r")
        person.sees("Done.")
        assert (workspace / "new.txt").exists()


@pytest.mark.needs("node")
def test_where_there_is_none_the_question_stays(workspace: Path) -> None:
    replies = [tool_call("javascript", "console.log(6 * 7)"), text("Fine.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "p")
        person.sees("cannot be previewed")
        person.sees("Nothing was run. What can be told from its text:")
        person.answers(QUESTION, "y", times=2)
        person.sees("42")
        person.sees("Fine.")


def test_ctrl_c_while_it_runs(workspace: Path) -> None:
    code = "open('new.txt', 'w').close(); print('beg' + 'un')\nimport time; time.sleep(1000)"
    with ModelServer([tool_call("python", code), text("Fine.")]) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "p")
        person.sees("begun")
        person.types(CTRL_C)
        person.at_prompt()
        assert not (workspace / "new.txt").exists()
        person.says("go on")
        person.sees("Fine.")
