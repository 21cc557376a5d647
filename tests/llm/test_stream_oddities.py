"""Streams of real servers have many oddities; in every wire format they give the same chunks."""

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
from scripted_llm import ScriptedLlm, Start, folded

Events = list[dict[str, Any]]


@dataclass(frozen=True)
class Format:
    """One wire format: its server, its client, and the same replies in its encoding."""

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
def wire_format(request: pytest.FixtureRequest) -> Format:
    chosen: Format = request.param
    return chosen


def ask(asking: Start, wire_format: Format, reply: RawReply, **settings: Any) -> ScriptedLlm:
    return asking(reply, kind=wire_format.server, model=wire_format.model, max_retries=0, **settings)


def read_reply(asking: Start, wire_format: Format, *steps: bytes, content_type: str = "text/event-stream") -> list[Any]:
    """The reply in these bytes, between its reasoning and its usage."""
    chunks = [*ask(asking, wire_format, raw(*steps, content_type=content_type)).stream()]
    assert "".join(chunk["content"] for chunk in chunks if chunk["type"] == "reasoning") == "Hm"
    assert chunks[-1]["format"] == "usage"
    return folded(chunks)


Change = Callable[[bytes], bytes]
CHANGES: dict[str, Change] = {
    "unchanged": lambda stream: stream,
    "CRLF": lambda stream: stream.replace(b"\n", b"\r\n"),
    "byte order mark": lambda stream: b"\xef\xbb\xbf" + stream,
    "keep-alive comments": lambda stream: b": hello\n\n" + stream.replace(b"\n\n", b"\n\n:\n\n: x\n\n"),
    "no space after the colon": lambda stream: stream.replace(b"data: ", b"data:"),
    "no event names": lambda stream: b"".join(
        line for line in stream.splitlines(keepends=True) if not line.startswith(b"event:")
    ),
    "no empty line at the end": lambda stream: stream.rstrip(b"\n"),
    "no empty lines at all": lambda stream: stream.replace(b"\n\n", b"\n"),
    "leading empty lines": lambda stream: b"\n\n\n" + stream,
    "unknown events": lambda stream: b'event: new\ndata: {"type": "new"}\n\n' + stream,
    "done event": lambda stream: stream.removesuffix(b"data: [DONE]\n\n") + b"data: [DONE]\n\n",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_odd_but_readable_streams_are_accepted(asking: Start, wire_format: Format, change: Change) -> None:
    assert read_reply(asking, wire_format, change(wire_format.stream(wire_format.words))) == ["Hi you"]
    assert read_reply(asking, wire_format, change(wire_format.stream(wire_format.call))) == CALLED


def test_single_bytes_and_a_wrong_content_type_are_accepted(asking: Start, wire_format: Format) -> None:
    stream = wire_format.stream(wire_format.call)
    assert read_reply(asking, wire_format, *(bytes([byte]) for byte in stream), content_type="text/plain") == CALLED


def test_characters_may_be_escaped_or_utf_8(asking: Start, wire_format: Format) -> None:
    reply = json.loads(json.dumps(wire_format.words).replace("you", "é😀"))
    for plain in (True, False):
        stream = b"".join(_encoded(wire_format, event, plain) for event in reply)
        assert read_reply(asking, wire_format, stream) == ["Hi é😀"]


def _encoded(wire_format: Format, event: dict[str, Any], plain: bool) -> bytes:
    if not event:
        return b"data: [DONE]\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=plain)}\n\n".encode()


def test_missing_usage_is_estimated(asking: Start, wire_format: Format) -> None:
    altered = json.dumps(wire_format.words)
    for name in ("usage", "prompt_tokens", "input_tokens"):
        altered = altered.replace(f'"{name}"', '"nothing"')
    [*_, last] = ask(asking, wire_format, raw(wire_format.stream(json.loads(altered)))).stream()
    assert last["content"]["estimated"] is True


def test_usage_is_the_last_chunk(asking: Start, wire_format: Format) -> None:
    [*_, last] = ask(asking, wire_format, raw(wire_format.stream(wire_format.words))).stream()
    expected = {"input_tokens": 25, "output_tokens": 15, "estimated": False}
    assert last["content"].items() >= expected.items()


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
    wire_format = FORMATS[name]
    empty = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in EMPTY[name])
    steps = [wire_format.encode(event) for event in wire_format.words]
    assert read_reply(asking, wire_format, steps[0], *(step + empty for step in steps[1:-1]), steps[-1]) == ["Hi you"]


ONE_PIECE: dict[str, Events] = {
    # The whole call in one delta, as an object; no index.
    "chat": chat_events(tool_call(arguments={"language": "shell", "code": "ls"}, index=None, id=None)),
    # In the block's start event, without deltas.
    "anthropic": list(
        A.events_of([{"type": "tool_use", "name": "execute", "input": {"language": "shell", "code": "ls"}}])
    ),
    # In the finished item alone.
    "responses": [
        event
        for event in R.events_of(R.call("shell", "ls"))
        if event["type"] in ("response.output_item.done", "response.completed")
    ],
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_call_in_one_piece_without_an_id_is_read(asking: Start, name: str) -> None:
    altered = json.loads(json.dumps(ONE_PIECE[name]).replace('"call_id"', '"nothing"').replace('"id"', '"none"'))
    model = ask(asking, FORMATS[name], raw(FORMATS[name].stream(altered)))
    assert folded(model.chunks()) == [("shell", "ls")]


def test_text_in_one_responses_item_is_read(asking: Start) -> None:
    wire_format = FORMATS["responses"]
    done = [event for event in wire_format.words if event["type"].endswith(("item.done", "completed"))]
    assert read_reply(asking, wire_format, wire_format.stream(done)) == ["Hi you"]


def test_anthropic_blocks_without_start_and_stop_events_are_read(asking: Start) -> None:
    wire_format = FORMATS["anthropic"]
    deltas = [event for event in wire_format.words if "block_st" not in event["type"]]
    assert read_reply(asking, wire_format, wire_format.stream(deltas)) == ["Hi you"]


def test_reasoning_is_read_under_all_its_field_names(asking: Start) -> None:
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
        assert read_reply(asking, FORMATS["chat"], stream) == ["Hi you"]


def test_think_tags_in_the_text_become_reasoning(asking: Start, wire_format: Format) -> None:
    altered = json.loads(json.dumps(wire_format.words).replace('"Hm"', '""').replace('"Hi ', '"<think>Hm</think>Hi '))
    assert read_reply(asking, wire_format, wire_format.stream(altered)) == ["Hi you"]


@pytest.mark.parametrize("garbage", [b"data: {broken\n\n", b"data: \xff\xfe\n\n", b"data: oops\n\n"])
def test_a_broken_chunk_keeps_the_text_before_it(asking: Start, wire_format: Format, garbage: bytes) -> None:
    stream = wire_format.stream(wire_format.words)
    at = stream.index(b"you")
    cut = stream.rindex(b"\n\n", 0, at) + 2
    chunks, _ = ask(asking, wire_format, raw(stream[:cut], garbage)).until_error(BrokenStreamError)
    assert folded(chunks) == ["Hi "]


def test_a_cut_stream_keeps_its_text_and_raises_an_error(asking: Start, wire_format: Format) -> None:
    stream = wire_format.stream(wire_format.words)
    cut = stream.index(b"you")
    broken = RawReply((stream[:cut],), breaks_off=True)
    chunks, _ = ask(asking, wire_format, broken).until_error(BrokenStreamError)
    assert folded(chunks) == ["Hi "]


def test_a_filtered_reply_raises_an_error(asking: Start) -> None:
    filtered = Reply(text("Ha").deltas, finish_reason="content_filter")
    chunks, _ = asking(filtered).until_error(ReplyDeclinedError)
    assert folded(chunks) == ["Ha"]


def test_html_pages_raise_an_error(asking: Start, wire_format: Format) -> None:
    page = b"<!DOCTYPE html><html><h1>Bad gateway</h1></html>"
    _, error = ask(asking, wire_format, raw(page, content_type="text/html")).until_error(NotAStreamError)
    assert "text/html" in str(error)
    failing = raw(page, content_type="text/html", status=502)
    _, error = ask(asking, wire_format, failing).until_error(ModelOverloadedError)
    assert "<h1>" not in str(error)
    missing = raw(page, content_type="text/html", status=404)
    ask(asking, wire_format, missing).until_error(NotAStreamError)


def test_empty_replies_and_unrelated_json_raise_an_error(asking: Start, wire_format: Format) -> None:
    ask(asking, wire_format, raw(b"")).until_error(BrokenStreamError)
    ask(asking, wire_format, raw(b'{"hello": "world"}')).until_error(NotAStreamError)


def chunks_of(wire_format: Format, pieces: list[bytes]) -> list[Any]:
    """The chunks in these bytes, read without a network."""
    endpoint = resolve(wire_format.model, {}, "http://localhost:1/v1")
    exchange = wire_format.exchange(endpoint, {"messages": []}, {})
    exchange.is_framed = True
    parser = ReplyParser(fences=False)
    out = [chunk for each in read_events(event_data(pieces), exchange) for chunk in parser.feed(each)]
    return [*out, *parser.finish(), parser.usage, parser.finish_reason]


@given(st.sampled_from(list(FORMATS)), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans(), st.data())
def test_any_split_of_the_bytes_gives_the_same_chunks(name: str, ending: bytes, words: bool, data: Any) -> None:
    wire_format = FORMATS[name]
    stream = wire_format.stream(wire_format.words if words else wire_format.call).replace(b"\n", ending)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert chunks_of(wire_format, pieces) == chunks_of(wire_format, [stream])
