"""Compaction when the context window fills: what is dropped, what stays, and what the model and the user see."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversation import Echo
from interpreter import OpenInterpreter
from interpreter.errors import ContextTooLongError, RequestRefusedError
from interpreter.llm.context import Context, compact
from interpreter.llm.request import (
    Forms,
    Memory,
    convert,
)
from interpreter.llm.text_mode import TextChat
from interpreter.llm.tool_mode import ToolChat
from interpreter.messages import Chunk, Message
from interpreter.runtimes import BUILT_IN
from model_server import ModelServer, error, text, usage
from routed_server import RoutedServer, as_json

PIXEL = "iVBORw0KGgo="
TOO_LONG = error(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})
LONG = "word " * 400  # 500 tokens
Talk = tuple[OpenInterpreter, ModelServer]


@pytest.fixture
def talk() -> Iterator[Any]:
    opened: list[Talk] = []

    def start(*replies: Any, window: int | None = None, model: str = "gpt-4o", **given: Any) -> Talk:
        server = ModelServer(replies).start()
        interpreter = OpenInterpreter(auto_run=True, stream_all=True, system_message="Be brief.", **given)
        interpreter.llm.model, interpreter.llm.max_retries, interpreter.llm.api_key = model, 0, "key"
        interpreter.llm.api_base, interpreter.llm.context_window = server.base_url, window
        interpreter.computer.languages = [Echo]
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


def say(role: str, words: str) -> Message:
    return {"role": role, "type": "message", "content": words}


def block(words: str, language: str = "echo") -> list[Message]:
    return [
        {"role": "assistant", "type": "code", "format": language, "content": words},
        {"role": "computer", "type": "console", "format": "output", "content": f"{words} {LONG}"},
    ]


def history(turns: int) -> list[Message]:
    messages: list[Message] = []
    for turn in range(turns):
        messages += [say("user", f"Request {turn}"), *block(f"step {turn}"), say("assistant", f"Did {turn}.")]
    return messages


def compactions(interpreter: OpenInterpreter, words: str) -> list[dict[str, Any]]:
    """The compactions that the user sees in this turn."""
    chunks: list[Chunk] = list(interpreter.chat(words, display=False, stream=True))
    return [chunk["content"] for chunk in chunks if chunk.get("format") == "compacted"]


def posted(server: ModelServer) -> list[list[dict[str, Any]]]:
    return [request.messages for request in server.requests if "model" in request.body]


def note_in(messages: list[dict[str, Any]]) -> str:
    [note] = [m["content"] for m in messages if m["role"] == "user" and "were left out" in str(m["content"])]
    return str(note)


def assert_calls_are_answered(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting


# -- before the request is sent --------------------------------------------------------------------------------


def test_a_full_window_is_compacted_once_and_reported(talk: Any) -> None:
    interpreter, server = talk(text("Yes."), text("Sure."), window=8000)
    interpreter.messages = history(16)
    before = copy.deepcopy(interpreter.messages)
    [event] = compactions(interpreter, "And now?")
    assert compactions(interpreter, "Sure?") == []
    assert interpreter.messages[: len(before)] == before
    assert event["tokens_after"] < 4000 < 6000 < event["tokens_before"]
    assert (event["window"], event["images"], event["estimated"]) == (8000, 0, True)
    first, second = posted(server)
    assert json.dumps(second).startswith(json.dumps(first)[:-1])


def test_compaction_keeps_the_first_and_last_requests_and_adds_a_note(talk: Any) -> None:
    interpreter, server = talk(text("Yes."), window=8000)
    interpreter.messages = history(16)
    [event] = compactions(interpreter, "And now?")
    [messages] = posted(server)
    assert [m["content"] for m in messages[:2]] == ["Be brief.", "Request 0"]
    assert messages[2]["content"] == note_in(messages)
    assert messages[-1]["content"] == "And now?"
    assert [m["content"] for m in messages if m["role"] == "user"][-2] == "Request 15"
    note = note_in(messages)
    assert note.startswith(f"[{event['messages']} messages between the first request and this note were left out")
    assert "The user: Request 5 / You: Did 5." in note
    assert_calls_are_answered(messages)


def test_a_window_with_room_is_not_compacted(talk: Any) -> None:
    interpreter, server = talk(text("Yes."), window=80_000)
    interpreter.messages = history(16)
    assert compactions(interpreter, "And now?") == []
    assert "Did 3." in str(posted(server)[0])


def test_a_long_turn_is_cut_between_blocks_and_keeps_its_request(talk: Any) -> None:
    interpreter, server = talk(text("Yes."), window=8000)
    request = say("user", "Do it all")
    interpreter.messages = [say("user", "Hi"), say("assistant", "Hello"), request]
    for step in range(20):
        interpreter.messages += block(f"step {step}")
    list(interpreter.llm.reply([say("system", "Be brief."), *interpreter.messages]))
    [messages] = posted(server)
    assert [m["content"] for m in messages[:3]] == ["Be brief.", "Hi", "Do it all"]
    assert messages[3]["content"] == note_in(messages)
    assert "step 19" in messages[-1]["content"]
    assert_calls_are_answered(messages)


def test_replacing_the_conversation_discards_its_compaction(talk: Any) -> None:
    interpreter, server = talk(text("Yes."), text("Fine."), window=8000)
    interpreter.messages = history(16)
    assert compactions(interpreter, "And now?")
    interpreter.messages = history(2)
    assert compactions(interpreter, "And here?") == []
    assert "left out" not in str(posted(server)[1])


def test_a_local_server_reports_its_window_size(talk: Any) -> None:
    row = {"id": "local-model", "max_model_len": 8000}
    routes = {"GET /v1/models": as_json({"data": [row]})}
    asked: list[Any] = []
    with RoutedServer(routes) as server:
        interpreter, _ = talk(model="local-model")
        interpreter.llm.api_base = server.address + "/v1"
        asked = [interpreter.llm.window(tokens) for tokens in (100, 5000, 6000)]
    assert asked == [None, 8000, 8000]
    assert server.paths() == ["GET /v1/models"]


# -- the note ------------------------------------------------------------------------------------------------


class Sessions:
    """Sessions of the given languages are alive; without any, all are."""

    registry = BUILT_IN

    def __init__(self, *alive: str) -> None:
        self._alive = alive

    def is_alive(self, name: str) -> bool:
        return not self._alive or name in self._alive


def note_for(messages: list[Message], *alive: str) -> str:
    everything = [say("system", "s"), say("user", "First"), *messages, say("user", "Last")]
    cut = compact(everything, 0, Sessions(*alive), vision=False)
    assert cut is not None
    return cut.note


def test_the_note_lists_files_sessions_and_refusals() -> None:
    code = "import pandas as pd\ndf = pd.read_csv('data/sales.csv')\ndef total(x):\n    y = 1\ndf.to_json('out.json')"
    note = note_for(
        [
            *block(code, "python"),
            *block("grep -r x > notes.txt; cat /etc/hosts.allow", "shell"),
            {"role": "assistant", "type": "code", "format": "shell", "content": "rm -rf build"},
            say("user", "I have declined to run this code."),
            say("user", "Never delete anything, ask about report.pdf"),
            say("assistant", "As you wish."),
        ],
        "python",
    )
    assert "The python session is still alive, with df, total." in note
    assert "The shell session is gone" in note
    named = "data/sales.csv, out.json, notes.txt, /etc/hosts.allow, report.pdf."
    assert f"Files that the code or the user named: {named}" in note
    assert "The user declined to run shell 'rm -rf build'." in note
    assert "The user: Never delete anything, ask about report.pdf / You: As you wish." in note


def test_variables_of_a_dead_session_are_not_listed_as_alive() -> None:
    died: Message = {"role": "computer", "type": "console", "format": "output", "content": "", "ended": "died"}
    note = note_for([*block("old = 1", "python")[:1], died, *block("new = 1", "python")])
    assert "with new." in note
    assert "old" not in note.partition("Known of them:")[2]


def test_a_note_stays_short_however_much_is_left_out() -> None:
    messages: list[Message] = []
    for turn in range(300):
        messages += [say("user", f"Request {turn} about file{turn}.txt " * 30), say("assistant", LONG)]
    assert len(note_for(messages)) < 4000


# -- when the server refuses it as too long ---------------------------------------------------------------------


def test_a_too_long_error_triggers_compaction_and_a_retry(talk: Any) -> None:
    interpreter, server = talk(TOO_LONG, text("Yes."), model="local-model")
    interpreter.messages = history(8)
    [event] = compactions(interpreter, "And now?")
    assert event["messages"] > 0
    assert interpreter.messages[-1]["content"] == "Yes."
    first, second = posted(server)
    assert len(json.dumps(second)) < len(json.dumps(first)) * 0.6


def test_a_second_too_long_error_keeps_only_the_first_and_last_request(talk: Any) -> None:
    interpreter, server = talk(TOO_LONG, TOO_LONG, text("Yes."))
    interpreter.messages = history(8)
    assert len(compactions(interpreter, "And now?")) == 2
    last = posted(server)[-1]
    assert [m["content"] for m in last if m["role"] == "user"][::2] == ["Request 0", "And now?"]


def test_a_too_long_error_is_raised_after_two_compactions(talk: Any) -> None:
    interpreter, server = talk(*[TOO_LONG] * 9, model="local-model")
    interpreter.messages = history(8)
    with pytest.raises(ContextTooLongError):
        compactions(interpreter, "And now?")
    assert len(posted(server)) == 3


def test_a_size_the_server_refused_is_compacted_before_sending(talk: Any) -> None:
    interpreter, server = talk(TOO_LONG, text("Yes."), text("Well."), model="local-model")
    interpreter.messages = history(8)
    compactions(interpreter, "And now?")
    interpreter.messages = history(20)
    assert compactions(interpreter, "And then?")
    assert len(posted(server)) == 3


def test_a_single_message_that_is_too_long_raises_an_error(talk: Any) -> None:
    interpreter, server = talk(TOO_LONG, model="local-model")
    with pytest.raises(ContextTooLongError):
        compactions(interpreter, LONG * 10)
    assert len(posted(server)) == 1


def test_an_unexplained_refusal_near_the_window_limit_counts_as_too_long(talk: Any) -> None:
    refused = error(400, {"error": {"message": "prompt is too long: 7 > 5", "type": "invalid_request_error"}})
    interpreter, server = talk(refused, refused, text("Yes."), window=7000, model="local-model")
    interpreter.messages = history(8)
    assert compactions(interpreter, "And now?")
    assert interpreter.messages[-1]["content"] == "Yes."
    assert "stream_options" in server.requests[-1].body  # not the cause, so it stays


def test_a_refusal_far_below_the_window_limit_is_raised(talk: Any) -> None:
    refused = error(400, {"error": {"message": "bad", "type": "invalid_request_error"}})
    interpreter, _ = talk(refused, refused, window=70_000, model="local-model")
    interpreter.messages = history(8)
    with pytest.raises(RequestRefusedError):
        compactions(interpreter, "And now?")


def test_a_llama_cpp_refusal_reports_the_window_size(talk: Any) -> None:
    words = {"message": "too long", "type": "exceed_context_size_error", "code": 400}
    refused = error(400, {"error": words | {"n_prompt_tokens": 5000, "n_ctx": 4096}})
    interpreter, _ = talk(refused, text("Yes."), model="local-model")
    interpreter.messages = history(16)
    [event] = compactions(interpreter, "And now?")
    assert event["tokens_after"] < 4096 * 0.75 / 2 + 200


# -- images ----------------------------------------------------------------------------------------------------


def image(number: int) -> Message:
    return {"role": "user", "type": "image", "format": "base64.png", "content": f"{PIXEL}{number}"}


def test_old_images_are_dropped_first(talk: Any) -> None:
    interpreter, server = talk(text("Yes."), window=2000)
    for number in range(18):
        interpreter.messages += [image(number), say("user", f"Look {number}"), say("assistant", f"Saw {number}")]
    [event] = compactions(interpreter, "And now?")
    assert (event["messages"], event["images"]) == (0, 15)
    sent = str(posted(server)[0])
    assert [n for n in range(18) if f"{PIXEL}{n}'" in sent] == [0, 16, 17]
    assert "Saw 4" in sent


def test_old_images_are_dropped_when_a_request_is_too_large(talk: Any) -> None:
    large = error(413, {"error": {"type": "request_too_large", "message": "too large"}})
    interpreter, server = talk(large, text("Yes."))
    for number in range(6):
        interpreter.messages += [image(number), say("user", f"Look {number}"), say("assistant", f"Saw {number}")]
    [event] = compactions(interpreter, "And now?")
    assert (event["messages"], event["images"]) == (0, 3)
    assert "Saw 2" in str(posted(server)[1])


# -- counting --------------------------------------------------------------------------------------------------


def params(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages)}


def test_the_servers_token_count_calibrates_the_estimate() -> None:
    context = Context()
    old = {"role": "user", "content": "x" * 4000}
    new = {"role": "assistant", "content": "y" * 4000}
    assert context.size(params(old)) == 1004
    context.learn(params(old), {"input_tokens": 2008, "estimated": False})
    assert context.size(params(old)) == 2008
    assert context.size(params(old, new)) == 4016


def test_another_prefix_or_model_is_estimated() -> None:
    context = Context()
    context.learn(params({"role": "user", "content": "x" * 4000}), {"input_tokens": 2008})
    assert context.size(params({"role": "user", "content": "z" * 2000})) == 1008
    assert context.size({**params({"role": "user", "content": "x" * 4000}), "model": "n"}) == 1004


def test_an_implausible_token_count_is_ignored() -> None:
    context = Context()
    context.learn(params({"role": "user", "content": "x" * 4000}), {"input_tokens": 3})
    assert context.size(params({"role": "user", "content": "x" * 4000})) == 1004


def test_a_model_with_short_tokens_is_compacted_in_time(talk: Any) -> None:
    dense = text("Yes.").then(usage(9000, 10))
    interpreter, _ = talk(dense, text("Sure."), window=12_000)
    interpreter.messages = history(8)  # 4,500 tokens by our estimate
    assert compactions(interpreter, "And now?") == []
    assert compactions(interpreter, LONG)


# -- any conversation ------------------------------------------------------------------------------------------

KINDS = st.sampled_from(["user", "say", "code", "output", "picture", "for the user"])
MADE: dict[str, Message] = {
    "user": say("user", "Please do"),
    "say": say("assistant", "I will"),
    "code": {"role": "assistant", "type": "code", "format": "python", "content": "x = 1"},
    "output": {"role": "computer", "type": "console", "format": "output", "content": "1"},
    "picture": {"role": "computer", "type": "image", "format": "base64.png", "content": PIXEL},
    "for the user": {"role": "computer", "type": "code", "format": "html", "content": "<b>", "recipient": "user"},
}


@given(st.lists(KINDS, max_size=40), st.integers(0, 400), st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)
def test_compaction_never_splits_a_call_from_its_result_or_loses_requests(
    kinds: list[str], room: int, vision: bool
) -> None:
    messages = [say("system", "Be brief."), say("user", "The first"), *(copy.copy(MADE[kind]) for kind in kinds)]
    messages.append(say("user", "The last"))
    cut = compact(messages, room, Sessions(), vision=vision)
    assert cut == compact(copy.deepcopy(messages), room, Sessions(), vision=vision)
    forms = Forms(vision=vision)
    chat = convert(messages, ToolChat(), forms, Memory(), cut)
    assert_calls_are_answered(chat)
    plain = convert(messages, TextChat(forms), forms, Memory(), cut)
    for made in (chat, plain):
        assert "The first" in str(made[1]["content"]) and "The last" in str(made[-1]["content"])
    if cut is not None:
        assert cut.holds(messages) and cut.holds([*messages, say("assistant", "And")])
        assert not cut.holds([*messages[:1], say("user", "Another"), *messages[2:]])
        assert not cut.dropped or cut.note in [m["content"] for m in chat]
