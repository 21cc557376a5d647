"""The bottom of the screen: finished lines go to the scrollback once, open rows and a status line are redrawn."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence

from interpreter.console_text import PROSE, visible
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.render.notes import duration
from interpreter.frontends.terminal.render.theme import Theme

SPINNER_DELAY = 0.3  # seconds of silence before the spinner shows
STALL_DELAY = 1.0  # the same if a text is already on the screen
TICK = 0.125
_HINT_AFTER = 5.0
_FRAMES = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")


class Screen:
    """Draws on one terminal. `body` is what is still open, `footer` a status line below it."""

    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._rows: list[str] = []  # what is drawn below the scrollback
        self._width = 0  # of the screen when they were drawn
        self.lock = threading.RLock()

    @property
    def width(self) -> int:
        return max(self._size()[0], 4)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        columns, lines = self._size()
        return max(columns, 4), lines

    def paint(self, commit: Sequence[str] = (), body: Sequence[str] = (), footer: Sequence[str] = ()) -> None:
        """Put `commit` into the scrollback and make body and footer the open rows, in one write."""
        with self.lock:
            width, lines = self.size
            room = max(lines - 1 - len(footer), 1)
            open_rows = [clip(row, width - 1) for row in [*body[-room:], *footer]]
            moves = self._moves([*commit, *open_rows], bool(open_rows), width, lines)
            self._rows, self._width = open_rows, width
            if moves:
                self._write(moves)

    def forget(self) -> None:
        """Leave the open rows as they are: something else writes from here."""
        with self.lock:
            self._rows = []

    def _moves(self, target: list[str], has_open: bool, width: int, lines: int) -> str:
        """The text and cursor movements that turn the open rows into the target."""
        old = self._rows
        same = next((at for at, (one, other) in enumerate(zip(old, target, strict=False)) if one != other), None)
        same = min(len(old), len(target)) if same is None else same
        height = len(old)
        if old and self._width != width:
            same = 0
            # The few terminals that do not wrap old lines again when their width changes are known.
            if "XTERM_VERSION" not in os.environ and os.environ.get("TERM", "") not in ("linux", "vt100", "vt220"):
                height = sum(max(1, -(-cells(row) // width)) for row in old)
            height = min(height, lines)
        elif same < len(old) and same == len(target) and has_open:
            same -= 1  # the cursor belongs at the end of the last row, so that row is written again
        rest = target[same:]
        text = "\r\n".join(rest) + ("\r\n" if rest and not has_open else "")
        if same == len(old):
            return ("\r\n" if old and (rest or not has_open) else "") + text
        up = height - 1 - same
        return (f"\x1b[{up}A" if up > 0 else "") + "\r\x1b[J" + text


class Status:
    """The line at the bottom during a turn: a spinner, what is going on and for how long, and type-ahead."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self.what = ""  # thinking, running, ...; empty if nothing is going on
        self.detail = ""
        self.typed = ""
        self._since = 0.0
        self.quiet_since = 0.0  # when something was shown last: the spinner waits after that
        self._until: float | None = None  # end of a countdown

    def begin(self, what: str, now: float, detail: str = "", seconds: float | None = None) -> None:
        """Something new is going on; with `seconds`, a countdown."""
        self.what, self.detail = what, detail
        self._since = self.quiet_since = now
        self._until = None if seconds is None else now + seconds

    def appears_at(self, delay: float) -> float | None:
        """When the spinner is due; None if nothing is going on."""
        if not self.what or delay == math.inf:
            return None
        return self.quiet_since + delay if self._until is None else self._since

    def rows(self, now: float, delay: float) -> list[str]:
        """The status line, or nothing."""
        theme, parts = self._theme, []
        due = self.appears_at(delay)
        if due is not None and now >= due - 0.001:
            frames = _FRAMES[0 if theme.unicode else 1]
            frame = frames[int(now / TICK) % len(frames)]
            text = visible(self._text(now)).replace("\n", " ")
            parts.append(f"{theme.paint(frame, 'spinner')} {theme.paint(text, 'hint')}")
        if self.typed:
            typed = visible(self.typed, PROSE).replace("\n", " ")  # a paste can have anything in it
            parts.append(theme.paint(f"{theme.symbol('typed')} {typed}", "typed"))
        return ["  ".join(parts)] if parts else []

    def _text(self, now: float) -> str:
        elapsed, dot = now - self._since, f" {self._theme.symbol('dot')} "
        if self._until is None:
            text = f"{self.what} {duration(elapsed, 0)}"
        else:
            text = f"{self.what}, trying again in {duration(max(0, round(self._until - now)), 0)}"
        if self.detail:
            text += dot + self.detail
        if elapsed > _HINT_AFTER and not self.typed:
            text += f"{dot}Ctrl-C stops"
            text += ", Ctrl-B to the background" if self.what == "running" else ""
        return text
