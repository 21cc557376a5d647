"""One turn: what is asked, what runs and what is recorded, in order."""

from __future__ import annotations

from typing import Any

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from interpreter.errors import InterpreterError
from model_replies import broken, error, text, tool_call


def shape(chunks: list[Any]) -> list[str]:
    """A summary of the stream: format and flag of each chunk, without status."""
    words = []
    for chunk in chunks:
        if chunk["type"] == "status":
            continue
        flag = "start" if chunk.get("start") else "end" if chunk.get("end") else ""
        words.append(f"{flag} {chunk.get('format') or chunk['type']}".strip())
    return words


def kinds(messages: list[Any]) -> list[tuple[str, str, Any]]:
    return [(message["role"], message["type"], message["content"]) for message in messages]


def test_the_full_trace_of_an_approved_block(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Sure", ["Su", "re"]).then(tool_call("echo", "hello", split=7)), text("Done."))
    chunks = list(interpreter.chat("go", display=False, stream=True))
    squeezed = [word for n, word in enumerate(shape(chunks)) if n == 0 or shape(chunks)[n - 1] != word]
    assert squeezed == [
        "start message", "message", "end message",
        "start echo", "echo", "end echo",
        "execution",
        "start console", "active_line", "output", "active_line", "end console",
        "start message", "message", "end message",
    ]  # fmt: skip
    confirmation = next(chunk for chunk in chunks if chunk["type"] == "confirmation")
    assert confirmation["content"] == {"type": "code", "format": "echo", "content": "hello"}
    assert kinds(interpreter.messages) == [
        ("user", "message", "go"),
        ("assistant", "message", "Sure"),
        ("assistant", "code", "hello"),
        ("computer", "console", "hello\n"),
        ("assistant", "message", "Done."),
    ]
    assert len(server.requests) == 2


def test_auto_run_asks_no_question(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."), auto_run=True)
    assert "execution" not in shape(list(interpreter.chat("go", display=False, stream=True)))


def test_chat_returns_the_new_messages(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("one"), text("two"))
    interpreter.chat("a", display=False)
    assert kinds(interpreter.chat("b", display=False)) == [("assistant", "message", "two")]


def test_several_calls_in_one_reply_run_in_order(chatting: Chatting) -> None:
    two = tool_call("echo", "first", id="a").then(tool_call("echo", "second", id="b"))
    interpreter, server = chatting(two, text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    assert [content for _, _, content in kinds(interpreter.messages)] == [
        "go", "first", "first\n", "second", "second\n", "Done.",
    ]  # fmt: skip
    assert len(server.requests) == 2


def test_fenced_blocks_run_in_order_with_text_between_them(chatting: Chatting) -> None:
    reply = text("One:\n```echo\nfirst\n```\nTwo:\n```echo\nsecond\n```\nThat was it.", split="characters")
    interpreter, _ = chatting(reply, text("Done."), auto_run=True)
    interpreter.llm.supports_functions = False
    interpreter.chat("go", display=False)
    contents = [content.strip() for _, _, content in kinds(interpreter.messages)]
    assert contents == ["go", "One:", "first", "first", "Two:", "second", "second", "That was it.", "Done."]


def test_leaving_at_the_confirmation_does_not_run_the_block(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("echo", "hello"))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            break
    assert kinds(interpreter.messages)[-1] == ("assistant", "code", "hello")
    assert len(server.requests) == 1


def test_the_host_can_run_the_code_itself_and_continue(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("echo", "hello"), text("I see."))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            break
    interpreter.messages.append({"role": "computer", "type": "console", "format": "output", "content": "mine\n"})
    interpreter.chat("and?", display=False)
    sent = server.requests[1].body["messages"]
    assert any(message["role"] == "tool" and message["content"] == "mine" for message in sent)


def test_a_plain_decline_is_recorded_and_ends_the_turn(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("echo", "hello"))
    formats = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            interpreter.pending.decline()
        formats.append(chunk.get("format"))
    assert "declined" in formats
    assert kinds(interpreter.messages)[-1] == ("user", "message", "I have declined to run this code.")
    assert len(server.requests) == 1


def test_a_decline_with_a_reason_goes_to_the_model_at_once(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("echo", "hello"), text("All right."))
    for chunk in interpreter.chat("go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            interpreter.pending.decline("use another file")
    assert kinds(interpreter.messages)[-1] == ("assistant", "message", "All right.")
    assert "use another file" in str(server.requests[1].body["messages"][-1]["content"])


@pytest.mark.parametrize("edited_in", ["pending", "message"])
def test_an_edited_block_runs_and_is_recorded_as_edited(chatting: Chatting, edited_in: str) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."))
    formats = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        formats.append(chunk.get("format"))
        if chunk["type"] == "confirmation" and edited_in == "pending":
            interpreter.pending.edit("goodbye")
        elif chunk["type"] == "confirmation":
            interpreter.messages[-1]["content"] = "goodbye"
    assert "edited" in formats
    assert [content for _, _, content in kinds(interpreter.messages)][1:3] == ["goodbye", "goodbye\n"]


def test_repeating_an_unknown_language_ends_the_turn(chatting: Chatting) -> None:
    call = tool_call("cobol", "DISPLAY 'HI'")
    interpreter, server = chatting(call, call, call, call, call, auto_run=True)
    interpreter.chat("go", display=False)
    outputs = [content for role, _, content in kinds(interpreter.messages) if role == "computer"]
    assert "`cobol` is disabled or not supported" in outputs[0]
    assert len(server.requests) == 2


def test_a_text_block_is_not_run(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("text", "just words"), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    assert not any(kind in ("code", "console") for _, kind, _ in kinds(interpreter.messages))
    assert "```text\njust words\n```" in interpreter.messages[1]["content"]
    assert len(server.requests) == 2


def test_an_empty_block_is_reported(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "  \n"), text("Sorry."), auto_run=True)
    interpreter.chat("go", display=False)
    assert any(role == "computer" and "empty" in content for role, _, content in kinds(interpreter.messages))


def test_the_same_block_with_the_same_result_is_not_run_a_third_time(chatting: Chatting) -> None:
    call = tool_call("echo", "again")
    interpreter, server = chatting(*[call] * 9, auto_run=True)
    interpreter.chat("go", display=False)
    outputs = [content for role, _, content in kinds(interpreter.messages) if role == "computer"]
    assert outputs[:2] == ["again\n", "again\n"]
    assert all("Not run" in output for output in outputs[2:])
    assert len(server.requests) == 4


def test_max_blocks_limits_a_turn(chatting: Chatting) -> None:
    calls = [tool_call("echo", str(number)) for number in range(9)]
    interpreter, server = chatting(*calls, auto_run=True, max_blocks=3)
    interpreter.chat("go", display=False)
    assert "max_blocks" in interpreter.messages[-1]["content"]
    assert len(server.requests) == 4


def test_an_exception_in_a_language_becomes_output(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "raise havoc"), text("Oh."), auto_run=True)
    interpreter.chat("go", display=False)
    assert "ValueError: havoc" in interpreter.messages[2]["content"]


def test_a_silent_block_is_recorded_with_empty_output(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("echo", "hush"), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    assert kinds(interpreter.messages)[2] == ("computer", "console", "")
    assert server.requests[1].body["messages"][-1]["content"] == "No output"


def test_a_reply_that_breaks_off_is_kept_and_its_code_is_not_run(chatting: Chatting) -> None:
    half = tool_call(arguments='{"language": "echo", "code": "hel')
    interpreter, _ = chatting(text("I will").then(half).then(broken()), auto_run=True)
    with pytest.raises(InterpreterError):
        interpreter.chat("go", display=False)
    assert kinds(interpreter.messages)[1] == ("assistant", "message", "I will")
    assert not any(role == "computer" for role, _, _ in kinds(interpreter.messages))


def test_a_model_error_leaves_the_session_usable(chatting: Chatting) -> None:
    interpreter, _ = chatting(error(401, "bad key"), text("Hello."))
    with pytest.raises(InterpreterError):
        interpreter.chat("go", display=False)
    assert kinds(interpreter.chat("again", display=False)) == [("assistant", "message", "Hello.")]


def test_loop_mode_continues_until_the_model_says_it_is_done(chatting: Chatting) -> None:
    interpreter, server = chatting(
        text("Working."), tool_call("echo", "x"), text("The task is done."), loop=True, auto_run=True
    )
    interpreter.chat("go", display=False)
    assert len(server.requests) == 3
    assert server.requests[1].body["messages"][-1]["role"] == "user"
    assert all(message["content"] != interpreter.loop_message for message in interpreter.messages)


def test_max_blocks_limits_loop_mode(chatting: Chatting) -> None:
    replies = [each for n in range(5) for each in (text(f"Step {n}."), tool_call("echo", str(n)))]
    interpreter, server = chatting(*replies, loop=True, auto_run=True, max_blocks=3)
    assert "Stopped: the limit of 3 blocks in one turn (`max_blocks`) is reached." in notices(interpreter)
    assert len(server.requests) == 4
    assert endings(interpreter) == ["limit"]


@pytest.mark.parametrize(
    ("answers", "asked"),
    [(["Done! The file is saved."] * 9, 2), (["Saved.", "All done.", "Nothing is left to do.", "Bye."], 3)],
)
def test_loop_mode_ends_when_the_model_stops_running_code(chatting: Chatting, answers: list[str], asked: int) -> None:
    interpreter, server = chatting(*map(text, answers), loop=True)
    assert "Stopped: the model was repeating itself." in notices(interpreter)
    assert len(server.requests) == asked
    assert endings(interpreter) == ["repetition"]


def test_a_turn_says_why_it_ended(chatting: Chatting) -> None:
    again = [tool_call("echo", "x")] * 4
    interpreter, _ = chatting(text("Hello."), error(401, "bad key"), *again, auto_run=True)
    assert notices(interpreter) == []
    with pytest.raises(InterpreterError):
        interpreter.chat("go", display=False)
    assert notices(interpreter)[-1] == "Stopped: the model was repeating itself."
    assert endings(interpreter) == ["answered", "error", "repetition"]


def notices(interpreter: OpenInterpreter) -> list[str]:
    """The notices that the user sees during a turn."""
    interpreter.stream_all = True
    chunks = list(interpreter.chat("go", display=False, stream=True))
    found = [chunk["content"] for chunk in chunks if (chunk["type"], chunk.get("format")) == ("status", "notice")]
    return [str(content["text"]) for content in found]


def endings(interpreter: OpenInterpreter) -> list[str]:
    """Why each turn ended, from the session's event log."""
    events = interpreter.session.log.read()
    actions = [event.data for event in events if event.kind == "action"]
    return [data["reason"] for data in actions if (data["kind"], data["state"]) == ("turn", "ended")]
