"""OpenAI's Responses: what is asked, and how the answer reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import RequestRefusedError
from interpreter.llm.computer_use import kind_of, screen_in
from interpreter.llm.json_events import objects
from interpreter.llm.kept import KeptReplies, Prefix, told_of, unseen
from interpreter.llm.providers import Endpoint
from interpreter.llm.responses_request import input_of, instructions_of, tools_of
from interpreter.llm.responses_stream import ResponseReader
from interpreter.llm.wire import Sent

_HANDLED = frozenset(
    {
        "api_base",
        "api_key",
        "api_version",
        "messages",
        "tools",
        "max_tokens",
        "stream",
        "stream_options",
        "stop",
    }
)
# Models that do not reason; all others are asked for their reasoning, and take no temperature at OpenAI.
_WITHOUT_REASONING = ("gpt-3.5*", "gpt-4*", "chatgpt-*", "gpt-*-chat*")
_CAN_DO_WITHOUT = frozenset({"temperature", "include", "reasoning", "max_output_tokens", "store"})


class Responses:
    """Keeps replies with reasoning in them; remembers what each server objected to."""

    path = "/responses"

    def __init__(self, replies: KeptReplies) -> None:
        self._replies = replies
        self._objections: dict[tuple[str, str], set[str]] = {}

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; the server stores nothing, so reasoning travels with it, encrypted."""
        body = {key: value for key, value in params.items() if key not in _HANDLED and value is not None}
        chat = params["messages"]
        kind, screen = kind_of(endpoint.wire, endpoint.model), screen_in(params.get("tools"))
        instructions, tools = instructions_of(chat), tools_of(params.get("tools"), kind)
        body |= {"model": endpoint.model, "stream": True, "store": False}
        body |= {"instructions": instructions} if instructions else {}
        body |= {"tools": tools} if tools else {}
        prefix = Prefix(endpoint, instructions, tools)
        body["input"] = input_of(chat, prefix, self._replies, screen, unseen(endpoint))
        if kind is not None and screen is not None and kind.tool == "computer_use_preview":
            body.setdefault("truncation", "auto")  # it takes no request without
        if params.get("max_tokens") is not None:
            body["max_output_tokens"] = params["max_tokens"]
        if not any(fnmatchcase(endpoint.model.lower(), pattern) for pattern in _WITHOUT_REASONING):
            body.setdefault("reasoning", {"summary": "auto"})
            body["include"] = ["reasoning.encrypted_content"]
            if endpoint.provider == "openai" and endpoint.base_url.startswith("https://api.openai.com"):
                body.pop("temperature", None)
        for name in self._objections.get(_place(endpoint), ()):
            body.pop(name, None)
        return body

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Whether the request is worth sending again without what the server objects to."""
        known = self._objections.setdefault(_place(endpoint), set())
        # A field may be named with what is in it: reasoning.summary, include[0].
        named = {param.partition(".")[0].partition("[")[0] for param in error.params}
        new = (named & _CAN_DO_WITHOUT) - known
        known |= new
        return bool(new)

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; it is whole once the response is completed or incomplete."""
        reader = ResponseReader(lambda items: self._keep(sent, items), sent.screen)
        for event in objects(events):
            yield from reader.read(event)
        reader.end()

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        return ResponseReader(lambda items: self._keep(sent, items), sent.screen).whole(answer)

    def _keep(self, sent: Sent, items: list[dict[str, Any]]) -> None:
        body = sent.body
        prefix = Prefix(sent.endpoint, body.get("instructions", ""), body.get("tools", []))
        self._replies.keep(prefix.at(body["input"]), items)
        if sent.screen is not None:
            self._replies.keep(unseen(sent.endpoint).at(told_of(sent.chat)), items)


def _place(endpoint: Endpoint) -> tuple[str, str]:
    return endpoint.base_url, endpoint.model
