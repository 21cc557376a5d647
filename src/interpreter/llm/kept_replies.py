"""Replies that a provider wants back as they were: its signed or encrypted reasoning among them.

A reply is kept under the request that it answers: a digest of the model, the system part, the tools and all
messages before it. So it goes back only where everything before it goes out as it did then. Providers check
exactly that (Anthropic binds a thinking block to its prefix), and after an edit, an undo, a compaction or a
change of model nothing that would be refused is sent.

In OS mode old pictures are left out as the conversation grows. That replies were actions of the provider's own tool is
no matter of what went before; so there a reply is kept a second time under the conversation without its pictures, and
found there goes back without the thinking that was bound to them.

The messages themselves stay as they are, so that users can cut and replace them. What is kept is plain JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interpreter.llm.context import without_pictures
from interpreter.llm.providers import Endpoint
from interpreter.llm.tool_mode import called_tool
from interpreter.tools import EXECUTE
from interpreter.tools.toolbox import wire_name

Parts = list[tuple[str, str]]


class KeptReplies:
    """The blocks of replies by the digest of the request; it lives as long as its Llm."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def keep(self, request: str, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Keep what has come of the answer to a request so far, in the place of what was kept before."""
        self._blocks[request] = [dict(block) for block in blocks]

    def answer_to(self, request: str) -> list[dict[str, Any]]:
        """The blocks of the answer to a request; none if it was never kept."""
        return self._blocks.get(request, [])

    def as_data(self) -> dict[str, list[dict[str, Any]]]:
        """Everything, to be written down."""
        return dict(self._blocks)

    def load(self, data: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """What was written down."""
        for request, blocks in data.items():
            self.keep(request, blocks)


class Prefix:
    """The digest of a request, message by message; with or without what its pictures show."""

    def __init__(self, endpoint: Endpoint, *fixed: Any, sees: bool = True) -> None:
        self._hash = hashlib.sha256()
        self._count = 0
        self._sees = sees
        self._add([endpoint.wire, endpoint.provider, endpoint.model, *fixed])

    def at(self, messages: Sequence[Any]) -> str:
        """The digest with these messages; it takes no more than those it has not seen yet."""
        for message in messages[self._count :]:
            self._add(message)
        self._count = len(messages)
        return self._hash.hexdigest()

    def _add(self, part: Any) -> None:
        part = part if self._sees else without_pictures(part)
        self._hash.update(json.dumps(part, sort_keys=True).encode() + b"\n")


def told_of(chat: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The conversation without the system part."""
    return [message for message in chat if message["role"] != "system"]


def unseen(endpoint: Endpoint) -> Prefix:
    """For the conversation without its pictures."""
    return Prefix(endpoint, "without pictures", sees=False)


def parts_of(message: Mapping[str, Any]) -> Parts:
    """What the model says in a chat message, in a form that can be compared."""
    content = message.get("content")
    said = words(content) if isinstance(content, str) else []
    functions = [each["function"] for each in message.get("tool_calls") or ()]
    return said + [call(function["arguments"], function.get("name") or "") for function in functions]


def words(text: str) -> Parts:
    return [("words", " ".join(text.split()))] if text.strip() else []


def call(arguments: str | Mapping[str, Any], name: str = EXECUTE) -> tuple[str, str]:
    """A call by its code, or by its name and arguments; arguments that cannot be read stand for themselves."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return "call", str(arguments)
    if not isinstance(arguments, Mapping):
        return "call", str(arguments)
    if called_tool(name, ()) is not None:
        return "call", f"{wire_name(name)}\n{json.dumps(arguments, sort_keys=True)}"
    return "call", f"{arguments.get('language')}\n{str(arguments.get('code') or '').strip()}"


class Stretch(NamedTuple):
    """A reply in the conversation: the ids of its calls, what came between and behind, and where it ends."""

    ids: list[str]
    results: list[Mapping[str, Any]]
    end: int


def stretch(messages: Sequence[Mapping[str, Any]], at: int, parts: Parts) -> Stretch | None:
    """The reply with these parts that begins at a message; None if the conversation has it otherwise now.

    A reply with two blocks is stored as two turns, since the first block ran before the second was known.
    """
    if not parts:
        return None
    found: Parts = []
    ids: list[str] = []
    results: list[Mapping[str, Any]] = []
    for position in range(at, len(messages)):
        message = messages[position]
        if message["role"] != "assistant":
            if found != parts and message["role"] == "user" and isinstance(message["content"], str):
                return None  # the user had a word before the reply was through
            results.append(message)
            continue
        if found == parts:
            return Stretch(ids, results, position)
        found += parts_of(message)
        ids += [each["id"] for each in message.get("tool_calls") or ()]
        if found != parts[: len(found)]:
            return None
    return Stretch(ids, results, len(messages)) if found == parts else None
