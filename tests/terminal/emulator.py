"""A terminal emulator: the screen and the scrollback that a program's output makes."""

from __future__ import annotations

import io
import re
from itertools import islice
from typing import Any

import pyte

# Images and queries about them: a terminal draws or swallows them, but pyte would show them as text.
_GRAPHICS = re.compile(r"\x1b_G[^\x1b]*\x1b\\|\x1bP[^\x1b]*\x1b\\|\x1b\]1337;[^\x07]*\x07")


class Emulator:
    """A screen of the given size with its whole scrollback."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.5)
        self._stream = pyte.Stream(self.screen)
        self._above: list[tuple[Any, str]] = []  # rows of the scrollback, which don't change

    def feed(self, text: str) -> None:
        self._stream.feed(_GRAPHICS.sub("", text))

    def size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    @property
    def visible(self) -> list[str]:
        """Return the rows on the screen, without empty ones at its end."""
        buffer = self.screen.buffer
        return _trimmed([self._text(buffer[line]) for line in range(self.screen.lines)])

    @property
    def everything(self) -> list[str]:
        """Return the scrollback, and then the screen. Read after every few characters, so it has to be fast."""
        top, known = self.screen.history.top, self._above
        if len(known) > len(top) or (known and known[-1][0] is not top[len(known) - 1]):
            known.clear()
        known += [(row, self._text(row)) for row in islice(top, len(known), None)]
        return _trimmed([text for _, text in known] + self.visible)

    @property
    def row(self) -> str:
        """Return the cursor's row."""
        return self._text(self.screen.buffer[self.screen.cursor.y])

    @property
    def cursor(self) -> tuple[int, int]:
        return self.screen.cursor.x, self.screen.cursor.y

    def _text(self, row: Any) -> str:
        """Join the characters of a row. Cells that were never written don't exist."""
        width = min(max(row, default=-1) + 1, self.screen.columns)
        return "".join([row[column].data for column in range(width)]).rstrip()


class EmulatedOutput(io.StringIO):
    """A file that acts as a terminal: text written to it appears on the emulator."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__()
        self._emulator = emulator
        self.written = 0

    def write(self, text: str) -> int:
        self._emulator.feed(text.replace("\n", "\r\n"))  # as a terminal's output mode does
        self.written += len(text)
        return len(text)

    def isatty(self) -> bool:
        return True


def _trimmed(rows: list[str]) -> list[str]:
    while rows and not rows[-1]:
        rows.pop()
    return rows
