"""OpenAI's Chat Completions: the wire format that most servers speak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm.http import DONE, Sent, odd_objects
from interpreter.llm.kept_replies import KeptReplies, Prefix, parts_of, stretch
from interpreter.llm.providers import Endpoint

_OURS = frozenset({"api_base", "api_key", "api_version"})
# What is left out, or sent under another name, for a server that objects to it.
_CAN_DO_WITHOUT = {"stream_options": None, "temperature": None, "max_tokens": "max_completion_tokens"}


class ChatCompletions:
    """Remembers what each server objected to, so that it is asked the right way from then on."""

    path = "/chat/completions"

    def __init__(self, replies: KeptReplies | None = None) -> None:
        self._replies = replies if replies is not None else KeptReplies()
        self._objections: dict[tuple[str, str], set[str]] = {}

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; what is not set is not sent."""
        body = {name: value for name, value in params.items() if name not in _OURS and value is not None}
        body |= {"model": endpoint.model, "stream": True, "stream_options": {"include_usage": True}}
        for name in {*endpoint.objects_to, *self._objections.get((endpoint.base_url, endpoint.model), ())}:
            value, other_name = body.pop(name, None), _CAN_DO_WITHOUT[name]
            if other_name and value is not None:
                body[other_name] = value
        if wants_replies_back(endpoint):
            body["messages"] = restored(endpoint, body, self._replies)
        return body

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Whether the request is worth sending again without what the server objects to."""
        known = self._objections.setdefault((endpoint.base_url, endpoint.model), set())
        sent = {"stream_options"} | {name for name in _CAN_DO_WITHOUT if params.get(name) is not None}
        # A server that does not say what it objects to most likely does not know the newest field.
        unsaid = {"stream_options"} if error.status in (400, 422) else set()
        if not error.params and unsaid & known:
            known -= unsaid  # refused without it too, so it was something else
            return False
        objections = error.params & sent if error.params else unsaid
        new = objections - known - set(endpoint.objects_to)
        known |= new
        return bool(new)

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; one that just stops is broken, unless HTTP says it is whole."""
        chunks = _chunks(events, framed)
        if not wants_replies_back(sent.endpoint):
            return chunks
        return watched(chunks, sent.endpoint, sent.body, self._replies)

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        choice = answer["choices"][0]
        delta = choice.get("message") or choice["delta"]
        finish_reason = choice.get("finish_reason") or "stop"
        return {"choices": [{"delta": delta, "finish_reason": finish_reason}], "usage": answer.get("usage")}


def _chunks(events: Iterator[bytes], framed: bool) -> Iterator[dict[str, Any]]:
    from jiter import from_json

    chunk: Any = None
    done = False
    for data in events:
        done = done or data == DONE
        if done:
            continue  # to the end of the response, so that the connection can be used again
        try:
            chunk = from_json(data, cache_mode="keys")
        except ValueError:
            yield from odd_objects(data)
            continue
        if isinstance(chunk, dict):
            yield chunk
    if not done and not framed and not _is_last(chunk):
        raise BrokenStreamError("The server ended its reply in the middle. Try again.")


def _is_last(chunk: Any) -> bool:
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    return choices is not None and all(choice.get("finish_reason") for choice in choices)


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
