"""OpenAI's Chat Completions: the wire format that most servers speak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interpreter.errors import BrokenStreamError, RequestRefusedError
from interpreter.llm import chat_kept
from interpreter.llm.json_events import DONE, odd_objects
from interpreter.llm.kept import KeptReplies
from interpreter.llm.providers import Endpoint
from interpreter.llm.wire import Sent

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
        if chat_kept.wants_replies_back(endpoint):
            body["messages"] = chat_kept.restored(endpoint, body, self._replies)
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
        if not chat_kept.wants_replies_back(sent.endpoint):
            return chunks
        return chat_kept.watched(chunks, sent.endpoint, sent.body, self._replies)

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
