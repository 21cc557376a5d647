"""Without a terminal: standard input is the message, the reply is plain text, and the exit code gives the result."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from model_server import ModelServer, error, stall, text, tool_call
from sampling import some
from terminal.person import PROGRAM, Person

pytestmark = pytest.mark.usefixtures("no_strays")


Done = subprocess.CompletedProcess[str]


def run(server: ModelServer | None, *arguments: str, stdin: str | bytes = "") -> Done:
    where = ["--api_base", server.base_url, "--api_key", "key"] if server else []
    given = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *where, *arguments], input=given, capture_output=True, timeout=100
    )
    decoded = (done.stdout.decode(), done.stderr.decode())
    return subprocess.CompletedProcess(done.args, done.returncode, *decoded)


@pytest.mark.parametrize(
    "flags", some(1, [["--stdin", "-y"], pytest.param(["-y"], marks=pytest.mark.full), ["-y", "--plain"]])
)
def test_a_turn_is_printed_as_plain_text(flags: list[str]) -> None:
    replies = [text("I will **run** it.").then(tool_call("python", "print(6 * 7)")), text("It is 42.")]
    with ModelServer(replies) as server:
        done = run(server, *flags, stdin="What is\nsix times seven?\n")
        assert server.requests[0].messages[-1]["content"] == "What is\nsix times seven?"
    assert done.stdout == "I will **run** it.\n\n```python\nprint(6 * 7)\n```\n\n42\n\nIt is 42.\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_an_invented_number_is_a_notice_on_standard_error() -> None:
    with ModelServer([tool_call("python", "print('ok')"), text("The mean is 3.48.")]) as server:
        done = run(server, "-y", stdin="mean?")
    assert done.stdout.endswith("ok\n\nThe mean is 3.48.\n")
    assert (done.returncode, done.stderr) == (0, "3.48 is not in any output.\n")


@pytest.mark.full
def test_output_is_complete_and_without_colours() -> None:
    code = "for n in range(3000): print(f'\\x1b[31m{n}\\x1b[0m')\nprint('x' * 10000)\nprint('1%\\r2%')"
    with ModelServer([tool_call("python", code), text("Done.")]) as server:
        done = run(server, "-y", stdin="go")
    shown = done.stdout.split("```\n\n")[1]
    assert shown == "".join(f"{n}\n" for n in range(3000)) + "x" * 10000 + "\n2%\n\nDone.\n"


def test_code_is_not_run_without_approval() -> None:
    with ModelServer([tool_call("python", "print(6 * 7)")]) as server:
        done = run(server, stdin="go")
    assert done.returncode == 4
    assert "42" not in done.stdout
    assert "-y" in done.stderr


def test_input_in_code_raises_eof_error() -> None:
    code = "try: input('Name? ')\nexcept EOFError: print('nobody')"
    with ModelServer([tool_call("python", code), text("Alone.")]) as server:
        done = run(server, "-y", stdin="go")
    assert done.returncode == 0
    assert "nobody" in done.stdout


@pytest.mark.parametrize("words", [["Make", "a", "venv"], ["--plain", "Make a venv"]])
def test_words_on_the_command_line_are_the_message(words: list[str]) -> None:
    with ModelServer([text("Made.")]) as server:
        done = run(server, *words)
        assert server.requests[0].messages[-1]["content"] == "Make a venv"
    assert done.stdout == "Made.\n"
    assert done.returncode == 0


def test_words_before_options_become_a_sentence_for_a_quick_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    with ModelServer([text("Done.")]) as server:
        where = [f"--api_base={server.base_url}", "--api_key=key"]
        done = run(None, "want", "order", *where)
        system = server.requests[0].messages[0]["content"]
        assert server.requests[0].messages[-1]["content"] == "I want order"
    assert done.returncode == 0
    assert "notes.txt" in system
    assert "quick" in system


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--modle", "x"], 2, "--model"),
        ([], 2, "standard input is empty"),
        (["--serve", "--host", "0.0.0.0", "--model", "gpt-4o"], 2, "--server_cert"),
        (["hello"], 3, "OPENAI_API_KEY"),
        (["hello", "--model", "acme/model"], 3, "acme"),
    ],
)
def test_errors_go_to_standard_error(arguments: list[str], code: int, said: str) -> None:
    done = run(None, *arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_rejected_key_ends_with_an_error() -> None:
    with ModelServer([error(401, "wrong key")]) as server:
        done = run(server, stdin="Hi")
    assert done.returncode == 3
    assert done.stderr.count("wrong key") == 1
    assert done.stdout == ""


def test_input_that_is_not_utf_8_is_accepted() -> None:
    with ModelServer([text("Ünïcode ✓")]) as server:
        done = run(server, stdin=b"caf\xe9")
    assert done.returncode == 0
    assert done.stdout == "Ünïcode ✓\n"


def test_an_interrupt_ends_with_exit_code_130() -> None:
    with ModelServer([text("Begun").then(stall())]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *where, "go"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert server.stalled.wait(60)
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.read(5) == b"Begun"
        os.kill(child.pid, signal.SIGINT)
        with child.stdout, child.stderr:
            assert child.stdout.read() == b"\n"
            assert child.stderr.read() == b"Interrupted.\n"
        assert child.wait(60) == 130


def test_a_closed_pipe_prints_no_traceback() -> None:
    go_on = threading.Event()
    with ModelServer([text("first\n").then(stall(go_on)).then(text("x" * 200_000))]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *where, "go"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        go_on.set()
        errors = child.stderr.read()
        child.stderr.close()
        child.wait(60)
    assert errors == b""


@pytest.mark.full
def test_a_line_reports_the_fallback_model() -> None:
    with ModelServer([error(503), text("Hello.")]) as server:
        done = run(server, "--max_retries", "0", "--fallback_model", "gpt-4o-mini", stdin="Hi")
    assert "gpt-4o: server problem. gpt-4o-mini answers instead." in done.stdout + done.stderr
    assert "Hello." in done.stdout
    assert done.returncode == 0


def test_an_exhausted_budget_ends_with_an_error() -> None:
    with ModelServer([text("Hello.")]) as server:
        done = run(server, "--max_budget", "0.000001", stdin="Hi")
        assert server.requests == []
    assert done.returncode == 5
    assert "--max_budget" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_approval_works_with_piped_input_at_a_terminal() -> None:
    with ModelServer([tool_call("python", "print(6 * 7)"), text("Done.")]) as server:
        program = [sys.executable, "-c", PROGRAM, "--api_base", server.base_url, "--api_key", "key"]
        person = Person(["sh", "-c", f"echo count | {shlex.join(program)}"])
        person.answers("Run? [y]es  [n]o", "y")
        person.sees("Done.")
        assert person.ends() == 0
        assert "42" in person.rows
        person.close()
