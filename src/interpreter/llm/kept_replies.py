"""Replies that a provider wants back exactly as they were, with signed or encrypted reasoning among them.

A reply is stored under the request that it answers: a digest of the model, the system part, the tools and all earlier
messages. It goes back only if everything before it goes out unchanged. Providers check exactly that (Anthropic binds a
thinking block to its prefix), so after an edit, an undo, a compaction or a change of model nothing is sent that
would be refused.

In OS mode, old pictures are left out as the conversation grows, which changes the prefix. Actions of the provider's own
tool don't depend on it. So such a reply is stored a second time, under the conversation without its pictures, and goes
back without the thinking that was bound to them.

The messages themselves are not changed, so users can cut and replace them. What is stored is plain JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from interpreter.llm.context import without_pictures
from interpreter.llm.providers import Endpoint
from interpreter.llm.tool_mode import called_tool
from interpreter.tools import EXECUTE
from interpreter.tools.toolbox import wire_name

Messages = Sequence[Mapping[str, Any]]
Parts = list[tuple[str, str]]  # what a reply says, in a form that can be compared


class Prefix:
    """The digest of a request, extended message by message; with or without its pictures."""

    def __init__(self, endpoint: Endpoint, *fixed: Any, pictures: bool = True) -> None:
        self._hash = hashlib.sha256()
        self._count = 0
        self._pictures = pictures
        self._add([endpoint.wire, endpoint.provider, endpoint.model, *fixed])

    @classmethod
    def without_pictures(cls, endpoint: Endpoint) -> Prefix:
        return cls(endpoint, "without pictures", pictures=False)

    def at(self, messages: Sequence[Any]) -> str:
        """Return the digest with these messages; only those added since the last call are read."""
        for message in messages[self._count :]:
            self._add(message)
        self._count = len(messages)
        return self._hash.hexdigest()

    def _add(self, part: Any) -> None:
        part = part if self._pictures else without_pictures(part)
        self._hash.update(json.dumps(part, sort_keys=True).encode() + b"\n")


class KeptTurn(NamedTuple):
    """A message to send, or a whole stored reply that starts with it."""

    messages: Messages  # the message, or all messages that make up the stored reply and its results
    kept: list[dict[str, Any]]  # the stored reply to everything before
    ids: list[str] | None = None  # of the reply's calls; None if the reply has changed since it was stored
    results: Messages = ()  # of the calls


def turns(
    chat: Messages,
    sent: Sequence[Any],
    replies: Mapping[str, list[dict[str, Any]]],
    prefix: Prefix,
    parts_of_kept: Callable[[list[dict[str, Any]]], Parts],
    without_pictures: Prefix | None = None,
) -> Iterator[KeptTurn]:
    """Yield the conversation turn by turn, with the replies that were stored. The caller adds each turn to `sent`."""
    at = 0
    while at < len(chat):
        kept: list[dict[str, Any]] = []
        if chat[at]["role"] == "assistant" and replies:
            kept = replies.get(prefix.at(sent), [])
            if not kept and without_pictures is not None:
                kept = replies.get(without_pictures.at(chat[:at]), [])
        turn = (_stored_turn(chat, at, kept, parts_of_kept(kept)) if kept else None) or KeptTurn(
            chat[at : at + 1], kept
        )
        yield turn
        at += len(turn.messages)


def _stored_turn(chat: Messages, start: int, kept: list[dict[str, Any]], parts: Parts) -> KeptTurn | None:
    """Find the stored reply in the conversation; None if it has changed.

    A reply with two blocks is two turns in the conversation, since the first block ran before the second was known.
    """
    if not parts:
        return None
    matched: Parts = []
    ids: list[str] = []
    results: list[Mapping[str, Any]] = []
    for at in range(start, len(chat)):
        message = chat[at]
        if message["role"] != "assistant":
            if matched != parts and message["role"] == "user" and isinstance(message["content"], str):
                return None  # the user spoke before the reply was complete
            results.append(message)
            continue
        if matched == parts:
            return KeptTurn(chat[start:at], kept, ids, results)
        matched += parts_of(message)
        ids += [each["id"] for each in message.get("tool_calls") or ()]
        if matched != parts[: len(matched)]:
            return None
    return KeptTurn(chat[start:], kept, ids, results) if matched == parts else None


def parts_of(message: Mapping[str, Any]) -> Parts:
    content = message.get("content")
    calls = [
        call_part(each["function"]["arguments"], each["function"].get("name") or "")
        for each in message.get("tool_calls") or ()
    ]
    return joined_parts([content if isinstance(content, str) else "", *calls])


def joined_parts(pieces: Iterable[str | tuple[str, str]], separator: str = "") -> Parts:
    """Convert texts and calls to parts; texts without a call between them are one part."""
    parts: Parts = []
    texts: list[str] = []
    for piece in [*pieces, None]:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        if text_words := separator.join(texts).split():
            parts.append(("words", " ".join(text_words)))
        texts = []
        if piece is not None:
            parts.append(piece)
    return parts


def call_part(arguments: str | Mapping[str, Any], name: str = EXECUTE) -> tuple[str, str]:
    """Represent a call by its code, or by its name and arguments; unreadable arguments are compared as text."""
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
