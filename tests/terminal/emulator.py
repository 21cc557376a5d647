"""A terminal to look at: what a program wrote, as the screen and its scrollback show it."""

from __future__ import annotations

import io
import re
from typing import Any

import pyte

# Pictures and questions about them, which this screen would show as text; a terminal draws or swallows them.
_GRAPHICS = re.compile(r"\x1b_G[^\x1b]*\x1b\\|\x1bP[^\x1b]*\x1b\\|\x1b\]1337;[^\x07]*\x07")


class Emulator:
    """A screen of that size with all of its history."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.5)
        self._stream = pyte.Stream(self.screen)

    def feed(self, text: str) -> None:
        self._stream.feed(_GRAPHICS.sub("", text))

    def size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    @property
    def visible(self) -> list[str]:
        """The rows on the screen, without empty ones at its end."""
        return _trimmed([row.rstrip() for row in self.screen.display])

    @property
    def everything(self) -> list[str]:
        """The scrollback, and then the screen."""
        above = [self._text(row) for row in self.screen.history.top]
        return _trimmed(above + [row.rstrip() for row in self.screen.display])

    @property
    def row(self) -> str:
        """The one that the cursor is in."""
        return self.screen.display[self.screen.cursor.y].rstrip()

    @property
    def cursor(self) -> tuple[int, int]:
        return self.screen.cursor.x, self.screen.cursor.y

    def _text(self, row: Any) -> str:
        return "".join(row[column].data for column in range(self.screen.columns)).rstrip()


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
