"""Chat-completions replies, well-formed or odd, become chunks or typed errors."""

from __future__ import annotations

import json

import pytest

from interpreter.errors import BrokenStreamError, NotAStreamError, ReplyCutError
from model_server import RawReply, Reply, broken, events, raw, reasoning, text, tool_call, usage
from scripted_llm import HELLO, SYSTEM, Start, folded


def stream_of(reply: Reply) -> bytes:
    return b"".join(event for event in events(reply) if isinstance(event, bytes))


def test_text_arrives_piece_by_piece(asking: Start) -> None:
    pieces = ["He", "llo", " you"]
    chunks = asking(text("Hello you", pieces)).chunks()
    assert chunks == [{"type": "message", "content": piece} for piece in pieces]


def test_a_tool_call_becomes_a_code_block_with_an_end_marker(asking: Start) -> None:
    chunks = asking(text("Look:").then(tool_call("python", "print(1)", 6))).chunks()
    assert folded(chunks) == ["Look:", ("python", "print(1)")]
    assert chunks[-1] == {"type": "code", "format": "python", "end": True, "call": "call_1"}


def test_fenced_code_becomes_a_block_without_tool_support(asking: Start) -> None:
    chunks = asking(text("Look:\n```shell\nls\n```\n", 1), supports_functions=False).chunks()
    assert folded(chunks) == ["Look:\n", ("shell", "ls")]


def test_reasoning_has_its_own_chunk_type(asking: Start) -> None:
    chunks = asking(reasoning("Hm, ", 2).then(text("yes"))).chunks()
    assert [chunk["type"] for chunk in chunks] == ["reasoning", "reasoning", "message"]


def test_usage_is_marked_as_estimated_unless_the_server_counts(asking: Start) -> None:
    model = asking(text("Hi").then(usage(12, 3)), text("Hi" * 40))
    counted, estimated = ([*model.stream()][-1] for _ in range(2))
    expected = {"input_tokens": 12, "output_tokens": 3, "estimated": False}
    assert (counted["type"], counted["format"]) == ("status", "usage")
    assert counted["content"].items() >= expected.items()
    assert estimated["content"]["estimated"] is True
    assert estimated["content"]["output_tokens"] == 20
    assert estimated["content"]["input_tokens"] > 20


ODD_STREAMS = {
    "crlf": raw(stream_of(text("Hi you", 2)).replace(b"\n", b"\r\n")),
    "byte by byte": raw(*(bytes([byte]) for byte in stream_of(text("Hi you")))),
    "byte order mark": raw(b"\xef\xbb\xbf" + stream_of(text("Hi you"))),
    "comments": raw(b": hello\n\n", b":\n\n", stream_of(text("Hi you", 3))),
    "wrong content type": raw(stream_of(text("Hi you")), content_type="text/plain"),
    "no empty lines": raw(stream_of(text("Hi you", 3)).replace(b"\n\n", b"\n")),
    "no done event": raw(stream_of(text("Hi you")).removesuffix(b"data: [DONE]\n\n")),
    "leading blank lines": raw(b"\n\n\n" + stream_of(text("Hi you"))),
    "plain JSON": raw(
        json.dumps({"choices": [{"message": {"role": "assistant", "content": "Hi you"}}]}).encode(),
        content_type="application/json",
    ),
}


@pytest.mark.parametrize("reply", ODD_STREAMS.values(), ids=ODD_STREAMS.keys())
def test_odd_but_readable_streams_are_accepted(asking: Start, reply: RawReply) -> None:
    assert folded(asking(reply).chunks()) == ["Hi you"]


def test_tool_calls_in_a_reply_that_is_not_streamed(asking: Start) -> None:
    function = {"name": "execute", "arguments": {"language": "shell", "code": "ls"}}
    message = {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    body = json.dumps({"choices": [{"message": message}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
    chunks = [*asking(raw(body.encode(), content_type="application/json")).stream()]
    assert folded(chunks) == [("shell", "ls")]
    assert chunks[-1]["content"]["input_tokens"] == 5


def test_a_broken_stream_keeps_the_partial_text_and_is_not_retried(asking: Start) -> None:
    model = asking(text("Hello", 1).then(broken()), text("again"))
    chunks, _ = model.until_error(BrokenStreamError)
    assert folded(chunks) == ["Hello"]
    assert len(model.server.requests) == 1


def test_a_block_in_a_broken_stream_has_no_end_marker(asking: Start) -> None:
    whole = tool_call("python", "print(1)\nprint(2)", 4)
    model = asking(Reply(whole.deltas[:-2], breaks_off=True))
    chunks, _ = model.until_error(BrokenStreamError)
    assert folded(chunks) == [("print(1)\npr",)]
    fenced = asking(text("```python\nprint(1)\npri", 3).then(broken()), supports_functions=False)
    chunks, _ = fenced.until_error(BrokenStreamError)
    assert folded(chunks) == [("print(1)\npri",)]


def test_a_stream_that_breaks_before_any_text_is_retried(asking: Start) -> None:
    model = asking(broken(), text("Hi"))
    *_, retry, hi = model.chunks()
    assert (retry["format"], retry["content"]["reason"]) == ("retry", "connection lost")
    assert hi["content"] == "Hi"


def test_a_block_cut_off_by_the_token_limit_raises_an_error(asking: Start) -> None:
    cut = tool_call("python", "print(1)", arguments='{"language": "python", "code": "print(')
    model = asking(Reply(cut.deltas, finish_reason="length"), Reply(text("So").deltas, finish_reason="length"))
    chunks, error = model.until_error(ReplyCutError)
    assert folded(chunks) == [("print(",)]
    assert "max_tokens" in str(error)
    assert folded(model.chunks()) == ["So"]


def test_an_html_page_raises_an_error_naming_the_url(asking: Start) -> None:
    model = asking(raw(b"<html>Welcome</html>", content_type="text/html"))
    _, error = model.until_error(NotAStreamError)
    assert model.server.base_url in str(error)
    assert "text/html" in str(error)
    assert "api_base" in str(error)
    assert len(model.server.requests) == 1


def test_garbage_in_a_stream_raises_an_error(asking: Start) -> None:
    first = events(text("Hi"))[0]
    chunks, _ = asking(raw(first, b"data: {broken\n\n")).until_error(BrokenStreamError)
    assert folded(chunks) == ["Hi"]


def test_connections_are_reused(asking: Start) -> None:
    model = asking(*[text("Hi")] * 3)
    for _ in range(3):
        model.chunks()
    ports = {request.port for request in model.server.requests}
    assert len(ports) == 1


def test_the_first_message_must_be_the_system_message(asking: Start) -> None:
    with pytest.raises(AssertionError):
        next(asking(text("Hi")).llm.reply([HELLO, SYSTEM]))
