"""The model's reasoning: dimmed; its last rows while it comes, and a line in its place when it is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from interpreter.frontends.terminal.render.ansi import visible
from interpreter.frontends.terminal.render.markdown import WIDEST
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.frontends.terminal.render.words import thought

SHOWN = 4  # rows; what has no more of them stays as it is
_KEPT = 3 * SHOWN * WIDEST  # characters of a line; more are never seen


class ReasoningView:
    """Shows thoughts as they come. `folds`: long ones go when they are over, and a line says how long they took."""

    def __init__(self, theme: Theme, width: int, clock: Callable[[], float], folds: bool = True) -> None:
        self._theme = theme
        self.width = width
        self._clock, self._began = clock, clock()
        self._folds = folds
        self._partial = ""
        self._tail: deque[str] = deque(maxlen=SHOWN)  # the last whole lines; more of them cannot be seen
        self._count = 0

    def feed(self, text: str) -> list[str]:
        """The rows that are final now."""
        *lines, self._partial = (self._partial + text).split("\n")
        if not self._folds:
            return [row for line in lines for row in self._wrapped(line)]
        self._tail += [line[-_KEPT:] for line in lines]
        self._count += len(lines)
        if len(self._partial) > 4 * _KEPT:  # seldom, since the rows may be laid out differently then
            self._partial = self._partial[-_KEPT:]
        return []

    def open_rows(self) -> list[str]:
        """What can be seen of what is not final: the end of it."""
        return self._rows()[-SHOWN:] if self._folds else self._rows()

    def close(self) -> list[str]:
        """The rest, or what stands in its place."""
        rows = self._rows()
        self._partial = ""
        if self._folds and (self._count > SHOWN or len(rows) > SHOWN):
            return [self._theme.paint(thought(self._clock() - self._began), "reasoning")]
        return rows

    def _rows(self) -> list[str]:
        lines = [*self._tail, self._partial] if self._partial else self._tail
        return [row for line in lines for row in self._wrapped(line)]

    def _wrapped(self, line: str) -> list[str]:
        from rich.text import Text

        from interpreter.frontends.terminal.render.inline import rows

        text = Text(visible(line), self._theme.rich_style("reasoning"))
        return rows(text, min(self.width - 1, WIDEST), self._theme) or [""]
