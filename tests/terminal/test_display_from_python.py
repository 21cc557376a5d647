"""`display=True` in the library: plain text without a terminal, drawn on one, with every chunk still yielded."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import LocalServerError
from model_server import ModelServer, text, tool_call
from terminal.person import Person

pytestmark = pytest.mark.usefixtures("no_strays")


def interpreter_for(server: ModelServer, **settings: Any) -> OpenInterpreter:
    interpreter = OpenInterpreter(**settings)
    interpreter.llm.api_base, interpreter.llm.api_key = server.base_url, "key"
    return interpreter


def test_chat_prints_plain_text_and_returns_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    with ModelServer([tool_call("python", "print(6 * 7)"), text("It is 42.")]) as server:
        interpreter = interpreter_for(server, auto_run=True)
        messages = interpreter.chat("go")
        interpreter.computer.terminate()
    assert capsys.readouterr().out == "```python\nprint(6 * 7)\n```\n\n42\n\nIt is 42.\n"
    assert [message["type"] for message in messages] == ["code", "console", "message"]


def test_chunks_are_the_same_with_and_without_display(capsys: pytest.CaptureFixture[str]) -> None:
    streams = []
    for display in (True, False):
        with ModelServer([text("Hello there.", split=3)]) as server:
            interpreter = interpreter_for(server)
            streams.append(list(interpreter.chat("Hi", display=display, stream=True)))
    assert streams[0] == streams[1]
    assert capsys.readouterr().out == "Hello there.\n"


def test_approval_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with ModelServer(
        [tool_call("python", "print(6 * 7)"), text("Done."), tool_call("python", "print(6 * 8)")]
    ) as server:
        interpreter = interpreter_for(server)
        interpreter.chat("go")
        interpreter.chat("again")
        interpreter.computer.terminate()
    shown = capsys.readouterr().out
    assert "\n42\n" in shown
    assert "\n48\n" not in shown


def test_computer_run_shows_and_returns_the_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    messages = interpreter.computer.run("python", "print('out')\n1 + 1", display=True)
    interpreter.computer.terminate()
    assert capsys.readouterr().out == "out\n2\n"
    assert messages[0]["content"] == "out\n2\n"


def test_display_message_prints_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    OpenInterpreter().display_message("> A **note**")
    assert capsys.readouterr().out == "> A **note**\n"


def test_local_setup_without_a_terminal_raises_an_error() -> None:
    with pytest.raises(LocalServerError, match="no terminal to ask at"):
        OpenInterpreter(offline=True).local_setup()


SCRIPT = """
from interpreter import OpenInterpreter
interpreter = OpenInterpreter()
interpreter.llm.api_base, interpreter.llm.api_key = {address!r}, "key"
interpreter.display_message("# A *title*")
messages = interpreter.chat("go")
interpreter.computer.terminate()
print(len(messages), input("more? "))
"""


def test_chat_draws_on_a_terminal_and_restores_it() -> None:
    with ModelServer([tool_call("python", "print(6 * 7)"), text("It is **42**.")]) as server:
        person = Person([sys.executable, "-c", SCRIPT.format(address=server.base_url)])
        person.answers("Run? [y]es  [n]o", "y")
        person.sees("It is 42.")
        person.answers("more?", "yes")
        person.sees("3 yes")
        assert person.ends() == 0
        assert "A title" in person.rows
        assert person.mode_is_restored
        person.close()


INSIDE_A_LOOP = """
import asyncio
from interpreter import OpenInterpreter

async def main():
    interpreter = OpenInterpreter()
    interpreter.llm.api_base, interpreter.llm.api_key = {address!r}, "key"
    print(len(interpreter.chat("go")), "messages")
    interpreter.computer.terminate()

asyncio.run(main())
"""


@pytest.mark.full
def test_a_question_can_be_asked_inside_a_running_event_loop() -> None:
    with ModelServer([tool_call("python", "print(6 * 7)"), text("It is **42**.")]) as server:
        person = Person([sys.executable, "-c", INSIDE_A_LOOP.format(address=server.base_url)])
        person.answers("Run? [y]es  [n]o", "y")
        person.sees("3 messages")
        assert person.ends() == 0
        assert person.mode_is_restored
        person.close()
