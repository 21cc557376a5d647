"""OpenAI's Chat Completions: the wire format that most servers speak."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm.providers import Endpoint

_DONE = b"[DONE]"
_OURS = frozenset({"api_base", "api_key", "api_version"})
# What is left out, or sent under another name, for a server that objects to it.
_CAN_DO_WITHOUT = {"stream_options": None, "temperature": None, "max_tokens": "max_completion_tokens"}


class ChatCompletions:
    """Remembers what each server objected to, so that it is asked the right way from then on."""

    path = "/chat/completions"

    def __init__(self) -> None:
        self._objections: dict[tuple[str, str], set[str]] = {}

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; what is not set is not sent."""
        body = {name: value for name, value in params.items() if name not in _OURS and value is not None}
        body |= {"model": endpoint.model, "stream": True, "stream_options": {"include_usage": True}}
        for name in self._objections.get((endpoint.base_url, endpoint.model), ()):
            value, other_name = body.pop(name, None), _CAN_DO_WITHOUT[name]
            if other_name and value is not None:
                body[other_name] = value
        return body

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Whether the request is worth sending again without what the server objects to."""
        known = self._objections.setdefault((endpoint.base_url, endpoint.model), set())
        sent = {"stream_options"} | {name for name in _CAN_DO_WITHOUT if params.get(name) is not None}
        # A server that does not say what it objects to most likely does not know the newest field.
        unsaid = {"stream_options"} if error.status in (400, 422) else set()
        objections = error.params & sent if error.params else unsaid
        new = objections - known
        known |= new
        return bool(new)

    def chunks(self, events: Iterator[bytes], framed: bool) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; one that just stops is broken, unless HTTP says it is whole."""
        from jiter import from_json

        chunk: Any = None
        done = False
        for data in events:
            done = done or data == _DONE
            if done:
                continue  # to the end of the response, so that the connection can be used again
            try:
                chunk = from_json(data, cache_mode="keys")
            except ValueError:
                yield from _odd_chunks(data)
                continue
            if isinstance(chunk, dict):
                yield chunk
        if not done and not framed and not _is_last(chunk):
            raise BrokenStreamError("The server ended its reply in the middle. Try again.")

    def whole(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        choice = answer["choices"][0]
        delta = choice.get("message") or choice["delta"]
        finish_reason = choice.get("finish_reason") or "stop"
        return {"choices": [{"delta": delta, "finish_reason": finish_reason}], "usage": answer.get("usage")}


def _is_last(chunk: Any) -> bool:
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    return choices is not None and all(choice.get("finish_reason") for choice in choices)


def _odd_chunks(data: bytes) -> Iterator[dict[str, Any]]:
    """Events that a strict parser refuses: half characters, or objects without an empty line between."""
    for line in data.splitlines():
        if line == _DONE or not line.strip():
            continue
        try:
            chunk = json.loads(line)
        except ValueError as error:
            raise BrokenStreamError("The server sent something in the middle of its reply that is no JSON.") from error
        if isinstance(chunk, dict):
            yield chunk
