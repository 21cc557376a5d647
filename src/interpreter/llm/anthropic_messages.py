"""Anthropic's Messages: what is asked, and how the answer reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from interpreter.errors import RequestRefusedError
from interpreter.llm.anthropic_request import marked, messages_of, system_of, tools_of, unbound, unmarked
from interpreter.llm.anthropic_stream import MessageReader
from interpreter.llm.computer_use import kind_of, screen_in
from interpreter.llm.json_events import objects
from interpreter.llm.kept import KeptReplies, Prefix, told_of, unseen
from interpreter.llm.providers import Endpoint
from interpreter.llm.wire import Sent

_HANDLED = frozenset(
    {"api_base", "api_key", "api_version", "messages", "tools", "max_tokens", "temperature", "stop"}
    | {"stream", "stream_options"}
)
# A limit has to be sent. Thinking counts towards it; none is higher than the model allows.
_MAX_TOKENS = (
    ("claude-2*", 4096), ("claude-instant*", 4096), ("claude-3-5-*", 8192), ("claude-3-7-*", 32_000),
    ("claude-3-*", 4096), ("claude-*-4*", 32_000), ("claude-*", 64_000), ("*", 8192),
)  # fmt: skip
_EARLIER = ("claude-2*", "claude-instant*", "claude-3*", "claude-*-4*")
_WITHOUT_SAMPLING = ("claude-*-4[-.][789]*",)


class AnthropicMessages:
    """Keeps replies with thinking in them, since they go back with their signatures."""

    path = "/messages"

    def __init__(self, replies: KeptReplies) -> None:
        self._replies = replies

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; what is not set is not sent, but for what has to be."""
        name = endpoint.model.lower()
        body = {key: value for key, value in params.items() if key not in _HANDLED and value is not None}
        kind, screen = kind_of(endpoint.wire, name), screen_in(params.get("tools"))
        system, tools = system_of(params["messages"]), tools_of(params.get("tools"), _is_claude(name), kind)
        prefix = Prefix(endpoint, system, tools)
        messages = messages_of(params["messages"], prefix, self._replies, screen, unseen(endpoint))
        body |= {
            "model": endpoint.model,
            "max_tokens": params.get("max_tokens") or _first_match(name),
            "stream": True,
        }
        body |= {"tools": tools} if tools else {}
        body |= {"system": system} if system else {}
        body |= {"messages": messages}
        if _takes_temperature(name) and params.get("temperature") is not None:
            body["temperature"] = min(1, params["temperature"])
        if _thinks_anyway(name):
            body.setdefault("thinking", {"type": "adaptive", "display": "summarized"})
        if params.get("stop"):
            stop = params["stop"]
            body["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        return marked(body)

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Never: Anthropic does not say in a field what it objects to."""
        return False

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; it is whole once it says why it stopped."""
        reader = MessageReader(lambda blocks: self._keep(sent, blocks), sent.screen)
        for event in objects(events):
            yield from reader.read(event)
        reader.end()

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        reader = MessageReader(lambda blocks: self._keep(sent, blocks), sent.screen)
        return reader.whole(answer)

    def _keep(self, sent: Sent, blocks: list[dict[str, Any]]) -> None:
        body = sent.body
        system, tools = unmarked(body.get("system")), unmarked(body.get("tools"))
        prefix = Prefix(sent.endpoint, system, tools)
        messages = [{**message, "content": unmarked(message["content"])} for message in body["messages"]]
        self._replies.keep(prefix.at(messages), blocks)
        if sent.screen is not None:
            self._replies.keep(unseen(sent.endpoint).at(told_of(sent.chat)), unbound(blocks))


def _first_match(name: str) -> int:
    return next(most for pattern, most in _MAX_TOKENS if fnmatchcase(name, pattern))


def _is_claude(name: str) -> bool:
    return name.startswith("claude-")


def _thinks_anyway(name: str) -> bool:
    """Whether the model thinks unless it is told otherwise; it shows nothing of it unless it is asked to."""
    return _is_claude(name) and not any(fnmatchcase(name, pattern) for pattern in _EARLIER)


def _takes_temperature(name: str) -> bool:
    return not _thinks_anyway(name) and not any(fnmatchcase(name, each) for each in _WITHOUT_SAMPLING)
