"""The bottom of the screen: finished lines go to the scrollback once, open rows are redrawn in place."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from interpreter.frontends.terminal.render.ansi import cells, clip


class Screen:
    """Draws on one terminal. `body` is what is still open, `footer` a status line below it."""

    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._rows: list[str] = []  # what is drawn below the scrollback, one row each
        self._width = 0  # of the screen when they were drawn
        self.lock = threading.RLock()

    @property
    def width(self) -> int:
        return max(self._size()[0], 4)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        return self.width, self._size()[1]

    def paint(self, commit: Sequence[str] = (), body: Sequence[str] = (), footer: Sequence[str] = ()) -> None:
        """Put `commit` into the scrollback and make body and footer the open rows, in one write."""
        with self.lock:
            columns, lines = self._size()
            width = max(columns, 4)
            open_rows = [clip(row, width - 1) for row in self._fitting(body, footer, lines)]
            moves = self._moves(list(commit), open_rows, width, lines)
            self._rows, self._width = open_rows, width
            if moves:
                self._write(moves)

    def forget(self) -> None:
        """The open rows stay as they are and are ours no more: somebody else writes from here."""
        with self.lock:
            self._rows = []

    @staticmethod
    def _fitting(body: Sequence[str], footer: Sequence[str], lines: int) -> list[str]:
        room = max(lines - 1 - len(footer), 1)
        return [*body[-room:], *footer]

    def _moves(self, commit: list[str], open_rows: list[str], width: int, lines: int) -> str:
        target = commit + open_rows
        old = self._rows
        if old and self._width != width:
            back = self._climb(min(self._rows_after_resize(width), lines) - 1)
            return back + _joined(target, ended=not open_rows)
        same = _common(old, target)
        if same == len(old):
            if same == len(target):
                return "\r\n" if old and not open_rows else ""
            return ("\r\n" if old else "") + _joined(target[same:], ended=not open_rows)
        if same == len(target) and open_rows:
            same -= 1  # the cursor belongs at the end of the last row, so that row is written again
        return self._climb(len(old) - 1 - same) + _joined(target[same:], ended=not open_rows)

    @staticmethod
    def _climb(rows: int) -> str:
        return (f"\x1b[{rows}A" if rows > 0 else "") + "\r\x1b[J"

    def _rows_after_resize(self, width: int) -> int:
        """How many rows the open ones take now: most terminals wrap them anew."""
        if not reflows(os.environ):
            return len(self._rows)
        return sum(max(1, -(-cells(row) // width)) for row in self._rows)


def reflows(environ: os._Environ[str] | dict[str, str]) -> bool:
    """Whether the terminal wraps old lines anew when its width changes; the few that do not are known."""
    return "XTERM_VERSION" not in environ and environ.get("TERM", "") not in ("linux", "vt100", "vt220")


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _joined(rows: list[str], ended: bool) -> str:
    return "\r\n".join(rows) + ("\r\n" if ended and rows else "")
