"""What a conversation is called before anybody names it: the first words of the user."""

from __future__ import annotations

from collections.abc import Sequence

from interpreter.messages import Message

_LONGEST = 60


def title_of(messages: Sequence[Message]) -> str:
    """The first words that the user said."""
    said = (message for message in messages if message.get("role") == "user")
    for message in said:
        content = message.get("content")
        if message.get("type", "message") == "message" and isinstance(content, str) and content.strip():
            return shortened(content)
    return "Untitled"


def shortened(text: str) -> str:
    """One line of whole words, as many as fit."""
    line = " ".join(text.split())
    if len(line) <= _LONGEST:
        return line
    words, space, _ = line[: _LONGEST - 3].rpartition(" ")
    return (words if space else line[: _LONGEST - 3]) + "..."
