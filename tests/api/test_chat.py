"""`chat()` and related methods, as scripts use them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from interpreter.errors import BusyError, InterpreterError, SettingError, UsageError
from model_replies import error, stall, text, tool_call


def test_a_dict_is_a_message_from_the_user_by_default(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Hello."))
    interpreter.chat({"type": "message", "content": "hi"}, display=False)
    assert interpreter.messages[0] == {"role": "user", "type": "message", "content": "hi"}


def test_a_list_replaces_the_conversation(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("one"), text("two"))
    interpreter.chat("a", display=False)
    interpreter.chat([{"role": "user", "type": "message", "content": "fresh"}], display=False)
    assert [message["content"] for message in interpreter.messages] == ["fresh", "two"]


def test_an_empty_string_is_a_message(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Yes?"))
    assert interpreter.chat("", display=False)[0]["content"] == "Yes?"


def test_no_message_without_display_raises_an_error() -> None:
    with pytest.raises(UsageError, match="needs a message"):
        OpenInterpreter().chat(display=False)


def test_other_types_raise_an_error() -> None:
    with pytest.raises(UsageError, match="int"):
        OpenInterpreter().chat(5, display=False)  # type: ignore[arg-type]


def test_a_non_blocking_chat_returns_at_once_and_wait_returns_its_messages(chatting: Chatting) -> None:
    go = threading.Event()
    interpreter, _ = chatting(stall(go).then(text("Hello.")))
    assert interpreter.chat("hi", display=False, blocking=False) is None
    go.set()
    assert interpreter.wait()[0]["content"] == "Hello."


def test_wait_returns_after_a_streamed_chat(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Hello."))
    list(interpreter.chat("hi", display=False, stream=True))
    assert interpreter.responding is False
    assert interpreter.wait()[0]["content"] == "Hello."


def test_wait_raises_the_error_of_the_turn(chatting: Chatting) -> None:
    interpreter, _ = chatting(error(401, "bad key"))
    interpreter.chat("hi", display=False, blocking=False)
    with pytest.raises(InterpreterError):
        interpreter.wait()


def test_a_second_chat_during_a_turn_raises_an_error(chatting: Chatting) -> None:
    go = threading.Event()
    interpreter, server = chatting(stall(go).then(text("Hello.")))
    interpreter.chat("hi", display=False, blocking=False)
    assert server.stalled.wait(60)
    with pytest.raises(BusyError):
        interpreter.chat("me too", display=False)
    go.set()
    assert interpreter.wait()[0]["content"] == "Hello."


def test_reset_clears_the_conversation_and_the_variables(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Hello."))
    interpreter.chat("hi", display=False)
    interpreter.computer.run("python", "x = 1")
    interpreter.reset()
    assert interpreter.messages == []
    assert "NameError" in interpreter.computer.run("python", "x")[0]["content"]


def test_several_instances_run_in_parallel_threads(chatting: Chatting) -> None:
    pairs = [chatting(tool_call("python", f"n = {n}; print(n)"), text(f"I am {n}."), auto_run=True) for n in range(3)]
    threads = [threading.Thread(target=pair[0].chat, args=("go",), kwargs={"display": False}) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for n, (interpreter, _) in enumerate(pairs):
        assert [message["content"] for message in interpreter.messages[2:]] == [f"{n}\n", f"I am {n}."]


def test_chat_works_inside_a_running_event_loop(chatting: Chatting) -> None:
    interpreter, _ = chatting(
        tool_call("python", "import asyncio; await asyncio.sleep(0); print('in')"),
        text("Done."),
        auto_run=True,
    )

    async def main() -> Any:
        return interpreter.chat("go", display=False)

    assert [message["content"] for message in asyncio.run(main())][1:] == ["in\n", "Done."]


def test_instances_share_no_mutable_default() -> None:
    one, two = OpenInterpreter(), OpenInterpreter()
    one.loop_breakers.append("x")
    one.messages.append({"role": "user"})
    assert "x" not in two.loop_breakers
    assert two.messages == []


def test_constructor_arguments_are_checked() -> None:
    with pytest.raises(SettingError, match="auto_run"):
        OpenInterpreter(auto_rum=True, strict_settings=True)
    with pytest.raises(SettingError, match="auto_run"):
        OpenInterpreter(auto_run="perhaps")
    assert OpenInterpreter(auto_run="yes", colour="red").colour == "red"


def test_the_completions_hook_replaces_the_http_request() -> None:
    seen = []

    def completions(**params: Any) -> Any:
        seen.append(params)
        yield {"choices": [{"delta": {"content": "Hel"}}]}
        yield {"choices": [{"delta": {"content": "lo."}}]}

    interpreter = OpenInterpreter()
    interpreter.llm.completions = completions
    assert interpreter.chat("hi", display=False)[0]["content"] == "Hello."
    assert seen[0]["messages"][-1] == {"role": "user", "content": "hi"}
