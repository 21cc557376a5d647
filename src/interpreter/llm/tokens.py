"""How many tokens a text has, roughly, where no server says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 85  # what an image in low detail costs at OpenAI
MESSAGE_TOKENS = 4  # what a chat template puts around each message


def estimate_text(text: str) -> int:
    """Tokens of a text: English and code have about four bytes in each, other scripts fewer characters."""
    return estimate_size(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def estimate_size(size: int) -> int:
    """Tokens of so many bytes."""
    return (size + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


def estimate_messages(messages: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of chat messages as they go out."""
    return sum(MESSAGE_TOKENS + _of_message(message) for message in messages)


def _of_message(message: Mapping[str, Any]) -> int:
    content = message.get("content") or ""
    calls = message.get("tool_calls") or ()
    called = sum(estimate_text(call["function"]["arguments"]) for call in calls)
    if isinstance(content, str):
        return called + estimate_text(content)
    return called + sum(_of_part(part) for part in content)


def _of_part(part: Mapping[str, Any]) -> int:
    return estimate_text(part["text"]) if part["type"] == "text" else IMAGE_TOKENS
