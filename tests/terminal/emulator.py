"""A terminal to look at: what a program wrote, as the screen and its scrollback show it."""

from __future__ import annotations

import io
import re
from itertools import islice
from typing import Any

import pyte

# Pictures and questions about them, which this screen would show as text; a terminal draws or swallows them.
_GRAPHICS = re.compile(r"\x1b_G[^\x1b]*\x1b\\|\x1bP[^\x1b]*\x1b\\|\x1b\]1337;[^\x07]*\x07")


class Emulator:
    """A screen of that size with all of its history."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.5)
        self._stream = pyte.Stream(self.screen)
        self._above: list[tuple[Any, str]] = []  # rows of the scrollback, which stay as they are

    def feed(self, text: str) -> None:
        self._stream.feed(_GRAPHICS.sub("", text))

    def size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    @property
    def visible(self) -> list[str]:
        """The rows on the screen, without empty ones at its end."""
        buffer = self.screen.buffer
        return _trimmed([self._text(buffer[line]) for line in range(self.screen.lines)])

    @property
    def everything(self) -> list[str]:
        """The scrollback, and then the screen. Looked at after every few characters, so it has to be quick."""
        top, known = self.screen.history.top, self._above
        if len(known) > len(top) or (known and known[-1][0] is not top[len(known) - 1]):
            known.clear()
        known += [(row, self._text(row)) for row in islice(top, len(known), None)]
        return _trimmed([text for _, text in known] + self.visible)

    @property
    def row(self) -> str:
        """The one that the cursor is in."""
        return self._text(self.screen.buffer[self.screen.cursor.y])

    @property
    def cursor(self) -> tuple[int, int]:
        return self.screen.cursor.x, self.screen.cursor.y

    def _text(self, row: Any) -> str:
        """The characters of a row, which has no cells for what was never written."""
        width = min(max(row, default=-1) + 1, self.screen.columns)
        return "".join([row[column].data for column in range(width)]).rstrip()


class EmulatedOutput(io.StringIO):
    """A file that is a terminal: what is written to it appears on the emulator."""

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
