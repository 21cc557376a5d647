"""`--json`: one event per line, with ids that group related events."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interpreter.messages import fold
from model_server import ModelServer, error, stall, text, tool_call
from profiles.programs import folder, interpreter
from terminal.person import PROGRAM

pytestmark = pytest.mark.usefixtures("no_strays")

Event = dict[str, Any]


def events(stdout: str) -> list[Event]:
    found = [json.loads(line) for line in stdout.splitlines()]
    assert [event["seq"] for event in found] == list(range(len(found)))
    return found


def run(server: ModelServer, *arguments: str, stdin: str = "") -> tuple[int, list[Event]]:
    done = interpreter("--json", *arguments, server=server, stdin=stdin)
    assert "Traceback" not in done.stderr
    return done.returncode, events(done.stdout)


def test_a_turn_is_a_stream_of_grouped_events() -> None:
    figure = "from IPython.display import Image, display\ndisplay(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 20, format='png'))"
    replies = [text("Let me see.").then(tool_call("python", f"{figure}\nprint(6 * 7)")), text("It is 42.")]
    with ModelServer(replies) as server:
        code, stream = run(server, "-y", "what is it?")
    assert code == 0
    first, *turn, last = stream
    assert (first["type"], first["format"], first["turn"]) == ("status", "begin", None)
    assert len({event["turn"] for event in turn}) == 1
    assert last["content"]["exit_code"] == 0
    assert last["content"]["answer"] == "It is 42."
    assert last["content"]["input_tokens"] > 0
    # A group has one number from its start to its end; events between groups have none.
    groups: dict[int, list[Event]] = {}
    for event in turn:
        if event["group"] is not None:
            groups.setdefault(event["group"], []).append(event)
    assert all(group[0].get("start") and group[-1].get("end") for group in groups.values())
    assert [group[0]["type"] for group in groups.values()][:3] == ["message", "code", "console"]
    assert all(event["group"] is None for event in turn if event["type"] == "status")
    # Without their ids, events are chunks, and images are unchanged.
    chunks = [{name: value for name, value in event.items() if name not in ("seq", "turn", "group")} for event in turn]
    messages = fold(chunks)  # type: ignore[arg-type]
    assert [message["type"] for message in messages] == ["message", "code", "image", "console", "message"]
    assert messages[2]["content"].startswith("iVBOR")
    assert messages[3]["content"] == "42\n"


def test_a_block_without_approval_is_declined() -> None:
    with ModelServer([tool_call("python", "print(6 * 7)")]) as server:
        code, stream = run(server, "go")
    assert code == 4
    kinds = [event["type"] for event in stream]
    assert "confirmation" in kinds
    assert [event["format"] for event in stream if event["type"] == "decision"] == ["declined"]
    assert "42" not in [event.get("content") for event in stream]
    assert stream[-1]["content"]["exit_code"] == 4


def test_an_error_is_an_event() -> None:
    with ModelServer([error(401, "wrong key")]) as server:
        code, stream = run(server, "go")
    assert code == 3
    [event] = [event for event in stream if event["type"] == "error"]
    assert event["format"] == "WrongKeyError"
    assert "wrong key" in event["content"]
    assert stream[-1]["content"]["exit_code"] == 3


def test_an_error_before_the_turn_is_an_event_too(home: Path) -> None:
    (folder(home) / "default.yaml").write_text("modle: x\n")
    done = interpreter("--json", "go")
    [event] = events(done.stdout)
    assert (done.returncode, event["type"], event["format"]) == (1, "error", "ProfileError")
    assert "line 1" in event["content"]
    (folder(home) / "default.yaml").unlink()
    done = interpreter("--json")
    assert (done.returncode, events(done.stdout)[0]["format"]) == (2, "UsageError")


def test_the_output_of_a_profile_is_not_an_event(home: Path) -> None:
    (folder(home) / "default.py").write_text("print('hello from the profile')\n")
    with ModelServer([text("Hi.")]) as server:
        code, stream = run(server, "hello")
    assert (code, stream[-1]["content"]["answer"]) == (0, "Hi.")


def test_an_interrupt_during_a_block_ends_with_exit_code_130() -> None:
    with ModelServer([tool_call("python", "import time\nprint('on', flush=True)\ntime.sleep(60)")]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *where, "-y", "--json", "go"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        with child.stdout, child.stderr:
            lines = []
            for line in child.stdout:
                lines.append(line)
                if '"on\\n"' in line:
                    break
            os.kill(child.pid, signal.SIGINT)
            lines += child.stdout.readlines()
            assert child.stderr.read() == ""
        assert child.wait(60) == 130
    stream = events("".join(lines))
    assert "interrupted" in [event.get("ended") for event in stream]
    assert stream[-1]["content"]["exit_code"] == 130


def test_an_interrupt_while_the_model_is_silent_ends_with_exit_code_130() -> None:
    with ModelServer([text("Begun").then(stall())]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *where, "--json", "go"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stalled.wait(60)
        assert child.stdout is not None
        with child.stdout:
            lines = []
            for line in child.stdout:
                lines.append(line)
                if "Begun" in line:
                    break
            os.kill(child.pid, signal.SIGINT)
            lines += child.stdout.readlines()
        assert child.wait(60) == 130
    stream = events("".join(lines))
    assert stream[-1]["content"]["answer"] == "Begun"


def test_events_are_written_at_once() -> None:
    with ModelServer([text("One").then(stall())]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *where, "--json", "go"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        with child.stdout:
            seen = next(line for line in child.stdout if '"One"' in line)
            assert json.loads(seen)["content"] == "One"
            child.terminate()
        assert child.wait(60) == 143


def test_an_invented_number_is_listed() -> None:
    with ModelServer([tool_call("python", "print('ok')"), text("The mean is 3.48.")]) as server:
        code, stream = run(server, "-y", "mean?")
    assert code == 0
    assert stream[-1]["content"]["answer"] == "The mean is 3.48."
    assert (stream[-1]["content"]["ungrounded"], stream[-1]["content"]["unmet"]) == (["3.48"], [])
    assert {"text": "3.48 is not in any output.", "check": "answer", "items": ["3.48"]} in [
        event.get("content") for event in stream
    ]
