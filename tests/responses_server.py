"""A scripted server for OpenAI's Responses API as documented, which refuses the same requests.

with ResponsesServer([response(reasoning("Hm."), say("Hello.")), response(call("r", "1"))]) as server:
    ...  # point a client at server.base_url
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from model_replies import RawReply, Split, Stall, error, pieces, raw
from model_server import ModelServer

Event = dict[str, Any]
Steps = list[Event]

SSE = (("Content-Type", "text/event-stream; charset=utf-8"),)


# -- items: the item when added, the events in between, the item when done -----------------------------------


def say(text: str, split: Split = None) -> Steps:
    added = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    full = {**part, "text": text}
    return [
        added,
        {"type": "response.content_part.added", "content_index": 0, "part": part},
        *(
            {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
            for piece in pieces(text, split)
        ),
        {"type": "response.output_text.done", "content_index": 0, "text": text},
        {"type": "response.content_part.done", "content_index": 0, "part": full},
        {**added, "status": "completed", "content": [full]},
    ]


def reasoning(*summaries: str, encrypted: str | None = "Z2FpYQ==", split: Split = None) -> Steps:
    added = {"type": "reasoning", "id": "rs_1", "summary": []}
    added |= {"encrypted_content": encrypted} if encrypted else {}
    steps: Steps = []
    for index, text in enumerate(summaries):
        at = {"summary_index": index}
        part = {"type": "summary_text", "text": text}
        steps.append({"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}})
        for piece in pieces(text, split):
            steps.append({"type": "response.reasoning_summary_text.delta", **at, "delta": piece})
        steps.append({"type": "response.reasoning_summary_text.done", **at, "text": text})
        steps.append({"type": "response.reasoning_summary_part.done", **at, "part": part})
    return [
        added,
        *steps,
        {**added, "summary": [{"type": "summary_text", "text": text} for text in summaries]},
    ]


def call(language: str, code: str, split: Split = None, call_id: str = "call_1", name: str = "execute") -> Steps:
    return call_of(name, {"language": language, "code": code}, call_id, split)


def call_of(name: str, given: dict[str, Any], call_id: str = "call_1", split: Split = None) -> Steps:
    """Call any tool."""
    arguments = json.dumps(given)
    added = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": ""}
    deltas = [{"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces(arguments, split)]
    done = {"type": "response.function_call_arguments.done", "arguments": arguments}
    return [
        {**added, "status": "in_progress"},
        *deltas,
        done,
        {**added, "arguments": arguments, "status": "completed"},
    ]


def act(*actions: dict[str, Any], call_id: str = "call_1", checks: Sequence[dict[str, Any]] = ()) -> Steps:
    """Call the computer tool: with one action, or several in the newer form."""
    item = {"type": "computer_call", "id": "cu_1", "call_id": call_id, "pending_safety_checks": list(checks)}
    item |= {"action": actions[0]} if len(actions) == 1 else {"actions": list(actions)}
    return [{**item, "status": "in_progress"}, {**item, "status": "completed"}]


# -- answers -------------------------------------------------------------------------------------------------


def events_of(
    *items: Steps,
    usage: tuple[int, int] | None = (25, 15),
    cached: int = 0,
    status: str = "completed",
    **fields: Any,
) -> Iterator[Event]:
    """Yield the events of an answer, numbered, from response.created to its end."""
    for number, event in enumerate(_events(items, usage, cached, status, fields)):
        yield {**event, "sequence_number": number}


def _events(
    items: tuple[Steps, ...], usage: tuple[int, int] | None, cached: int, status: str, fields: dict[str, Any]
) -> Iterator[Event]:
    begun = {"id": "resp_1", "object": "response", "status": "in_progress", "error": None}
    begun |= {"incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, (added, *between, done) in enumerate(items):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": added}
        for step in between:
            yield {**step, **at, "item_id": added["id"]}
        yield {"type": "response.output_item.done", **at, "item": done}
    ended = begun | {"status": status, "output": [steps[-1] for steps in items], **fields}
    ended |= {"usage": counted(*usage, cached)} if usage else {}
    yield {"type": f"response.{status}", "response": ended}


def counted(read: int, written: int, cached: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


def encoded(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def response(*items: Steps, **options: Any) -> RawReply:
    return RawReply(tuple(encoded(event) for event in events_of(*items, **options)), headers=SSE)


def cut(*items: Steps, keep: int, breaks_off: bool = False, then: bytes | Stall = b"") -> RawReply:
    """Only the first events of an answer."""
    first = [encoded(event) for event in events_of(*items)][:keep]
    return RawReply((*first, then), headers=SSE, breaks_off=breaks_off)


def whole(*items: Steps, status: str = "completed", **fields: Any) -> RawReply:
    """Return an answer that is not streamed."""
    body = {"id": "resp_1", "object": "response", "status": status, "error": None, "incomplete_details": None}
    body |= {"output": [steps[-1] for steps in items], "usage": counted(25, 15), **fields}
    return raw(json.dumps(body).encode(), content_type="application/json")


def failure(status: int, kind: str, code: str | None = None, param: str | None = None) -> RawReply:
    return error(status, {"error": {"message": "Sorry.", "type": kind, "param": param, "code": code}})


def error_event(code: str | None, words: str = "Sorry.") -> bytes:
    return encoded({"type": "error", "code": code, "message": words, "param": None, "sequence_number": 3})


# -- the server ----------------------------------------------------------------------------------------------


class ResponsesServer(ModelServer):
    """Answers valid requests at /v1/responses."""

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> RawReply | None:
        if path != "/v1/responses":
            return failure(404, "invalid_request_error")
        if self.api_key and headers.get("authorization") != f"Bearer {self.api_key}":
            return failure(401, "invalid_request_error", "invalid_api_key")
        wrong = next(problems(body), None)
        return failure(400, "invalid_request_error", "invalid_value", wrong) if wrong else None


def problems(body: dict[str, Any]) -> Iterator[str]:
    """Yield the fields that the real API would reject."""
    known = {"model", "stream", "store", "instructions", "tools", "input", "include", "reasoning"}
    known |= {"temperature", "max_output_tokens", "truncation"}
    yield from body.keys() - known
    if body.get("store") is not False and any(item.get("encrypted_content") for item in body["input"]):
        yield "store"
    for kind in ("function_call", "computer_call"):
        called = [item["call_id"] for item in body["input"] if item["type"] == kind]
        answered = [item["call_id"] for item in body["input"] if item["type"] == f"{kind}_output"]
        if sorted(called) != sorted(answered):
            yield "input"
    for item, following in zip(body["input"], [*body["input"][1:], {"type": "nothing"}], strict=True):
        yield from _item_problems(item, following)


def _item_problems(item: dict[str, Any], following: dict[str, Any]) -> Iterator[str]:
    if "id" in item:  # nothing is stored, so there is nothing to look up
        yield "input.id"
    if item["type"] == "reasoning" and following["type"] not in (
        "reasoning",
        "function_call",
        "computer_call",
        "message",
    ):
        yield "input.reasoning"
    if item["type"] == "message":
        kinds = {part["type"] for part in item["content"]}
        allowed = {"output_text", "refusal"} if item["role"] == "assistant" else {"input_text", "input_image"}
        if not kinds or kinds - allowed:
            yield "input.content"
