"""OpenAI's Chat Completions: the wire format that most servers speak.

Two providers want something back with a call. DeepSeek refuses a call without the reasoning that led to it, and wants
none with anything else; Gemini signs its calls. All others get only words and calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm.http import DONE, Sent, json_objects
from interpreter.llm.kept_replies import KeptReplies, Prefix, parts_of, turns
from interpreter.llm.providers import Endpoint

_OURS = frozenset({"api_base", "api_key", "api_version"})
# What is left out, or sent under another name, for a server that objects to it.
_CAN_DO_WITHOUT = {"stream_options": None, "temperature": None, "max_tokens": "max_completion_tokens"}
_WANT_REPLIES_BACK = frozenset({"deepseek", "gemini"})
# What Google expects on a call that another model made, or that has changed.
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_SIGNING = "gemini-[3-9]*"


class ChatCompletions:
    """The wire format. Remembers what each server objects to, so that it isn't sent again."""

    path = "/chat/completions"

    def __init__(self, replies: KeptReplies | None = None) -> None:
        self._replies = replies if replies is not None else KeptReplies()
        self._objections: dict[tuple[str, str], set[str]] = {}

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body. Parameters that are not set are not sent."""
        body = {name: value for name, value in params.items() if name not in _OURS and value is not None}
        body |= {"model": endpoint.model, "stream": True, "stream_options": {"include_usage": True}}
        for name in {*endpoint.objects_to, *self._objections.get((endpoint.base_url, endpoint.model), ())}:
            value, other_name = body.pop(name, None), _CAN_DO_WITHOUT.get(name)
            if other_name and value is not None:
                body[other_name] = value
        is_thinking = endpoint.provider != "deepseek" or self._replies
        if endpoint.provider in _WANT_REPLIES_BACK and is_thinking:
            body["messages"] = self._with_kept_replies(endpoint, body)
        return body

    def _with_kept_replies(self, endpoint: Endpoint, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages of a request, its calls with what belongs to them."""
        out: list[dict[str, Any]] = []
        prefix = Prefix(endpoint, body.get("tools"))
        for turn in turns(body["messages"], out, self._replies, prefix, lambda kept: parts_of(kept[0])):
            message = turn.messages[0]
            kept = turn.kept[0] if turn.kept else {}
            if turn.ids is not None:
                calls = [{**call, "id": own} for call, own in zip(kept["tool_calls"], turn.ids, strict=True)]
                out += [{**kept, "tool_calls": calls}, *map(dict, turn.results)]
            elif not message.get("tool_calls"):
                out.append(dict(message))
            elif endpoint.provider == "deepseek":
                out.append({**message, "reasoning_content": kept.get("reasoning_content", "")})
            elif fnmatchcase(endpoint.model.lower(), _SIGNING):
                first, *others = message["tool_calls"]
                out.append({**message, "tool_calls": [{**first, "extra_content": _UNSIGNED}, *others]})
            else:
                out.append(dict(message))
        return out

    def adapt(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Remember what the server objects to. Returns whether the request is worth sending again without it."""
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
        """The chunks of a streamed reply. One that just stops is broken, unless HTTP marks its end."""
        is_kept = sent.endpoint.provider in _WANT_REPLIES_BACK
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        chunk: dict[str, Any] = {}
        done = False
        for data in events:
            done = done or data == DONE
            if done:
                continue  # read to the end, so that the connection can be used again
            for chunk in json_objects(data):
                if is_kept:
                    self._keep(message, chunk, sent)
                yield chunk
        choices = chunk.get("choices")
        is_complete = choices is not None and all(choice.get("finish_reason") for choice in choices)
        if not done and not framed and not is_complete:
            raise BrokenStreamError("The server ended its reply in the middle. Try again.")

    def _keep(self, message: dict[str, Any], chunk: Mapping[str, Any], sent: Sent) -> None:
        """Add a chunk to the message, which is stored once it has ended with calls."""
        for choice in chunk.get("choices") or ():
            _add_delta(message, choice.get("delta") or {})
            if choice.get("finish_reason") and "tool_calls" in message:
                prefix = Prefix(sent.endpoint, sent.body.get("tools"))
                self._replies[prefix.at(sent.body["messages"])] = [dict(message)]

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The reply of a server that does not stream, as one chunk."""
        choice = answer["choices"][0]
        delta = choice.get("message") or choice["delta"]
        finish_reason = choice.get("finish_reason") or "stop"
        return {"choices": [{"delta": delta, "finish_reason": finish_reason}], "usage": answer.get("usage")}


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
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
