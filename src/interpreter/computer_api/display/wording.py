"""Which words are meant: exact first, then in any case, then nearly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from interpreter.computer_api.display.boxes import Box, around
from interpreter.computer_api.display.ocr import Line

EXACT, SAME_LETTERS, NEAR = 1.0, 0.97, 0.78
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
# What stands around names on the screen and is not said: dots of menus, colons of labels, marks of shortcuts.
_AROUND = re.compile(r"^[\s*•·>_]+|[\s:….,*_]+$")


class Found(NamedTuple):
    """Words on the screen that are, or may be, those looked for."""

    text: str
    box: Box
    similarity: float


def unquoted(text: str) -> tuple[str, bool]:
    """A text without its quotation marks, and whether it had some."""
    text = text.strip()
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1].strip(), True
    return text, False


def plain(text: str) -> str:
    """A text as it is compared: one case, single spaces, nothing around it."""
    folded = " ".join(text.casefold().replace("’", "'").split())
    return _AROUND.sub("", folded) or folded


def likeness(wanted: str, name: str) -> float:
    """How much a name is the one wanted: 1 if it is, 0.97 but for case and dots, less if it is only like it."""
    if wanted == name:
        return EXACT
    here, there = plain(wanted), plain(name)
    if here and here == there:
        return SAME_LETTERS
    return _near(here, there)


def _near(here: str, there: str) -> float:
    """Near misses alone: of short words one letter more or less makes another word."""
    if min(len(here), len(there)) < 4 or abs(len(here) - len(there)) > 1 + len(here) // 6:
        return 0.0
    return min(0.96, SequenceMatcher(None, here, there, autojunk=False).ratio())


def in_lines(wanted: str, lines: Sequence[Line]) -> list[Found]:
    """Where these words stand in the lines, the best of each place, the best first."""
    found = [each for line in lines for each in _in_line(wanted, line)]
    return sorted(found, key=lambda each: -each.similarity)


def _in_line(wanted: str, line: Line) -> list[Found]:
    words = line.words
    count = len(wanted.split())
    candidates: list[tuple[Found, range]] = []
    for size in {count, max(1, count - 1), count + 1}:
        for start in range(len(words) - size + 1):
            run = words[start : start + size]
            text = " ".join(word.text for word in run)
            similarity = _run_likeness(wanted, text, size == count)
            if similarity >= NEAR:
                candidates.append((Found(text, around(w.box for w in run), similarity), range(start, start + size)))
    if not candidates and (part := _part_of_word(wanted, line)):
        return [part]
    kept: list[tuple[Found, range]] = []
    for each, places in sorted(candidates, key=lambda candidate: -candidate[0].similarity):
        if not any(set(places) & set(taken) for _, taken in kept):
            kept.append((each, places))
    return [each for each, _ in kept]


def _run_likeness(wanted: str, text: str, as_many: bool) -> float:
    """A space too many or too few is the reader's, not the screen's."""
    together = min(0.96, likeness(plain(wanted).replace(" ", ""), plain(text).replace(" ", "")))
    return max(likeness(wanted, text), together) if as_many else together


def _part_of_word(wanted: str, line: Line) -> Found | None:
    """Words that the reader took for one with what stands beside them, such as `[Save]` or `FileEdit`."""
    for word in line.words:
        here, there = plain(wanted).replace(" ", ""), word.text.casefold()
        begin = there.find(here)
        if len(here) >= 4 and begin >= 0 and len(here) * 2 >= len(there):
            wide = word.box.width / len(there)
            left = word.box.left + begin * wide
            box = Box.between(left, word.box.top, left + len(here) * wide, word.box.bottom)
            return Found(word.text, box, 0.9 * SAME_LETTERS)
    return None
