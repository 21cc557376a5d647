"""The question before a block runs: what counts as a yes, and that nothing else does."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from interpreter.frontends.terminal.approval import QUESTION
from model_server import ModelServer, stall, text, tool_call
from terminal.person import CTRL_C, CTRL_D, ENTER, someone

pytestmark = pytest.mark.usefixtures("no_strays")
RAN = "it ran"
CODE = "print('it' + ' ran')"


def test_a_no_returns_to_the_prompt() -> None:
    answers = ["n" + ENTER, "No" + ENTER, CTRL_C, CTRL_D]
    replies = [*[tool_call("python", CODE)] * len(answers), text("Fine.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        for number, answer in enumerate(answers, 1):
            person.says("run")
            person.sees(QUESTION, times=number)
            person.types(answer)
            person.at_prompt()
            assert len(server.requests) == number
        person.says("go on")
        person.sees("Fine.")
        assert RAN not in person.screen
        said = [message["content"] for message in server.requests[-1].messages]
        assert said.count("I have declined to run this code.") == len(answers)


def test_in_a_narrow_window_the_question_breaks_between_words() -> None:
    replies = [tool_call("python", CODE), text("Fine.")]
    with ModelServer(replies) as server, someone(server=server, columns=30) as person:
        person.says("run")
        person.answers("code? (y/n)", "y")
        person.sees("Fine.")
        assert "Would you like to run this" in person.rows


def test_words_after_a_no_go_to_the_model_at_once() -> None:
    answers = ["n use another way", "no, use another way"]
    replies = [tool_call("python", CODE), tool_call("python", CODE), text("Right away.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        for number, answer in enumerate(answers, 1):
            person.answers(QUESTION, answer, times=number)
        person.sees("Right away.")
        assert server.requests[-1].messages[-1]["content"].endswith("use another way")
        assert len(server.requests) == 3
        assert RAN not in person.screen


def test_anything_else_asks_again() -> None:
    answers = ["", "maybe", "ny", "yy", "yn", "run"]
    with ModelServer([tool_call("python", CODE), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        for number, answer in enumerate(answers, 1):
            person.answers(QUESTION, answer, times=number)
            person.sees("n and some words tell the model why not", times=number)
        assert RAN not in person.screen
        person.answers(QUESTION, "y", times=len(answers) + 1)
        person.sees("Done.")
        assert person.rows.count(RAN) == 1


@pytest.mark.parametrize("paste", ["\x1b[200~y\ry\r\x1b[201~\r", "y\ry\rmore\r"])
def test_a_paste_is_no_answer(paste: str) -> None:
    with ModelServer([tool_call("python", CODE)]) as server, someone(server=server) as person:
        person.says("run")
        person.sees(QUESTION)
        person.types(paste)
        person.sees(QUESTION, times=2)
        assert RAN not in person.screen


def test_what_was_typed_before_the_question_is_no_answer() -> None:
    go_on = threading.Event()
    reply = text("Wait. ").then(stall(go_on)).then(tool_call("python", CODE))
    with ModelServer([reply, text("Second.")]) as server, someone(server=server) as person:
        person.says("run")
        person.sees("Wait.")
        person.types("y" + ENTER + "y")
        person.sees("› y ⏎ y")
        go_on.set()
        person.sees(QUESTION)
        person.types("n" + ENTER)
        person.sees("> y")
        person.sees("Second.")
        assert RAN not in person.screen
        assert server.requests[-1].messages[-1]["content"] == "y"


def test_e_opens_the_editor_and_asks_about_what_it_leaves(tmp_path: Path) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\nsed -i s/ran/walked/ "$1"\n')
    editor.chmod(0o755)
    env = {"EDITOR": f"'{editor}'"}
    with (
        ModelServer([tool_call("python", CODE), text("Done.")]) as server,
        someone(server=server, env=env) as person,
    ):
        person.says("run")
        person.answers(QUESTION, "e")
        person.sees(QUESTION, times=2)
        assert "it walked" not in person.rows
        person.types("y" + ENTER)
        person.sees("Done.")
        assert "it walked" in person.rows
        assert "' walked'" in json.dumps(server.requests[-1].messages)


def test_the_editor_has_the_terminal_to_itself(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    asks = "printf 'Which'; printf ' word? '; read word"
    editor.write_text(f"#!/bin/sh\ntrap : INT\n{asks} || {{ {asks}; }}\n" + 'sed -i "s/ran/$word/" "$1"\n')
    editor.chmod(0o755)
    env = {"EDITOR": str(editor)}
    with (
        ModelServer([tool_call("python", CODE), text("Done.")]) as server,
        someone(server=server, env=env) as person,
    ):
        person.says("run")
        person.answers(QUESTION, "e")
        person.sees("Which word?")
        person.types(CTRL_C)  # is for the editor, as in vim
        person.sees("Which word?", times=2)
        before = len(person.raw)
        person.types("walked" + ENTER)
        person.sees(QUESTION, times=2)
        person.types("y" + ENTER)
        person.sees("Done.")
        assert "it walked" in person.rows
        assert person.raw[before:].lstrip().startswith("walked")  # shown by the terminal, and nothing was drawn
        assert "Interrupted" not in person.screen
        assert person.leaves() == 0


def test_an_editor_that_fails_asks_again() -> None:
    env = {"EDITOR": "/nowhere/editor"}
    with ModelServer([tool_call("python", CODE)]) as server, someone(server=server, env=env) as person:
        person.says("run")
        person.answers(QUESTION, "e")
        person.sees("The editor could not be used")
        person.sees(QUESTION, times=2)
        person.types(CTRL_C)
        assert person.leaves() == 0
