"""A scripted server for Anthropic's Messages API as documented, which refuses the same requests.

with AnthropicServer([message(thinking("Hm."), say("Hello.")), message(use("python", "1 + 1"))]) as server:
    ...  # point a client at server.base_url
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from model_replies import AnyReply, RawReply, Scripted, Split, Stall, pieces, raw
from model_server import ModelServer

Event = dict[str, Any]
Steps = list[Event]

SSE = (("Content-Type", "text/event-stream; charset=utf-8"),)


# -- blocks: the content of content_block_start, then the deltas ---------------------------------------------


def say(text: str, split: Split = None) -> Steps:
    return [{"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces(text, split))]


def thinking(text: str, signature: str = "c2lnbmVk", split: Split = None) -> Steps:
    """Thinking; without text, as when it is not displayed."""
    thought = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(text, split) if piece]
    start = {"type": "thinking", "thinking": "", "signature": ""}
    return [start, *thought, {"type": "signature_delta", "signature": signature}]


def redacted(data: str) -> Steps:
    return [{"type": "redacted_thinking", "data": data}]


def use(language: str, code: str, split: Split = None, call_id: str = "toolu_01A", name: str = "execute") -> Steps:
    return use_tool(name, {"language": language, "code": code}, call_id, split)


def use_tool(name: str, given: dict[str, Any], call_id: str = "toolu_01A", split: Split = None) -> Steps:
    """Call any tool."""
    arguments = json.dumps(given)
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(arguments, split)]]
    return [{"type": "tool_use", "id": call_id, "name": name, "input": {}}, *deltas]


def act(call_id: str = "toolu_01A", split: Split = None, **action: Any) -> Steps:
    """Call the computer tool."""
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *pieces(json.dumps(action), split)]]
    return [{"type": "tool_use", "id": call_id, "name": "computer", "input": {}}, *deltas]


# -- answers -------------------------------------------------------------------------------------------------


def events_of(
    *blocks: Steps,
    usage: tuple[int, int] = (25, 15),
    cached: tuple[int, int] = (0, 0),
    stop: str | None = None,
    **delta: Any,
) -> Iterator[Event]:
    """Yield the events of an answer, from message_start to message_stop."""
    read, written = cached
    before = {
        "input_tokens": usage[0],
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
    }
    begun = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-scripted",
        "content": [],
    }
    begun |= {"stop_reason": None, "stop_sequence": None, "usage": {**before, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    called = False
    for index, (start, *deltas) in enumerate(blocks):
        called = called or start["type"] == "tool_use"
        yield {"type": "content_block_start", "index": index, "content_block": start}
        if index == 0:
            yield {"type": "ping"}
        for each in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": each}
        yield {"type": "content_block_stop", "index": index}
    reason = stop or ("tool_use" if called else "end_turn")
    ended = {"stop_reason": reason, "stop_sequence": None, **delta}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage[1]}}
    yield {"type": "message_stop"}


def encoded(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def message(*blocks: Steps, **options: Any) -> RawReply:
    return RawReply(tuple(encoded(event) for event in events_of(*blocks, **options)), headers=SSE)


def cut(*blocks: Steps, keep: int, breaks_off: bool = False, then: bytes | Stall = b"") -> RawReply:
    """Only the first events of an answer."""
    first = [encoded(event) for event in events_of(*blocks)][:keep]
    return RawReply((*first, then), headers=SSE, breaks_off=breaks_off)


def whole(*contents: dict[str, Any], stop: str = "end_turn") -> RawReply:
    """Return an answer that is not streamed."""
    usage = {"input_tokens": 25, "output_tokens": 15}
    body = {"id": "msg_01", "type": "message", "role": "assistant", "content": list(contents)}
    body |= {"stop_reason": stop, "usage": usage}
    return raw(json.dumps(body).encode(), content_type="application/json")


def failure(status: int, kind: str, words: str = "Sorry.", headers: dict[str, str] | None = None) -> RawReply:
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_01"}
    all_headers = {"Content-Type": "application/json", "request-id": "req_01"} | (headers or {})
    return RawReply((json.dumps(body).encode(),), status, tuple(all_headers.items()))


def error_event(kind: str, words: str = "Sorry.") -> bytes:
    return encoded({"type": "error", "error": {"type": kind, "message": words}})


# -- the server ----------------------------------------------------------------------------------------------


class AnthropicServer(ModelServer):
    """Answers valid requests at /v1/messages.

    Thinking is bound to the messages before it: after any others, it is refused.
    """

    def __init__(self, replies: Iterable[Scripted] = (), **options: Any) -> None:
        super().__init__(replies, **options)
        self.bound: dict[str, str] = {}

    def next_reply(self, body: dict[str, Any]) -> AnyReply:
        reply = super().next_reply(body)
        sent = b"".join(step for step in getattr(reply, "chunks", ()) if isinstance(step, bytes))
        for signature in re.findall(rb'"signature": "(.+?)"', sent):
            self.bound[signature.decode()] = before(body, len(body["messages"]))
        return reply

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> RawReply | None:
        if path != "/v1/messages":
            return failure(404, "not_found_error", f"no such path: {path}")
        if not headers.get("x-api-key") or (self.api_key and headers["x-api-key"] != self.api_key):
            return failure(401, "authentication_error", "invalid x-api-key")
        if headers.get("anthropic-version") != "2023-06-01":
            return failure(400, "invalid_request_error", "anthropic-version: header is required")
        wrong = next(iter([*problems(body), *self._misplaced(body)]), None)
        return failure(400, "invalid_request_error", wrong) if wrong else None

    def _misplaced(self, body: dict[str, Any]) -> Iterator[str]:
        for at, told in enumerate(body["messages"]):
            for block in told["content"]:
                if block["type"] == "thinking" and self.bound.get(block["signature"]) != before(body, at):
                    yield f"messages.{at}: The block is bound to a different conversation."


def before(body: dict[str, Any], at: int) -> str:
    """Return what a block in a message is bound to: everything before that message, without cache marks."""
    prefix = json.dumps([body.get("system"), body.get("tools"), body["messages"][:at]], sort_keys=True)
    return re.sub(r'"cache_control": \{.*?\},? ?', "", prefix)


def problems(body: dict[str, Any]) -> Iterator[str]:
    """Yield what the real API refuses, in the order of its checks."""
    known = {"model", "max_tokens", "stream", "system", "tools", "messages", "temperature", "thinking"}
    known |= {"stop_sequences", "top_p", "top_k", "tool_choice", "metadata"}
    yield from (f"{name}: Extra inputs are not permitted" for name in body.keys() - known)
    if not isinstance(body.get("max_tokens"), int):
        yield "max_tokens: Field required"
    marks = json.dumps(body).count('"cache_control"')
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    messages = body["messages"]
    if messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        yield "messages: the conversation must begin and end with a user message"
    for at, (one, next_one) in enumerate(pairwise(messages)):
        if one["role"] == next_one["role"]:
            yield f"messages.{at + 1}: roles must alternate"
    waiting: list[str] = []
    for at, each in enumerate(messages):
        yield from _content_problems(at, each, waiting)
        waiting = [block["id"] for block in each["content"] if block["type"] == "tool_use"]
    if waiting:
        yield "messages: `tool_use` ids were found without `tool_result` blocks"


def _content_problems(at: int, told: dict[str, Any], waiting: list[str]) -> Iterator[str]:
    blocks = told["content"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if sorted(answered) != sorted(waiting):
        yield f"messages.{at}: tool_result {answered} do not answer {waiting}"
    if any(block["type"] == "tool_result" for block in blocks[len(answered) :]):
        yield f"messages.{at}: tool_result blocks must come first"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield f"messages.{at}: text content blocks must contain non-whitespace text"
        if block["type"] == "thinking" and (not block["signature"] or "cache_control" in block):
            yield f"messages.{at}: Invalid `signature` in `thinking` block"
        if block["type"] == "image" and block["source"]["type"] == "base64" and not block["source"]["data"]:
            yield f"messages.{at}: image.source.base64.data: Field required"
