"""Several callers on one session: one lane, separate events, no deadlocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import BaseLanguage, OpenInterpreter
from interpreter.errors import BusyError
from interpreter.messages import Chunk
from model_server import text, tool_call
from waiting import LIMIT, in_thread, until

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


def slow(go: Path) -> str:
    """A block that prints 0, and 1 to 3 once the file exists."""
    wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.01)"
    return f"import os, time\nfor number in range(4):\n    print(number, flush=True)\n    {wait}"


@pytest.fixture
def interpreter(tmp_path: Path) -> Iterator[OpenInterpreter]:
    made = OpenInterpreter(workspace=str(tmp_path), stream_all=True)
    yield made
    made.computer.terminate()


def printed(messages: list[Any]) -> str:
    return "".join(message["content"] for message in messages if message["type"] == "console")


def test_a_second_caller_waits_while_a_models_block_runs(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("python", slow(tmp_path / "go")), text("Done."), auto_run=True)
    other: tuple[threading.Thread, list[Any]] | None = None
    for chunk in interpreter.chat("go", display=False, stream=True):
        if other is None and chunk["type"] == "console" and chunk.get("content") == "0\n":
            other = in_thread(interpreter.computer.run, "python", "print('other', number)")
            until(lambda: interpreter.session.lane.waiting > 0, "the second caller")
            (tmp_path / "go").touch()
    assert other is not None
    other[0].join(LIMIT)
    assert printed(other[1][0]) == "other 3\n"
    assert printed(interpreter.messages) == "0\n1\n2\n3\n"
    assert interpreter.messages[-1]["content"] == "Done."


def test_a_waiting_caller_sees_what_it_waits_for(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    first = interpreter.computer.run("python", slow(tmp_path / "go"), stream=True)
    next(first)
    thread, _ = in_thread(interpreter.computer.run, "shell", "echo hi")
    until(lambda: interpreter.session.lane.waiting > 0, "the second caller")
    (tmp_path / "go").touch()
    list(first)
    thread.join(LIMIT)
    (waiting,) = [event for event in interpreter.session.log.read() if event.data.get("format") == "waiting"]
    assert waiting.data["content"]["text"] == "Waiting: python block 'import os, time' is running."


def test_a_caller_can_choose_not_to_wait(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    first = interpreter.computer.run("python", slow(tmp_path / "go"), stream=True)
    next(first)
    thread, found = in_thread(interpreter.computer.run, "shell", "echo hi", wait=False)
    thread.join(LIMIT)
    assert isinstance(found[0], BusyError) and "python block" in str(found[0])
    (tmp_path / "go").touch()
    assert "".join(chunk["content"] for chunk in first if chunk["format"] == "output") == "0\n1\n2\n3\n"


@pytest.mark.parametrize("language", ["python", "shell", pytest.param("javascript", marks=pytest.mark.needs("node"))])
def test_a_thread_does_not_deadlock_on_its_own_suspended_action(interpreter: OpenInterpreter, language: str) -> None:
    """The action it left suspended is cancelled and ends."""
    endless = {
        "python": "print('a', flush=True)\nwhile True: pass",
        "shell": "echo a; sleep 60",
        "javascript": "console.log('a'); while (true) {}",
    }[language]
    first = interpreter.computer.run(language, endless, stream=True)
    assert any("a" in str(chunk["content"]) for chunk in first if chunk["format"] == "output")
    second = {"python": "print('b')", "shell": "echo b", "javascript": "console.log('b')"}[language]
    assert printed(interpreter.computer.run(language, second)) == "b\n"
    ending = list(first)[-1]
    assert ending["ended"] == "interrupted"
    with pytest.raises(StopIteration):
        next(first)


def test_a_finished_block_frees_the_lane_even_if_unread(interpreter: OpenInterpreter) -> None:
    first = interpreter.computer.run("python", "x = 1\nprint('a')", stream=True)
    next(first)
    thread, found = in_thread(interpreter.computer.run, "python", "print(x + 1)")
    thread.join(LIMIT)
    assert printed(found[0]) == "2\n"
    rest = list(first)
    assert [chunk["content"] for chunk in rest if chunk["format"] == "output"] == ["a\n"]
    assert rest[-1]["ended"] == "done"


def test_a_dropped_iterator_frees_the_lane(interpreter: OpenInterpreter) -> None:
    first = interpreter.computer.run("python", "print('a', flush=True)\nwhile True: pass", stream=True)
    next(first)
    del first
    thread, found = in_thread(interpreter.computer.run, "python", "print('b')")
    thread.join(LIMIT)
    assert printed(found[0]) == "b\n"


def test_undo_reverts_one_of_two_concurrent_blocks(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    """Blocks don't overlap, so each file belongs to one block."""
    code = "import time\ntime.sleep(0.3)\nopen('from_python', 'w').write('x')"
    thread, _ = in_thread(interpreter.computer.run, "python", code)
    until(lambda: bool(interpreter.session.running), "the first block")
    interpreter.computer.run("shell", "echo x > from_shell")
    thread.join(LIMIT)
    interpreter.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["from_python"]


def test_undo_waits_for_the_running_block(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    code = "import time\nopen('made', 'w').write('x')\ntime.sleep(0.5)\nopen('late', 'w').write('x')"
    thread, _ = in_thread(interpreter.computer.run, "python", code)
    until(lambda: (tmp_path / "made").exists(), "the first file")
    interpreter.undo()
    thread.join(LIMIT)
    assert list(tmp_path.iterdir()) == []


def test_in_process_code_can_run_a_block_in_another_language(interpreter: OpenInterpreter) -> None:
    interpreter.computer.python = "in-process"
    import sys

    sys.modules["__main__"].__dict__["held"] = interpreter
    assert "inner" in printed(interpreter.computer.run("python", "print(held.computer.run('shell', 'echo inner'))"))
    events = [event for event in interpreter.session.log.read() if event.kind == "action"]
    inner = next(event for event in events if "parent" in event.data)
    assert inner.data["parent"] == events[0].ids.action


def test_a_runtime_busy_with_the_parent_block_raises_busy_error(interpreter: OpenInterpreter) -> None:
    interpreter.computer.python = "in-process"
    import sys

    sys.modules["__main__"].__dict__["held"] = interpreter
    said = printed(interpreter.computer.run("python", "held.computer.run('python', '1')"))
    assert "BusyError: The Python runtime is busy with the code that made this call." in said


class Endless(BaseLanguage):
    """A custom language that ignores a stop."""

    name = "endless"

    def run(self, code: str) -> Iterator[Chunk]:
        while True:
            yield {"type": "console", "format": "output", "content": "more\n"}


def test_a_language_that_never_ends_is_closed(interpreter: OpenInterpreter) -> None:
    interpreter.computer.languages.append(Endless)
    first = interpreter.computer.run("endless", "", stream=True)
    next(first)
    assert printed(interpreter.computer.run("shell", "echo b")) == "b\n"
    assert list(first) == []


def test_cancelling_one_actor_does_not_affect_another(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    other = OpenInterpreter(computer=interpreter.computer, stream_all=True)
    thread, found = in_thread(interpreter.computer.run, "python", slow(tmp_path / "go"))
    until(lambda: bool(interpreter.session.running), "the block")
    other.cancel()
    (tmp_path / "go").touch()
    thread.join(LIMIT)
    assert printed(found[0]) == "0\n1\n2\n3\n"


def test_a_second_chat_does_not_end_another_threads_turn(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    first = interpreter.chat("one", display=False, stream=True)
    next(first)
    thread, found = in_thread(interpreter.chat, "two", display=False)
    thread.join(LIMIT)
    assert isinstance(found[0], BusyError) and "another thread" in str(found[0])
    list(first)
    assert [message["content"] for message in interpreter.messages] == ["one", "One."]
    assert interpreter.chat("two", display=False)[-1]["content"] == "Two."


def test_a_turn_left_open_by_an_ended_thread_is_closed(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    held: list[Any] = []

    def begin() -> None:
        held.append(interpreter.chat("one", display=False, stream=True))
        next(held[0])

    thread, _ = in_thread(begin)
    thread.join(LIMIT)
    assert interpreter.chat("two", display=False)[-1]["content"] == "Two."
