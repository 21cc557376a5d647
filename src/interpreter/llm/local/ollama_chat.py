"""Ollama's native chat, the one in which the length of the conversation can be asked for (`num_ctx`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from interpreter.errors import BrokenStreamError, RepeatingReplyError, RequestRefusedError
from interpreter.llm.providers import Endpoint

if TYPE_CHECKING:
    from interpreter.llm.wire import Sent

# What Ollama calls the parameters of a request; it takes them in `options`.
_OPTIONS = {
    "temperature": "temperature",
    "max_tokens": "num_predict",
    "num_ctx": "num_ctx",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
# After so many equal tokens Ollama gives up; until late in 2026 it did so without a last line.
_EQUAL_TOKENS = 30


class OllamaChat:
    """The wire format of `/api/chat`."""

    path = "/api/chat"

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; what is not set is not sent."""
        options = {theirs: params[ours] for ours, theirs in _OPTIONS.items() if params.get(ours) is not None}
        body: dict[str, Any] = {
            "model": endpoint.model,
            "messages": [_message(message) for message in params["messages"]],
            "stream": True,
            "options": options,
        }
        if params.get("tools"):
            body["tools"] = params["tools"]
        return body

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """It does not say what it objects to, so there is nothing to leave out."""
        return False

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer, one object a line; the last one says that it is."""
        done = False
        calls = 0
        equal = _EqualTokens()
        for line in events:
            try:
                told = json.loads(line)
            except ValueError as error:
                raise BrokenStreamError("Ollama sent something that is no JSON. Try again.") from error
            chunk = _chunk(told, calls)
            calls += len((told.get("message") or {}).get("tool_calls") or ())
            done = done or bool(told.get("done"))
            if told.get("error"):
                equal.check()
            equal.count(told)
            yield chunk
        if not done:
            equal.check()
            raise BrokenStreamError("Ollama ended its reply in the middle. Try again.")

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """An answer in one piece."""
        if "message" not in answer:
            raise KeyError("message")
        return _chunk({**answer, "done": True}, 0)


class _EqualTokens:
    """How often the last token has come in a row: what tells a reply that Ollama gave up from a broken one."""

    def __init__(self) -> None:
        self._last, self._times = "", 0

    def count(self, told: Mapping[str, Any]) -> None:
        message = told.get("message") or {}
        token = str(message.get("content") or message.get("thinking") or "").strip()
        self._times = self._times + 1 if token == self._last else 1
        self._last = token

    def check(self) -> None:
        if self._times >= _EQUAL_TOKENS:
            raise RepeatingReplyError(
                "The model said the same word over and over, so Ollama cut its reply off. "
                "Say it in other words or in smaller steps, or use a larger model."
            )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of ours in Ollama's form: words and images apart, the arguments of a call as an object."""
    content = message.get("content") or ""
    out: dict[str, Any] = {"role": message["role"], "content": content}
    if isinstance(content, list):
        out["content"] = "\n".join(part["text"] for part in content if part.get("type") == "text")
        urls = [part["image_url"]["url"] for part in content if part.get("type") == "image_url"]
        if urls:
            out["images"] = [url.partition("base64,")[2] for url in urls]
    if message.get("tool_calls"):
        out["tool_calls"] = [{"function": _call(call["function"])} for call in message["tool_calls"]]
    if message["role"] == "tool" and message.get("name"):
        out["tool_name"] = message["name"]
    return out


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = {}
    return {"name": function.get("name"), "arguments": arguments}


def _chunk(told: Mapping[str, Any], calls: int) -> dict[str, Any]:
    """A line of Ollama's in OpenAI's shape; `calls` tool calls came before it."""
    if told.get("error"):
        return {"error": {"message": str(told["error"])}}
    message = told.get("message") or {}
    delta: dict[str, Any] = {"content": message.get("content") or ""}
    if message.get("thinking"):
        delta["reasoning_content"] = message["thinking"]
    if message.get("tool_calls"):
        delta["tool_calls"] = [_called(call, calls + n) for n, call in enumerate(message["tool_calls"])]
    chunk: dict[str, Any] = {"choices": [{"delta": delta, "finish_reason": None}]}
    if told.get("done"):
        chunk["choices"][0]["finish_reason"] = told.get("done_reason") or "stop"
        # A prompt that Ollama still remembers whole is not counted.
        if told.get("prompt_eval_count") is not None:
            read, written = told["prompt_eval_count"], told.get("eval_count") or 0
            chunk["usage"] = {"prompt_tokens": read, "completion_tokens": written}
    return chunk


def _called(call: Mapping[str, Any], index: int) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "index": index,
        "id": call.get("id") or f"call_{index}",
        "type": "function",
        "function": {"name": function.get("name"), "arguments": text},
    }
