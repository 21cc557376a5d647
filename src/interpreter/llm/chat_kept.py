"""Chat Completions of the providers that want something of their own back with a call.

DeepSeek refuses a call without the reasoning that led to it, and wants none with anything else; Gemini signs
its calls. To all others nothing but words and calls goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from interpreter.llm.kept import KeptReplies, Prefix, parts_of, stretch
from interpreter.llm.providers import Endpoint

_PROVIDERS = frozenset({"deepseek", "gemini"})
# Google's own word for a call that another model made, or that is no longer what it was.
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_SIGNING = ("gemini-[3-9]*",)

Messages = list[dict[str, Any]]


def wants_replies_back(endpoint: Endpoint) -> bool:
    return endpoint.provider in _PROVIDERS


def restored(endpoint: Endpoint, body: Mapping[str, Any], replies: KeptReplies) -> Messages:
    """The messages of a request, its calls with what belongs to them."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    if endpoint.provider == "deepseek" and not len(replies):
        return list(body["messages"])  # it has not been thinking
    prefix = _prefix(endpoint, body)
    out: Messages = []
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if not message.get("tool_calls"):
            out.append(dict(message))
            continue
        kept = next(iter(replies.answer_to(prefix.at(out))), None)
        reply = stretch(messages, at - 1, parts_of(kept)) if kept else None
        if kept is None or reply is None:
            out.append(_unkept(endpoint, message, kept or {}))
            continue
        calls = [{**call, "id": own} for call, own in zip(kept["tool_calls"], reply.ids, strict=True)]
        out += [{**kept, "tool_calls": calls}, *map(dict, reply.results)]
        at = reply.end
    return out


def watched(
    chunks: Iterator[dict[str, Any]], endpoint: Endpoint, body: Mapping[str, Any], replies: KeptReplies
) -> Iterator[dict[str, Any]]:
    """The chunks as they are; a reply with calls is kept once it has ended."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for chunk in chunks:
        for choice in chunk.get("choices") or ():
            _join(message, choice.get("delta") or {})
            if choice.get("finish_reason") and "tool_calls" in message:
                replies.keep(_prefix(endpoint, body).at(body["messages"]), [message])
        yield chunk


def _prefix(endpoint: Endpoint, body: Mapping[str, Any]) -> Prefix:
    return Prefix(endpoint, body.get("tools"))


def _join(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key in ("content", "reasoning_content"):
        if isinstance(delta.get(key), str):
            message[key] = message.get(key, "") + delta[key]
    for piece in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        at = piece.get("index")
        function = piece.get("function") or {}
        if not calls or (at is not None and at >= len(calls)) or (at is None and function.get("name")):
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call = calls[at] if at is not None and at < len(calls) else calls[-1]
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""
        if piece.get("extra_content"):
            call["extra_content"] = piece["extra_content"]


def _unkept(endpoint: Endpoint, message: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """A turn that is not as it was, or not of this model's making, in the form that is still taken."""
    if endpoint.provider == "deepseek":
        return {**message, "reasoning_content": kept.get("reasoning_content", "")}
    if not any(fnmatchcase(endpoint.model.lower(), pattern) for pattern in _SIGNING):
        return dict(message)
    first, *others = message["tool_calls"]
    return {**message, "tool_calls": [{**first, "extra_content": _UNSIGNED}, *others]}
