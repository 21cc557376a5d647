"""Thinking that a model writes into its text, between marks: told apart from what it says.

A span begins where a line does, outside fenced blocks: elsewhere the mark is something the model talks about.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
)
_CLOSING = dict(MARKS)
_OPENING = re.compile(r"[ \t]*(" + "|".join(re.escape(opening) for opening, _ in MARKS) + ")")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")

# Their templates end a request with the opening mark, so that the reply has only the closing one.
_THINK_FIRST = ("*deepseek-r1*", "*r1-distill*", "*qwq*", "*-thinking-2507*", "*glm-z1*")

Spans = list[tuple[str, str]]


def thinks_first(model: str) -> bool:
    """Whether a model's reply begins in the middle of its thinking, unless its server tells the two apart."""
    return any(fnmatchcase(model.lower(), pattern) for pattern in _THINK_FIRST)


class ThinkSpans:
    """Takes the text of a reply piece by piece; gives it back as ("message" or "reasoning", text).

    However the text is cut, what is put together from the pieces is the same. `first`: the text begins within a
    span; if that never ends, it was none, and all is said again as a message.
    """

    def __init__(self, first: bool = False) -> None:
        self._first = first
        self._unopened: list[str] | None = None  # a span that began with the reply
        self._text = ""
        self._fence = ""  # the mark of the fenced block that is open
        self._closing = ""  # the mark that ends the span
        self._blank = ""  # space that belongs to the span only if more of it comes
        self._step: Callable[[], bool] = self._reply_begins
        self._out: Spans = []

    def feed(self, text: str) -> Spans:
        """What this piece makes certain."""
        if not self._text and self._step == self._line and "\n" not in text:  # nearly every piece
            return [("message", text)] if text else []
        self._text += text
        if self._unopened is not None:
            self._unopened.append(text)
        while self._step():
            pass
        return self._take()

    def told_apart(self) -> None:
        """The server sends thinking by itself, so the text is what it looks like."""
        self._first = False

    def finish(self, is_whole: bool = True) -> Spans:
        """What is left when the reply has ended; a span that has no end ends with it."""
        if self._unopened is not None and is_whole:
            self._give("message", "".join(self._unopened))
        elif self._closing:
            self._think(self._text)
        else:
            self._give("message", self._text)
        self._text = self._blank = ""
        return self._take()

    # Steps: each takes what it can from the text and says whether the next one may go on.

    def _reply_begins(self) -> bool:
        """Space before a span at the very beginning is not said."""
        begun = self._text.lstrip()
        if not begun or (begun not in _CLOSING and any(mark.startswith(begun) for mark in _CLOSING)):
            return False
        opened = _OPENING.match(begun)
        if self._first and not opened:
            self._unopened, self._closing = [self._text], MARKS[0][1]
            self._step = self._span_begins
            return True
        self._text = begun if opened else self._text
        self._step = self._line_begins
        return True

    def _line_begins(self) -> bool:
        begun = None if self._fence else _OPENING.match(self._text)
        if begun:
            self._closing = _CLOSING[begun[1]]
            self._text = self._text[begun.end() :]
            self._step = self._span_begins
            return True
        if self._may_become_a_mark():
            return False
        fence = _FENCE.match(self._text)
        if fence:
            self._turn(fence[1])
        self._step = self._line
        return True

    def _may_become_a_mark(self) -> bool:
        """Whether more text could make this line begin with a mark or a fence."""
        begun = self._text.lstrip(" \t")
        if not begun or begun in ("`", "``", "~", "~~"):
            return True
        if begun[0] in "`~" and not begun.strip(begun[0]):
            return True  # a fence may still grow
        return not self._fence and any(opening.startswith(begun) for opening, _ in MARKS)

    def _turn(self, fence: str) -> None:
        """A fenced block begins, or ends with a fence of the same kind that is at least as long."""
        if not self._fence:
            self._fence = fence
        elif fence.startswith(self._fence):
            self._fence = ""

    def _line(self) -> bool:
        end = self._text.find("\n") + 1
        said = self._text[: end or len(self._text)]
        self._text = self._text[len(said) :]
        self._give("message", said)
        if end:
            self._step = self._line_begins
        return bool(end)

    def _span_begins(self) -> bool:
        self._text = self._text.lstrip()
        if not self._text:
            return False
        self._step = self._span
        return True

    def _span(self) -> bool:
        end = self._text.find(self._closing)
        if end < 0:
            held = _held_back(self._text, self._closing)
            self._think(self._text[: len(self._text) - held])
            self._text = self._text[len(self._text) - held :]
            return False
        self._think(self._text[:end])
        self._text = self._text[end + len(self._closing) :]
        self._closing = self._blank = ""
        self._unopened = None
        self._step = self._span_ended
        return True

    def _span_ended(self) -> bool:
        self._text = self._text.lstrip()
        if not self._text:
            return False
        self._step = self._line_begins
        return True

    def _think(self, text: str) -> None:
        """Space at the end of a span is no part of it."""
        text = self._blank + text
        thought = text.rstrip()
        self._blank = text[len(thought) :]
        self._give("reasoning", thought)

    def _give(self, kind: str, text: str) -> None:
        if text:
            self._out.append((kind, text))

    def _take(self) -> Spans:
        out, self._out = self._out, []
        return out


def _held_back(text: str, mark: str) -> int:
    """How much of the text's end could be the beginning of the mark."""
    longest = min(len(text), len(mark) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
