"""Exit codes, limits and piped input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interpreter.frontends.exit_codes import MEANINGS
from interpreter.frontends.flags import help_text
from interpreter.policy.files import user_file
from model_server import ModelServer, text, tool_call
from profiles.programs import interpreter
from sampling import some
from terminal.person import PROGRAM, someone

pytestmark = pytest.mark.usefixtures("no_strays")
DOCS = Path(__file__).parent.parent.parent / "docs" / "headless.md"


def test_exit_codes_are_documented() -> None:
    page = DOCS.read_text("utf-8").replace("`", "")
    for code, words in MEANINGS.items():
        assert f"  {code:<4} {words}" in help_text()
        assert f"| {code} | {words} |" in page


def counting(body: dict[str, Any]) -> Any:
    return tool_call("python", f"print({len(body['messages'])})")


@pytest.mark.full
def test_max_turns_limits_the_requests() -> None:
    with ModelServer([counting], repeat=True) as server:
        done = interpreter("-y", "--plain", "--max-turns", "2", "go", server=server)
        assert len(server.requests) == 2
    assert done.returncode == 5
    assert "max_turns" in done.stderr
    assert "2\n" in done.stdout
    with ModelServer([counting, text("Done.")]) as server:
        assert interpreter("-y", "--plain", "--max_turns", "2", "go", server=server).returncode == 0


@pytest.mark.parametrize("output_option", some(1, ["--plain", "--json"]))
def test_max_blocks_limits_the_blocks(output_option: str) -> None:
    with ModelServer([counting], repeat=True) as server:
        done = interpreter("-y", output_option, "--max_blocks", "1", "go", server=server)
    assert done.returncode == 5
    assert "max_blocks" in done.stdout


@pytest.mark.full
def test_a_repeated_block_is_not_a_reached_limit() -> None:
    same = tool_call("python", "print(1)")
    with ModelServer([same, same, same, text("I give up.")]) as server:
        done = interpreter("-y", "--plain", "go", server=server)
    assert done.returncode == 0


def test_declining_ends_with_exit_code_4() -> None:
    with (
        ModelServer([tool_call("python", "print(6 * 7)")]) as server,
        someone("--plain", "go", server=server) as person,
    ):
        person.answers("Run? [y]es  [n]o", "n")
        assert person.ends() == 4


@pytest.mark.full
def test_declining_with_a_reason_continues_the_turn() -> None:
    with (
        ModelServer([tool_call("python", "print(6 * 7)"), text("As you like.")]) as server,
        someone("--plain", "go", server=server) as person,
    ):
        person.answers("Run? [y]es  [n]o", "n just say it")
        person.sees("As you like.")
        assert person.ends() == 0


@pytest.mark.parametrize("output_option", ["--plain", "--json"])
def test_a_mistake_in_the_rules_ends_the_program_before_any_request(home: Path, output_option: str) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text("rules: [{decision: deny, comand: rm}]\n")
    with ModelServer([text("Done.")]) as server:
        done = interpreter("-y", output_option, "go", server=server)
        assert server.requests == []
    assert done.returncode == 1
    assert "policy.yaml:1: 'comand' is not valid here. Did you mean command?" in done.stderr
    assert output_option == "--plain" or "PolicyError" in done.stdout


# -- piped input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    some(
        1,
        [
            (["--plain", "summarise"], "a long\nreport\n", "summarise\n\na long\nreport"),
            (["--plain", "summarise"], "", "summarise"),
            (["--plain"], "just this\n", "just this"),
            (["--stdin"], "just\nthis\n", "just\nthis"),
        ],
    ),
)
def test_words_and_piped_input_are_joined(words: list[str], stdin: str, message: str) -> None:
    with ModelServer([text("Done.")]) as server:
        assert interpreter(*words, server=server, stdin=stdin).returncode == 0
        assert server.requests[0].messages[-1]["content"] == message


def test_a_device_on_standard_input_is_not_read() -> None:
    with ModelServer([text("Done.")]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        program = [sys.executable, "-c", PROGRAM, *where, "--plain", "go"]
        with open("/dev/zero", "rb") as zero:
            done = subprocess.run(program, stdin=zero, capture_output=True, timeout=60)
    assert done.returncode == 0


def test_a_silent_pipe_is_reported() -> None:
    with ModelServer([text("Done.")]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        reading, writing = os.pipe()
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *where, "--plain", "go"],
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(reading)
        assert child.stderr is not None
        assert "Waiting for standard input" in child.stderr.readline()
        os.close(writing)
        out, _ = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, "Done.\n")


def test_too_much_piped_input_is_refused() -> None:
    done = interpreter("--plain", "go", stdin="x" * 10_000_001)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Name the file" in done.stderr


@pytest.mark.full
def test_piped_input_attaches_no_files(tmp_path: Path) -> None:
    image = tmp_path / "secret.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    for output_option in ("--plain", "--json"):
        with ModelServer([text("Done."), text("Done.")]) as server:
            interpreter(output_option, "sum up", server=server, stdin=f"see {image}")
            interpreter(output_option, f"look at {image}", server=server, stdin="a report")
            piped, named = ([message["content"] for message in request.messages[1:]] for request in server.requests)
        assert piped == [f"sum up\n\nsee {image}"]
        assert "image_url" in str(named)
        assert "a report" in str(named)
