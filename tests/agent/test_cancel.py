"""Cancelling a turn from outside: it ends at once and keeps everything so far."""

from __future__ import annotations

import threading

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from model_replies import stall, text, tool_call


def test_cancel_works_while_the_model_is_silent(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Let me").then(stall()), text("Hello."))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk.get("content") == "Let me":
            threading.Timer(0.1, interpreter.cancel).start()
    assert interpreter.messages[-1]["content"] == "Let me"
    assert interpreter.chat("again", display=False)[-1]["content"] == "Hello."


def test_cancel_works_before_the_first_token(chatting: Chatting) -> None:
    interpreter, server = chatting(stall(), text("Hello."))
    turn = threading.Thread(target=lambda: interpreter.chat("go", display=False))
    turn.start()
    assert server.stalled.wait(60)
    interpreter.cancel()
    turn.join(60)
    assert not turn.is_alive()
    assert interpreter.chat("again", display=False)[-1]["content"] == "Hello."


def test_cancel_during_a_block_ends_the_turn_and_keeps_the_state(chatting: Chatting) -> None:
    code = "x = 5\nprint('begun')\nimport time; time.sleep(1000)"
    interpreter, server = chatting(tool_call("python", code), text("Hello."), auto_run=True)
    for chunk in interpreter.chat("go", display=False, stream=True):
        if "begun" in str(chunk.get("content")) and chunk.get("format") == "output":
            threading.Timer(0.05, interpreter.cancel).start()
    assert interpreter.messages[-1].get("ended") == "interrupted"
    assert len(server.requests) == 1
    assert interpreter.computer.run("python", "print(x)")[0]["content"] == "5\n"


def test_leaving_the_stream_ends_a_running_block(chatting: Chatting) -> None:
    code = "print('begun', flush=True)\nwhile True: pass"
    interpreter, _ = chatting(tool_call("python", code), auto_run=True)
    for chunk in interpreter.chat("go", display=False, stream=True):
        if "begun" in str(chunk.get("content")) and chunk.get("format") == "output":
            break
    assert interpreter.computer.run("python", "print('next')") == [
        {"type": "console", "format": "output", "content": "next\n"}
    ]


def test_the_next_turn_ends_an_abandoned_one(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("one", "characters"), text("two"))
    left = interpreter.chat("a", display=False, stream=True)
    next(left)
    assert interpreter.chat("b", display=False)[-1]["content"] == "two"
    assert list(left) == []


@pytest.mark.parametrize("language", ["python", "shell"])
def test_cancel_works_while_a_runtime_is_starting(chatting: Chatting, language: str) -> None:
    code = {"python": "while True: pass", "shell": "while :; do :; done"}[language]
    interpreter, _ = chatting(tool_call(language, code))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            interpreter.computer.terminate()  # so that approving it starts a session
            threading.Timer(0.005, interpreter.cancel).start()
    assert interpreter.messages[-1].get("ended", "interrupted") == "interrupted"


def test_a_cancelled_turn_does_not_stop_later_code(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Let me").then(stall()))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk.get("content") == "Let me":
            threading.Timer(0.05, interpreter.cancel).start()
    assert interpreter.computer.run("python", "print('fine')")[0]["content"] == "fine\n"


def test_cancel_without_a_turn_does_nothing() -> None:
    interpreter = OpenInterpreter()
    interpreter.cancel()
    ran = [*interpreter.computer.stream("python", "print(6 * 7)")]
    assert ran[-1]["ended"] == "done" and not interpreter.cancelled
    interpreter.computer.terminate()
