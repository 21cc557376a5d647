"""Texts that are longer than a model can read at once: in pieces, and what was said of them put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from interpreter.llm.context import BYTES_PER_TOKEN, estimate_text

UNKNOWN_WINDOW = 8_000  # tokens, where nobody tells
LARGEST_PIECE = 32_000  # tokens: in longer ones models overlook things
SMALLEST_PIECE = 200
OVERLAP = 0.05  # of a piece, at the beginning of the next
REPLY = 1_000  # tokens of an answer about one piece


@dataclass(frozen=True)
class Plan:
    """What asking about a text takes."""

    size: int
    """Bytes of a piece."""
    calls: int
    tokens: int
    """That go out, in all."""
    reply: int
    """The most tokens of an answer about a piece."""

    @property
    def is_long(self) -> bool:
        return self.calls > 1


def plan_for(text: str, query: str, window: int | None) -> Plan:
    """How a text is cut for a model with this window; half of it is left to the question, the answer and mistakes."""
    asked = estimate_text(query) + 100
    piece = min(LARGEST_PIECE, max(SMALLEST_PIECE, (window or UNKNOWN_WINDOW) // 2 - asked))
    reply = min(REPLY, max(50, piece // 4))
    whole = estimate_text(text)
    if whole <= piece:
        return Plan(piece * BYTES_PER_TOKEN, 1, whole + asked, reply)
    parts = ceil(whole / (piece * (1 - OVERLAP)))
    calls, tokens, left = parts, whole + parts * asked, parts
    while left > 1:
        answers = left * reply
        left = ceil(left / max(2, piece // reply))
        calls, tokens = calls + left, tokens + answers + left * asked
    return Plan(piece * BYTES_PER_TOKEN, calls, tokens, reply)


def size_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at most so many bytes, which end at a line or a word if they can and overlap a little."""
    start = 0
    while True:
        end = _end(text, start, size)
        yield text[start:end]
        if end >= len(text):
            return
        start = max(start + 1, end - max(1, int((end - start) * OVERLAP)))


def _end(text: str, start: int, size: int) -> int:
    """Where a piece ends that begins there."""
    end = min(len(text), start + size)
    while size_of(text[start:end]) > size:
        end = start + max(1, (end - start) * size // size_of(text[start:end]))
    if end == len(text):
        return end
    least = start + (end - start) * 3 // 4
    for sign in ("\n\n", "\n", " "):
        found = text.rfind(sign, least, end)
        if found > 0:
            return found + len(sign)
    return end


def together(answers: list[str], size: int) -> list[str]:
    """The answers, in their order, in groups that fit; at least two in each, shortened if they must be."""
    groups: list[list[str]] = []
    room = 0
    for number, answer in enumerate(answers, 1):
        told = f"Part {number}:\n{_within(answer, size // 2 - 20)}"
        if not groups or (size_of(told) > room and len(groups[-1]) > 1):
            groups.append([])
            room = size
        groups[-1].append(told)
        room -= size_of(told)
    return ["\n\n".join(group) for group in groups]


def _within(text: str, size: int) -> str:
    return text if size_of(text) <= size else text[: _end(text, 0, size - 4)] + "..."
