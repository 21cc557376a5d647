"""The part of the screen that is ours: when it is drawn, what is final, and what is still open below it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from interpreter.frontends.terminal.render.code import CodeView
from interpreter.frontends.terminal.render.markdown import MarkdownView
from interpreter.frontends.terminal.render.output import OutputView
from interpreter.frontends.terminal.render.reasoning import ReasoningView
from interpreter.frontends.terminal.render.screen import Screen
from interpreter.frontends.terminal.render.status import (
    PATIENCE,
    STALL,
    TICK,
    Status,
)
from interpreter.frontends.terminal.render.theme import Theme

View = MarkdownView | CodeView | OutputView | ReasoningView
FRAME = 0.04  # seconds between two drawings, at least
_SHARE = 4  # of the time, drawing may take one part in so many


class Canvas:
    """Draws one open view and the status line; `tick` is called by whoever keeps the time, at `deadline`."""

    def __init__(self, screen: Screen, theme: Theme, clock: Callable[[], float] = time.monotonic) -> None:
        self.screen = screen
        self.theme = theme
        self.status = Status(theme)
        self.on_change: Callable[[], None] = lambda: None
        self._clock = clock
        self._view: View | None = None
        self._kind = ""
        self._output: OutputView | None = None  # the view, while a block runs
        self._commit: list[str] = []
        self._body: list[str] = []
        self._spaced = True  # whether the last row above is an empty one
        self._dirty = False
        self._next_draw = 0.0
        self._next_tick = 0.0

    def _open(self, kind: str, view: View) -> None:
        self._close_view()
        if not self._spaced:
            self._put([""])
        self._view, self._kind = view, kind

    def _close_view(self) -> None:
        if self._view is None:
            return
        view = self._view
        self._view, self._kind, self._output = None, "", None
        self._put(view.close())
        self._dirty = True

    def _put(self, rows: list[str]) -> None:
        self._commit += rows
        if rows:
            self._spaced = not rows[-1]

    def _changed(self) -> None:
        self._dirty = True
        now = self._clock()
        if now >= self._next_draw:
            self._draw(now)
        self.on_change()

    def flush(self) -> None:
        """Draw now, whatever the time."""
        self._draw(self._clock())

    def _draw(self, now: float) -> None:
        with self.screen.lock:
            if self._dirty:
                self._body = self._open_rows()
            footer = self.status.rows(now, self._patience())
            commit, self._commit, self._dirty = self._commit, [], False
            self.screen.paint(commit, self._body, footer)
            done = self._clock()
            self._next_draw = done + max(FRAME, _SHARE * (done - now))
            self._next_tick = done + TICK

    def _open_rows(self) -> list[str]:
        if isinstance(self._view, MarkdownView):
            self._put(self._view.settle())
        return self._view.open_rows() if self._view else []

    def _patience(self) -> float:
        if not self._body or (self._output and not self._output.line_open):
            return PATIENCE
        # A line that a program has begun may be a question: the cursor stays at its end.
        return math.inf if self._output else STALL

    def deadline(self) -> float | None:
        """When `tick` wants to be called next; None: not before something changes."""
        with self.screen.lock:
            if self._dirty or self._commit:
                return self._next_draw
            due = self.status.appears_at(self._patience())
            return None if due is None else max(due, self._next_tick)

    def tick(self) -> None:
        """Draw what is due."""
        with self.screen.lock:
            now, due = self._clock(), self.deadline()
            if due is not None and now >= due:
                self._draw(now)
