"""Secrets in what is written down for others: a note stands in the place of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from interpreter.llm.secrets import redacted
from interpreter.messages import Message
from interpreter.session.journal.entries import (
    Block,
    Entry,
    Said,
    ToolCall,
)

_NOTE = re.compile(r"\[redacted: [^\]\n]{1,200}\]")


def without_secrets(entries: Iterable[Entry], values: Mapping[str, str]) -> list[Entry]:
    """The entries with a note for each secret, in words, code and outputs alike."""
    return [_clean(entry, values) for entry in entries]


def notes_in(text: str) -> int:
    """How many secrets were left out of a text."""
    return len(_NOTE.findall(text))


def notes_in_entries(entries: Iterable[Entry]) -> int:
    """How many secrets were left out of all of them."""
    return sum(notes_in(text) for entry in entries for text in _texts(entry))


def notice(count: int) -> list[str]:
    """What the user is told about it."""
    if not count:
        return []
    return [f"{count} secret{' was' if count == 1 else 's were'} left out. (--keep-secrets writes them.)"]


def _clean(entry: Entry, values: Mapping[str, str]) -> Entry:
    match entry:
        case Said():
            return replace(entry, text=redacted(entry.text, values)[0])
        case Block():
            outputs = tuple(_clean_message(message, values) for message in entry.outputs)
            return replace(entry, code=redacted(entry.code, values)[0], outputs=outputs)
        case ToolCall():
            outputs = tuple(_clean_message(message, values) for message in entry.outputs)
            return replace(entry, arguments=redacted(entry.arguments, values)[0], outputs=outputs)
        case _:
            return replace(entry, message=_clean_message(entry.message, values))


def _clean_message(message: Message, values: Mapping[str, str]) -> Message:
    text = message.get("content")
    if message.get("type") == "image" or not isinstance(text, str):
        return message
    clean = message.copy()
    clean["content"] = redacted(text, values)[0]
    return clean


def _texts(entry: Entry) -> list[str]:
    match entry:
        case Said():
            return [entry.text]
        case Block() | ToolCall():
            shown = [message for message in entry.outputs if message.get("type") != "image"]
            written = entry.code if isinstance(entry, Block) else entry.arguments
            return [written, *(str(message.get("content") or "") for message in shown)]
        case _:
            return [str(entry.message.get("content") or "")]
