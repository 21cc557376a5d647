"""Replies for the scripted model server: content, how it is split into deltas, and faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

Split = None | str | int | Sequence[str]
_NUMBERED: Any = "numbered"


@dataclass(frozen=True)
class Stall:
    """Wait for a number of seconds, for an event, or (None) until the client disconnects or the server closes."""

    until: float | threading.Event | None = None


@dataclass(frozen=True)
class Reply:
    """A well-formed answer: deltas in order, with waits between them."""

    deltas: tuple[dict[str, Any] | Stall, ...] = ()
    usage: dict[str, int] | None = None
    finish_reason: str | None = None
    breaks_off: bool = False

    def then(self, other: Reply) -> Reply:
        """This reply followed by the other, as one."""
        return replace(
            other,
            deltas=self.deltas + other.deltas,
            usage=other.usage or self.usage,
            finish_reason=other.finish_reason or self.finish_reason,
        )


@dataclass(frozen=True)
class RawReply:
    """Exactly these bytes as the body."""

    chunks: tuple[bytes | Stall, ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/event-stream"),)
    breaks_off: bool = False


AnyReply = Reply | RawReply
Scripted = AnyReply | str | dict[str, Any] | list[Any] | Callable[[dict[str, Any]], Any]


def text(content: str, split: Split = None) -> Reply:
    """Text, split into deltas: None (whole), "characters", a number of characters, or the pieces themselves."""
    return Reply(tuple({"content": piece} for piece in pieces(content, split)))


def reasoning(content: str, split: Split = None, key: str = "reasoning_content") -> Reply:
    return Reply(tuple({key: piece} for piece in pieces(content, split)))


def tool_call(
    language: str = "python",
    code: str = "",
    split: Split = None,
    id: str | None = "call_1",  # noqa: A002 - the name in the wire format
    index: int | None = _NUMBERED,
    name: str | None = "execute",
    arguments: Any = None,
) -> Reply:
    """One call; `id`, `index` and `name` can be None (left out), `arguments` replaces the usual JSON."""
    whole = json.dumps({"language": language, "code": code}) if arguments is None else arguments
    parts = pieces(whole, split) if isinstance(whole, str) else [whole]
    return Reply(tuple(_call_deltas(parts, id, index, name)))


def _call_deltas(
    parts: Sequence[Any], call_id: str | None, index: int | None, name: str | None
) -> Iterator[dict[str, Any]]:
    for number, part in enumerate(parts or [""]):
        call: dict[str, Any] = {"function": {"arguments": part}}
        if index is not None:
            call["index"] = index
        if number == 0:
            call["type"] = "function"
            call |= {"id": call_id} if call_id is not None else {}
            call["function"] |= {"name": name} if name is not None else {}
        call["_first"] = number == 0
        yield {"tool_calls": [call]}


def usage(input_tokens: int, output_tokens: int) -> Reply:
    """To append with `.then(usage(...))`."""
    total = input_tokens + output_tokens
    return Reply(usage={"prompt_tokens": input_tokens, "completion_tokens": output_tokens, "total_tokens": total})


def stall(until: float | threading.Event | None = None) -> Reply:
    """To put between parts: `text("a").then(stall()).then(text("b"))`."""
    return Reply((Stall(until),))


def broken() -> Reply:
    """To append: the connection closes here, in the middle of the stream."""
    return Reply(breaks_off=True)


def error(status: int, body: Any = None, headers: dict[str, str] | None = None) -> RawReply:
    """Return an error in OpenAI's format; `body` is a message, a dict, or raw bytes."""
    if isinstance(body, bytes):
        content = body
    else:
        message = body if isinstance(body, str) else f"scripted error {status}"
        data = body if isinstance(body, dict) else {"error": {"message": message, "type": None, "code": None}}
        content = json.dumps(data).encode()
    all_headers = {"Content-Type": "application/json"} | (headers or {})
    return RawReply((content,), status, tuple(all_headers.items()))


def raw(
    *chunks: bytes | Stall,
    status: int = 200,
    content_type: str = "text/event-stream",
    breaks_off: bool = False,
) -> RawReply:
    return RawReply(chunks, status, (("Content-Type", content_type),), breaks_off)


def events(reply: Reply, model: str = "scripted", with_usage: bool = True) -> list[bytes | Stall]:
    """Return the server-sent events of a reply, one item each, [DONE] last; useful for splitting them with `raw`."""
    sent = list(_events(reply, model, with_usage))
    return sent if reply.breaks_off else [*sent, b"data: [DONE]\n\n"]


def pieces(content: str, split: Split) -> list[str]:
    if split is None:
        return [content]
    if isinstance(split, str):
        return list(content)
    if isinstance(split, int):
        return [content[at : at + split] for at in range(0, len(content), split)]
    assert "".join(split) == content, "the pieces do not add up to the content"
    return list(split)


def reply_from_data(data: Any) -> AnyReply:
    """Read a reply from a script: "words", {"text"}, {"language", "code"}, {"error": 429}, or a list of them."""
    match data:
        case Reply() | RawReply():
            return data
        case str():
            return text(data)
        case list():
            return _joined(reply_from_data(part) for part in data)
        case {"text": content}:
            return text(content, data.get("split"))
        case {"reasoning": content}:
            return reasoning(content, data.get("split"))
        case {"code": code}:
            return tool_call(data.get("language", "python"), code, data.get("split"), data.get("id", "call_1"))
        case {"stall": seconds}:
            return stall(seconds)
        case {"usage": [before, after]}:
            return usage(before, after)
        case {"error": status}:
            return error(status, data.get("body"), data.get("headers"))
        case {"raw": content}:
            return raw(content.encode(), content_type=data.get("content_type", "text/event-stream"))
    raise ValueError(f"not a reply: {data!r}")


def _joined(replies: Iterable[AnyReply]) -> Reply:
    whole = Reply()
    for reply in replies:
        if not isinstance(reply, Reply):
            raise ValueError("an error or raw reply stands alone")
        whole = whole.then(reply)
    return whole


def _events(reply: Reply, model: str, with_usage: bool) -> Iterator[bytes | Stall]:
    base = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": model}
    finish = reply.finish_reason or "stop"
    calls = -1
    for delta in reply.deltas:
        if isinstance(delta, Stall):
            yield delta
            continue
        if "tool_calls" in delta:
            delta, calls = _numbered(delta, calls)
            finish = reply.finish_reason or "tool_calls"
        yield _event(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    if reply.breaks_off:
        return
    yield _event(base | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if reply.usage and with_usage:
        yield _event(base | {"choices": [], "usage": reply.usage})


def _numbered(delta: dict[str, Any], calls: int) -> tuple[dict[str, Any], int]:
    call = dict(delta["tool_calls"][0])
    calls += call.pop("_first")
    if call.get("index") == _NUMBERED:
        call["index"] = calls
    return {"tool_calls": [call]}, calls


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def completion(reply: Reply, model: str) -> bytes:
    """Convert the reply for a client that did not ask for a stream."""
    content: dict[str, str] = {}
    calls: list[dict[str, Any]] = []
    for delta in reply.deltas:
        if isinstance(delta, Stall):
            continue
        for call in delta.pop("tool_calls", []) if "tool_calls" in (delta := dict(delta)) else []:
            if call["_first"]:
                calls.append({"id": call.get("id"), "type": "function", "function": dict(call["function"])})
            else:
                calls[-1]["function"]["arguments"] += call["function"]["arguments"]
        for key, piece in delta.items():
            content[key] = content.get(key, "") + piece
    message = {"role": "assistant", "content": None} | content | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return json.dumps({"object": "chat.completion", "model": model, "choices": [choice], "usage": reply.usage}).encode()
