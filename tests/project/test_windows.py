"""On Windows the package imports and chats, and unsupported blocks report an error. On other systems Windows is simulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interpreter.frontends.cli import version_line
from interpreter.frontends.flags import help_text
from interpreter.frontends.terminal.approval import QUESTION
from model_server import ModelServer, text, tool_call

TESTS = Path(__file__).parents[1]
PYTHON = [sys.executable] if sys.platform == "win32" else [sys.executable, str(TESTS / "pretend_windows.py")]
ENVIRONMENT = {"PYTHONIOENCODING": "cp1252", "USERNAME": "me"}
if sys.platform != "win32":  # where files open as UTF-8 even if we forget the encoding
    ENVIRONMENT["PYTHONWARNDEFAULTENCODING"] = "1"


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PYTHON, *arguments],
        input=stdin,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        encoding="cp1252",
        timeout=100,
    )


def chat(server: ModelServer, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    model = ["--model", "openai/scripted", "--api_base", server.base_url, "--api_key", "x"]
    return run("-m", "interpreter", *model, *arguments, stdin=stdin)


def test_a_program_chats_and_runs_supported_blocks() -> None:
    block, here = tool_call("python", "print(6 * 7)"), tool_call("python", "n = 6 * 7\nprint(n)")
    with ModelServer([text("Hello."), block, text("It did not run."), here, text("It is 42 → done.")]) as server:
        done = run(str(TESTS / "project" / "windows_conversation.py"), server.base_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "```python\nn = 6 * 7\nprint(n)\n```\n\n42\n\nIt is 42 ? done.\n"
    assert any("in-process" in str(request.body) for request in server.requests)


@pytest.mark.parametrize(("flag", "output"), [("--version", version_line()), ("--help", help_text())])
def test_version_and_help_are_printed(flag: str, output: str) -> None:
    done = run("-m", "interpreter", flag)
    assert (done.returncode, done.stdout, done.stderr) == (0, output + "\n", "")


@pytest.mark.parametrize("flags", [["--stdin"], ["-y"]])
def test_a_message_from_a_pipe_is_answered(flags: list[str]) -> None:
    with ModelServer([text("Hello.")]) as server:
        done = chat(server, *flags, stdin="hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")


def test_events_report_unsupported_blocks() -> None:
    with ModelServer([tool_call("shell", "ls"), text("Not here.")]) as server:
        done = chat(server, "--json", "-y", "list the files")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert any("Shell blocks need Linux or macOS." in str(event) for event in events)


@pytest.mark.skipif(sys.platform == "win32", reason="drives a pseudo-terminal")
def test_a_terminal_conversation_is_plain() -> None:
    from terminal.person import CTRL_C, Person

    replies = [text("Hello."), tool_call("python", "print(6 * 7)"), text("Then not.")]
    with ModelServer(replies) as server:
        model = ["--model", "openai/scripted", "--api_base", server.base_url, "--api_key", "x"]
        person = Person([*PYTHON, "-m", "interpreter", *model], env=ENVIRONMENT | {"PYTHONIOENCODING": "utf-8"})
        try:
            person.says("hi")
            person.sees("Hello.")
            person.says("count")
            person.answers(QUESTION, "y")
            person.sees("Then not.")
            person.at_prompt()
            person.types(CTRL_C)
            person.sees("Press Ctrl-C again")
            person.says("%undo")
            person.sees("File undo needs Linux or macOS.")
            assert person.leaves() == 0
            assert "Python blocks need Linux or macOS." in person.screen
            assert "\x1b" not in person.raw
        finally:
            person.close()
