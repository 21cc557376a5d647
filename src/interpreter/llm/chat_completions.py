"""OpenAI's Chat Completions: the wire format that most servers speak.

Two providers want something back with a call. DeepSeek refuses a call without the reasoning that led to it, and wants
none with anything else; Gemini signs its calls. All others get only words and calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from interpreter.llm.http import Exchange, Replies
from interpreter.llm.kept_replies import Prefix, parts_of, turns
from interpreter.llm.providers import Endpoint

_OURS = frozenset({"api_base", "api_key", "api_version"})
_TELLS_PROGRESS = frozenset({"builtin", "llamafile"})  # llama.cpp, while it reads a long prompt
_WANT_REPLIES_BACK = frozenset({"deepseek", "gemini"})
# What Google expects on a call that another model made, or that has changed.
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}


class ChatCompletions(Exchange):
    """The wire format. A reply that just stops is broken, unless HTTP marks its end."""

    path = "/chat/completions"
    can_do_without: ClassVar = {
        "stream_options": None,
        "temperature": None,
        "max_tokens": "max_completion_tokens",
        "return_progress": None,
    }

    def __init__(self, endpoint: Endpoint, params: Mapping[str, Any], replies: Replies) -> None:
        super().__init__(endpoint, params, replies)
        self._message: dict[str, Any] = {"role": "assistant", "content": ""}
        self._last: dict[str, Any] = {}

    def make_body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        endpoint = self.endpoint
        body = {
            **{name: value for name, value in params.items() if name not in _OURS and value is not None},
            "model": endpoint.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"return_progress": True} if endpoint.provider in _TELLS_PROGRESS else {}),
        }
        is_thinking = endpoint.provider != "deepseek" or self.replies
        if endpoint.provider in _WANT_REPLIES_BACK and is_thinking:
            body["messages"] = self._with_kept_replies(body)
        return body

    def _with_kept_replies(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a request's messages; calls get the reasoning or signature that their provider wants back."""
        endpoint = self.endpoint
        out: list[dict[str, Any]] = []
        prefix = Prefix(endpoint, body.get("tools"))
        for turn in turns(body["messages"], out, self.replies, prefix, lambda kept: parts_of(kept[0])):
            message = turn.messages[0]
            kept, has_calls = turn.kept[0] if turn.kept else {}, bool(message.get("tool_calls"))
            if turn.ids is not None:
                calls = [{**call, "id": own} for call, own in zip(kept["tool_calls"], turn.ids, strict=True)]
                out += [{**kept, "tool_calls": calls}, *map(dict, turn.results)]
            elif has_calls and endpoint.provider == "deepseek":
                out.append({**message, "reasoning_content": kept.get("reasoning_content", "")})
            elif has_calls and fnmatchcase(endpoint.model.lower(), "gemini-[3-9]*"):
                first, *others = message["tool_calls"]
                out.append({**message, "tool_calls": [{**first, "extra_content": _UNSIGNED}, *others]})
            else:
                out.append(dict(message))
        return out

    def read(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        self._last = event
        if self.endpoint.provider in _WANT_REPLIES_BACK:
            self._keep(event)
        return [event]

    def read_whole(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        choice = answer["choices"][0]
        delta = choice.get("message") or choice["delta"]
        finish_reason = choice.get("finish_reason") or "stop"
        return [{"choices": [{"delta": delta, "finish_reason": finish_reason}], "usage": answer.get("usage")}]

    def finish(self) -> None:
        choices = self._last.get("choices")
        is_complete = choices is not None and all(choice.get("finish_reason") for choice in choices)
        self.has_ended = self.has_ended or self.is_framed or is_complete
        super().finish()

    def _keep(self, chunk: Mapping[str, Any]) -> None:
        """Add a chunk to the message, which is stored once it has ended with calls."""
        message = self._message
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
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
            if choice.get("finish_reason") and "tool_calls" in message:
                prefix = Prefix(self.endpoint, self.body.get("tools"))
                self.replies[prefix.at(self.body["messages"])] = [dict(message)]
