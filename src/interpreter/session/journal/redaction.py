"""Secrets that code printed are not written down: neither whole nor, while they are still arriving, in part."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interpreter.llm.secrets import redacted
from interpreter.messages import Message

_PRINTED = ("console", "code", "message")  # an image is no text


def is_printed(message: Message) -> bool:
    """Whether this is a text that code put out."""
    text = message.get("content")
    return message.get("role") == "computer" and message.get("type") in _PRINTED and isinstance(text, str)


class Redaction:
    """Messages and outputs in the form in which they are written down.

    `values` gives the secrets that are known by what they are called; it is asked only when something was printed.
    """

    def __init__(self, values: Callable[[], Mapping[str, str]]) -> None:
        self._values = values

    def form(self, message: Message, whole: bool = True) -> tuple[Message, bool]:
        """The message without secrets, and whether something was held back.

        As long as it is not whole, its last word is: it may be the beginning of a secret. No secret has spaces in
        it but private keys, and those are found by their first line.
        """
        if not is_printed(message):
            return message, False
        text: str = message["content"]
        end = len(text) if whole else _last_word(text)
        clean, found = redacted(text[:end], self._values())
        if not found and end == len(text):
            return message, False
        form = message.copy()
        form["content"] = clean
        return form, end < len(text)

    def text(self, text: str) -> str | None:
        """A whole output without secrets; None if there are none in it."""
        clean, found = redacted(text, self._values())
        return clean if found else None


def _last_word(text: str) -> int:
    """Where the word begins that the text ends in."""
    if not text or text[-1].isspace():
        return len(text)
    return len(text) - len(text.rsplit(None, 1)[-1])
