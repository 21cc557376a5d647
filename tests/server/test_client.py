"""`interpreter.connect`: an interpreter on a server, used like a local one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import interpreter
from interpreter.config.homes import our_folder
from interpreter.errors import BusyError, InterpreterError, UsageError
from model_replies import error, text, tool_call
from running_server import Serving, serving
from waiting import in_thread, until

MAKE = tool_call("python", "open('made.txt', 'w').write('x')\nprint('made')")


@pytest.fixture
def connected(home: Path) -> Iterator[Any]:
    opened: list[Any] = []

    def start(served: Serving, **settings: Any) -> Any:
        opened.append(interpreter.connect(served.url, token=served.users.token, **settings))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_chat_returns_the_new_messages_and_streams_chunks(connected: Any) -> None:
    with serving(text("Hello, you."), text("One two.", 4)) as served:
        remote = connected(served)
        assert remote.chat("Hi.", display=False) == [{"role": "assistant", "type": "message", "content": "Hello, you."}]
        chunks = list(remote.chat("Count.", display=False, stream=True))
        assert chunks[0] == {"role": "assistant", "type": "message", "start": True}
        assert "".join(chunk.get("content", "") for chunk in chunks) == "One two."
        assert [message["role"] for message in remote.messages] == ["user", "assistant"] * 2


def test_reading_past_a_confirmation_approves_the_block_and_closing_does_not(connected: Any) -> None:
    with serving(MAKE, text("Done."), MAKE) as served:
        remote = connected(served)
        kinds = [chunk["type"] for chunk in remote.chat("Make it.", display=False, stream=True)]
        assert "confirmation" in kinds and Path("made.txt").exists()
        assert remote.undo()["restored"] == ["made.txt"] and remote.messages == []
        for chunk in (stream := remote.chat("Again.", display=False, stream=True)):
            if chunk["type"] == "confirmation":
                break
        stream.close()
        until(lambda: not remote.pending, "the end of the turn")
        assert not Path("made.txt").exists()


def test_auto_run_does_not_override_a_rule(connected: Any, home: Path) -> None:
    folder = our_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text("rules:\n- decision: ask\n  language: shell\n")
    with serving(MAKE, text("Done."), tool_call("shell", "touch ruled.txt"), text("Well.")) as served:
        remote = connected(served, auto_run=True)
        remote.chat("Make it.", display=False)
        assert Path("made.txt").exists()
        remote.chat("Touch it.", display=False)
        assert not Path("ruled.txt").exists()


def test_display_shows_the_answer(connected: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(MAKE, text("It is there.")) as served:
        remote = connected(served, auto_run=True)
        remote.chat("Make it.")
        shown = capfd.readouterr().out
        assert "It is there." in shown and "made" in shown


def test_the_computer_runs_code_and_moves_files(connected: Any, tmp_path: Path) -> None:
    with serving() as served:
        remote = connected(served)
        output = remote.computer.run("python", "print(6 * 7)")
        assert output[0]["content"].strip() == "42" and "role" not in output[0]
        (tmp_path / "in.csv").write_text("a,b")
        remote.computer.upload(str(tmp_path / "in.csv"))
        assert remote.computer.run("python", "print(open('in.csv').read())")[0]["content"] == "a,b\n"
        assert remote.computer.download("in.csv") == b"a,b"
        remote.computer.upload(str(tmp_path / "in.csv"), "data/50% #1?.csv")
        assert remote.computer.download("data/50% #1?.csv") == b"a,b" and Path("data/50% #1?.csv").exists()
        remote.computer.run("python", "a = 1")
        assert [row["name"] for row in remote.computer.variables()["Python"]] == ["a"]
        first = remote.id
        remote.reset()
        assert remote.id != first and remote.messages == []
        assert "NameError" in remote.computer.run("python", "a")[0]["content"]


def test_model_errors_are_raised_and_a_second_turn_is_refused(connected: Any) -> None:
    endless = tool_call("python", "import time\nprint('on', flush=True)\ntime.sleep(600)")
    with serving(error(401, {"error": {"message": "Incorrect API key."}}), endless, mode="auto") as served:
        remote = connected(served)
        with pytest.raises(InterpreterError, match="key"):
            remote.chat("Hi.", display=False)
        remote.chat("Sleep.", display=False, blocking=False)
        until(lambda: any(each["role"] == "computer" for each in remote.messages), "the block")
        with pytest.raises(BusyError):
            remote.computer.run("python", "1")
        remote.cancel()
        assert remote.wait() is not None


def test_a_session_can_be_continued_by_its_id(connected: Any) -> None:
    with serving(text("First."), text("Second.")) as served:
        remote = connected(served)
        remote.chat("One.", display=False)
        again = connected(served, session=remote.id)
        again.chat("Two.", display=False)
        assert [message["content"] for message in remote.messages] == ["One.", "First.", "Two.", "Second."]


def test_a_missing_or_wrong_token_raises_a_helpful_error(home: Path) -> None:
    with pytest.raises(UsageError, match="INTERPRETER_API_KEY"):
        interpreter.connect("http://example.com")
    with serving() as served:
        with pytest.raises(InterpreterError, match="token"):
            interpreter.connect(served.url, token="wrong")
        with interpreter.connect(served.url) as remote:  # the token of this machine
            _, found = in_thread(remote.chat, "")
            until(lambda: found, "an answer")
            assert isinstance(found[0], InterpreterError)
