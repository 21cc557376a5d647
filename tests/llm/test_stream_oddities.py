"""What real servers do to their streams, in every wire format: the same chunks come out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anthropic_server
import responses_server
from asking import Asking, Start, folded
from interpreter.errors import (
    BrokenStreamError,
    ModelOverloadedError,
    NotAStreamError,
    ReplyDeclinedError,
)
from interpreter.llm.anthropic import AnthropicMessages
from interpreter.llm.chat_completions import ChatCompletions
from interpreter.llm.http import Exchange, event_data, read_events
from interpreter.llm.providers import resolve
from interpreter.llm.reply_parser import ReplyParser
from interpreter.llm.responses import Responses
from model_server import ModelServer, RawReply, Reply, events, raw, reasoning, text, tool_call, usage

Events = list[dict[str, Any]]


@dataclass(frozen=True)
class Format:
    """One wire format: its server, its client, and the same replies in its words."""

    model: str
    server: type[ModelServer]
    exchange: type[Exchange]
    encode: Callable[[dict[str, Any]], bytes]
    words: Events
    """Hm / Hi you"""
    call: Events
    """Hm / Look: / print("é") / ls"""

    def stream(self, reply: Events) -> bytes:
        return b"".join(map(self.encode, reply))


def chat_events(*replies: Any) -> Events:
    whole = replies[0]
    for reply in replies[1:]:
        whole = whole.then(reply)
    steps = [step for step in events(whole) if isinstance(step, bytes)]
    return [json.loads(step.removeprefix(b"data: ")) for step in steps if b"[DONE]" not in step] + [{}]


def chat_encoded(event: dict[str, Any]) -> bytes:
    return b"data: " + (json.dumps(event, ensure_ascii=False).encode() if event else b"[DONE]") + b"\n\n"


A, R = anthropic_server, responses_server
FORMATS = {
    "chat": Format(
        "gpt-4o",
        ModelServer,
        ChatCompletions,
        chat_encoded,
        chat_events(reasoning("Hm"), text("Hi you", 3), usage(25, 15)),
        chat_events(
            reasoning("Hm"),
            text("Look:"),
            tool_call("python", 'print("é")', 6),
            tool_call("shell", "ls", 6, id="b"),
        ),
    ),
    "anthropic": Format(
        "anthropic/claude-opus-5",
        A.AnthropicServer,
        AnthropicMessages,
        A.encoded,
        list(A.events_of(A.thinking("Hm"), A.say("Hi you", 3))),
        list(
            A.events_of(
                A.thinking("Hm"),
                A.say("Look:"),
                A.use("python", 'print("é")', 6),
                A.use("shell", "ls", 6, "b"),
            )
        ),
    ),
    "responses": Format(
        "openai/responses/gpt-5",
        R.ResponsesServer,
        Responses,
        R.encoded,
        list(R.events_of(R.reasoning("Hm"), R.say("Hi you", 3))),
        list(
            R.events_of(
                R.reasoning("Hm"),
                R.say("Look:"),
                R.call("python", 'print("é")', 6),
                R.call("shell", "ls", 6, "b"),
            )
        ),
    ),
}
CALLED = ["Look:", ("python", 'print("é")'), ("shell", "ls")]


@pytest.fixture(params=FORMATS.values(), ids=FORMATS.keys())
def spoken(request: pytest.FixtureRequest) -> Format:
    chosen: Format = request.param
    return chosen


def ask(asking: Start, spoken: Format, reply: RawReply, **settings: Any) -> Asking:
    return asking(reply, kind=spoken.server, model=spoken.model, max_retries=0, **settings)


def heard(asking: Start, spoken: Format, *steps: bytes, content_type: str = "text/event-stream") -> list[Any]:
    """The reply that these bytes make, behind the reasoning and before the usage that they tell of."""
    chunks = [*ask(asking, spoken, raw(*steps, content_type=content_type)).stream()]
    assert "".join(chunk["content"] for chunk in chunks if chunk["type"] == "reasoning") == "Hm"
    assert chunks[-1]["format"] == "usage"
    return folded(chunks)


Change = Callable[[bytes], bytes]
CHANGES: dict[str, Change] = {
    "as it is": lambda stream: stream,
    "CRLF": lambda stream: stream.replace(b"\n", b"\r\n"),
    "a mark before it": lambda stream: b"\xef\xbb\xbf" + stream,
    "comments to keep it alive": lambda stream: b": hello\n\n" + stream.replace(b"\n\n", b"\n\n:\n\n: x\n\n"),
    "no space behind the colon": lambda stream: stream.replace(b"data: ", b"data:"),
    "no names of events": lambda stream: b"".join(
        line for line in stream.splitlines(keepends=True) if not line.startswith(b"event:")
    ),
    "no empty line at the end": lambda stream: stream.rstrip(b"\n"),
    "no empty lines at all": lambda stream: stream.replace(b"\n\n", b"\n"),
    "empty lines before it": lambda stream: b"\n\n\n" + stream,
    "events of kinds not known": lambda stream: b'event: new\ndata: {"type": "new"}\n\n' + stream,
    "an end mark": lambda stream: stream.removesuffix(b"data: [DONE]\n\n") + b"data: [DONE]\n\n",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_odd_but_readable(asking: Start, spoken: Format, change: Change) -> None:
    assert heard(asking, spoken, change(spoken.stream(spoken.words))) == ["Hi you"]
    assert heard(asking, spoken, change(spoken.stream(spoken.call))) == CALLED


def test_byte_by_byte_and_with_another_type(asking: Start, spoken: Format) -> None:
    stream = spoken.stream(spoken.call)
    assert heard(asking, spoken, *(bytes([byte]) for byte in stream), content_type="text/plain") == CALLED


def test_characters_as_escapes_and_in_utf_8(asking: Start, spoken: Format) -> None:
    reply = json.loads(json.dumps(spoken.words).replace("you", "é😀"))
    for plain in (True, False):
        stream = b"".join(_encoded(spoken, event, plain) for event in reply)
        assert heard(asking, spoken, stream) == ["Hi é😀"]


def _encoded(spoken: Format, event: dict[str, Any], plain: bool) -> bytes:
    if not event:
        return b"data: [DONE]\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=plain)}\n\n".encode()


def test_without_usage_it_is_estimated(asking: Start, spoken: Format) -> None:
    told = json.dumps(spoken.words)
    for name in ("usage", "prompt_tokens", "input_tokens"):
        told = told.replace(f'"{name}"', '"nothing"')
    [*_, last] = ask(asking, spoken, raw(spoken.stream(json.loads(told)))).stream()
    assert last["content"]["estimated"] is True


def test_usage_in_the_last_chunk(asking: Start, spoken: Format) -> None:
    [*_, last] = ask(asking, spoken, raw(spoken.stream(spoken.words))).stream()
    told = {"input_tokens": 25, "output_tokens": 15, "estimated": False}
    assert last["content"].items() >= told.items()


EMPTY: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {"choices": []},
        {"choices": [{"delta": {}}]},
        {"choices": [{"delta": {"content": None, "role": "assistant", "tool_calls": []}}]},
        {"choices": [{"delta": {"content": ""}, "finish_reason": None}], "usage": None},
        {"choices": None},
    ],
    "anthropic": [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "new_delta"}},
        {"type": "message_delta", "delta": {}, "usage": None},
        {"type": "content_block_stop", "index": 9},
        {"type": "ping"},
        {},
    ],
    "responses": [
        {"type": "response.output_text.delta", "output_index": 1, "delta": ""},
        {"type": "response.output_item.added", "output_index": 9, "item": {}},
        {"type": "response.output_item.done", "output_index": 9, "item": {}},
        {"type": "response.queued", "response": {}},
        {},
    ],
}


@pytest.mark.parametrize("name", FORMATS)
def test_empty_deltas_change_nothing(asking: Start, name: str) -> None:
    spoken = FORMATS[name]
    empty = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in EMPTY[name])
    steps = [spoken.encode(event) for event in spoken.words]
    assert heard(asking, spoken, steps[0], *(step + empty for step in steps[1:-1]), steps[-1]) == ["Hi you"]


ONE_PIECE: dict[str, Events] = {
    # The whole call in one delta, as an object; no index.
    "chat": chat_events(tool_call(arguments={"language": "shell", "code": "ls"}, index=None, id=None)),
    # In the block's beginning, without deltas.
    "anthropic": list(
        A.events_of([{"type": "tool_use", "name": "execute", "input": {"language": "shell", "code": "ls"}}])
    ),
    # With the finished item alone.
    "responses": [
        event
        for event in R.events_of(R.call("shell", "ls"))
        if event["type"] in ("response.output_item.done", "response.completed")
    ],
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_in_one_piece_without_an_id(asking: Start, name: str) -> None:
    told = json.loads(json.dumps(ONE_PIECE[name]).replace('"call_id"', '"nothing"').replace('"id"', '"none"'))
    model = ask(asking, FORMATS[name], raw(FORMATS[name].stream(told)))
    assert folded(model.chunks()) == [("shell", "ls")]


def test_text_in_one_piece_of_a_responses_server(asking: Start) -> None:
    spoken = FORMATS["responses"]
    done = [event for event in spoken.words if event["type"].endswith(("item.done", "completed"))]
    assert heard(asking, spoken, spoken.stream(done)) == ["Hi you"]


def test_blocks_of_anthropics_that_never_begin_or_end(asking: Start) -> None:
    spoken = FORMATS["anthropic"]
    deltas = [event for event in spoken.words if "block_st" not in event["type"]]
    assert heard(asking, spoken, spoken.stream(deltas)) == ["Hi you"]


def test_reasoning_under_the_names_that_it_has(asking: Start) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": ""}]
    for delta in (
        {"reasoning": "Hm"},
        {"reasoning_content": "Hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0}]},
        {
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "Hm"},
                {"type": "reasoning.encrypted", "data": "x"},
            ]
        },
        {"reasoning": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm"}], "content": ""},
        {"content": parts},
        {"content": "<think>Hm</think>"},
    ):
        chunk = {"choices": [{"delta": delta}]}
        stream = FORMATS["chat"].stream([chunk, *chat_events(text("Hi you"))])
        assert heard(asking, FORMATS["chat"], stream) == ["Hi you"]


def test_marks_of_thinking_in_the_text_of_any_format(asking: Start, spoken: Format) -> None:
    told = json.loads(json.dumps(spoken.words).replace('"Hm"', '""').replace('"Hi ', '"<think>Hm</think>Hi '))
    assert heard(asking, spoken, spoken.stream(told)) == ["Hi you"]


@pytest.mark.parametrize("garbage", [b"data: {broken\n\n", b"data: \xff\xfe\n\n", b"data: oops\n\n"])
def test_a_broken_chunk_keeps_what_came(asking: Start, spoken: Format, garbage: bytes) -> None:
    stream = spoken.stream(spoken.words)
    at = stream.index(b"you")
    cut = stream.rindex(b"\n\n", 0, at) + 2
    chunks, _ = ask(asking, spoken, raw(stream[:cut], garbage)).until_error(BrokenStreamError)
    assert folded(chunks) == ["Hi "]


def test_a_stream_that_is_cut_anywhere_gives_what_came_and_an_error(asking: Start, spoken: Format) -> None:
    stream = spoken.stream(spoken.words)
    cut = stream.index(b"you")
    broken = RawReply((stream[:cut],), breaks_off=True)
    chunks, _ = ask(asking, spoken, broken).until_error(BrokenStreamError)
    assert folded(chunks) == ["Hi "]


def test_a_reply_that_a_filter_ends_says_so(asking: Start) -> None:
    filtered = Reply(text("Ha").deltas, finish_reason="content_filter")
    chunks, _ = asking(filtered).until_error(ReplyDeclinedError)
    assert folded(chunks) == ["Ha"]


def test_pages_of_html(asking: Start, spoken: Format) -> None:
    page = b"<!DOCTYPE html><html><h1>Bad gateway</h1></html>"
    _, error = ask(asking, spoken, raw(page, content_type="text/html")).until_error(NotAStreamError)
    assert "text/html" in str(error)
    failing = raw(page, content_type="text/html", status=502)
    _, error = ask(asking, spoken, failing).until_error(ModelOverloadedError)
    assert "<h1>" not in str(error)
    missing = raw(page, content_type="text/html", status=404)
    ask(asking, spoken, missing).until_error(NotAStreamError)


def test_an_empty_answer_and_json_of_something_else(asking: Start, spoken: Format) -> None:
    ask(asking, spoken, raw(b"")).until_error(BrokenStreamError)
    ask(asking, spoken, raw(b'{"hello": "world"}')).until_error(NotAStreamError)


def chunks_of(spoken: Format, pieces: list[bytes]) -> list[Any]:
    """What the pieces come to, without a network between."""
    endpoint = resolve(spoken.model, {}, "http://localhost:1/v1")
    exchange = spoken.exchange(endpoint, {"messages": []}, {})
    exchange.is_framed = True
    parser = ReplyParser(fences=False)
    out = [chunk for each in read_events(event_data(pieces), exchange) for chunk in parser.feed(each)]
    return [*out, *parser.finish(), parser.usage, parser.finish_reason]


@given(st.sampled_from(list(FORMATS)), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans(), st.data())
def test_any_cut_of_the_bytes_gives_the_same_chunks(name: str, ending: bytes, words: bool, data: Any) -> None:
    spoken = FORMATS[name]
    stream = spoken.stream(spoken.words if words else spoken.call).replace(b"\n", ending)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert chunks_of(spoken, pieces) == chunks_of(spoken, [stream])
