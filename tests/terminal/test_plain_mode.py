"""`--plain` on a terminal: the same conversation, line by line, for screen readers."""

from __future__ import annotations

import os
import pty
import threading

import pytest

from interpreter.frontends.terminal import tty
from interpreter.frontends.terminal.approval import OR_SAY, QUESTION
from interpreter.frontends.terminal.terminal import Terminal
from model_server import ModelServer, text, tool_call
from terminal.person import CTRL_C, CTRL_D, ENTER, someone

pytestmark = pytest.mark.usefixtures("no_strays")


def test_a_turn_has_no_escape_sequences() -> None:
    replies = [text("I will **count**.\n").then(tool_call("python", "print(6 * 7)")), text("Done.")]
    with ModelServer(replies) as server, someone("--plain", server=server) as person:
        person.says("count")
        person.answers(QUESTION, "y")
        person.sees("Done.")
        assert person.leaves() == 0
        assert "\x1b" not in person.raw
        assert person.rows[3:] == [  # below the greeting
            "> count",
            "",
            "I will **count**.",
            "",
            "```python",
            "print(6 * 7)",
            "```",
            "Changes no files",
            QUESTION + "  [p]review  [e]dit  [s]can  [a]lways  [b]ox",
            OR_SAY + " y",
            "",
            "42",
            "",
            "Done.",
            ">",
        ]


def test_a_paste_does_not_count_as_an_answer() -> None:
    with (
        ModelServer([tool_call("python", "print(6 * 7)")]) as server,
        someone("--plain", server=server) as person,
    ):
        person.says("count")
        person.sees(QUESTION)
        person.types("y\ny\n")
        person.sees(QUESTION, times=2)
        person.types(CTRL_C)
        person.at_prompt()
        assert "42" not in person.rows


def test_triple_quotes_and_leaving_work() -> None:
    with ModelServer([text("Read.")]) as server, someone("--plain", server=server) as person:
        person.at_prompt()
        person.types('"""one' + ENTER + 'two"""' + ENTER)
        person.sees("Read.")
        assert server.requests[0].messages[-1]["content"] == '"""one\ntwo"""'
        person.at_prompt()
        person.types(CTRL_C)
        person.sees("Press Ctrl-C again")
        person.types(CTRL_D)
        assert person.ends() == 0
        assert person.mode_is_restored


def test_keys_typed_as_a_question_appears_answer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    person, terminal = pty.openpty()

    class QuicklyAnswered(tty.Tty):
        def write(self, text: str) -> None:
            super().write(text)
            os.write(person, b"y\n")

    monkeypatch.setattr(tty.Tty, "in_foreground", True)
    monkeypatch.setenv("TERM", "xterm")
    giving_up = threading.Timer(30, os.write, (person, b"too late\n"))
    with (
        open(terminal, "r+b", buffering=0) as raw,
        open(raw.fileno(), encoding="utf-8", closefd=False) as stdin,
        open(raw.fileno(), "w", encoding="utf-8", closefd=False) as stdout,
    ):
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        tty.hide_early_keys()  # as at the start of the program
        giving_up.start()
        assert Terminal(plain=True, tty=QuicklyAnswered()).ask("Load it? ") == "y"
    giving_up.cancel()
    os.close(person)
