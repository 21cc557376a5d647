"""A block's output under its code: streamed, and folded when it is long."""

from __future__ import annotations

import os
from collections import deque
from typing import TextIO

from interpreter.frontends.terminal.render.ansi import (
    LINE_LIMIT,
    ProgramText,
    cells,
    clip,
)
from interpreter.frontends.terminal.render.links import with_linked_frame
from interpreter.frontends.terminal.render.saved import output_file
from interpreter.frontends.terminal.render.theme import Theme

HEAD = 20  # rows shown as they come
TAIL = 10  # lines kept from the end of what is folded
_OPEN_TAIL = 5  # of them on the screen while the output goes on
_LINE_ROWS = 3  # rows that one line of the end may take
_MOST_KEPT = 100_000  # characters held until it is known whether they must be folded


class OutputView:
    """Shows the first rows at once; of a long output then only the end, and where the whole is."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.width = width
        self._theme = theme
        self._text = ProgramText(color=theme.color)
        self._used = 0
        self._seen: list[str] = []  # the raw text until it is folded
        self._file: TextIO | None = None
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._folded = 0
        self._held = 0
        self._cut = False
        self.empty = True

    def feed(self, text: str, stderr: bool = False, whole: str | None = None) -> list[str]:
        """The rows that are final now; `whole` is what a shortened text stands for."""
        self.empty = False
        self._keep(text if whole is None else whole)
        return self._place(self._text.feed(self._tinted(text) if stderr else text))

    def open_rows(self) -> list[str]:
        """The rows that may still change."""
        line = self._text.open
        if not self._file:
            return [line] if line else []
        tail = list(self._tail)[-_OPEN_TAIL:]
        hidden = self._folded - len(tail)
        rows = [self._hint(hidden, None)] if hidden else []
        return rows + tail + ([line] if line else [])

    @property
    def line_open(self) -> bool:
        """Whether the program is in the middle of a line."""
        return bool(self._text.open)

    def take_line(self) -> str:
        """The open line, which somebody else shows from now on."""
        line = self._text.open
        self._text.close()
        return line

    def take_open(self) -> list[str]:
        """The open line as a row, when something else is to be shown below it."""
        line = self.take_line()
        return [line] if line else []

    def close(self, whole: str | None = None) -> list[str]:
        """The block is over; `whole` is the file of all its output, if somebody kept one."""
        rows = self._place(self._text.close())
        if self._file:
            tail = [self._shortened(line) for line in self._tail]
            hidden = self._folded - len(tail)
            path = self._whole(whole if hidden or self._cut else "")
            rows += [self._hint(hidden, path), *tail] if path else tail
        return rows

    def _tinted(self, text: str) -> str:
        """Red, unless it is a progress bar, which goes back to the beginning of its line."""
        start = self._theme.start("stderr")
        return f"{start}{text}\x1b[39m" if start and "\r" not in text else text

    def _keep(self, text: str) -> None:
        self._held += len(text)
        if self._file:
            self._file.write(text)
            return
        self._seen.append(text)
        if self._held > _MOST_KEPT:
            self._fold()

    def _place(self, lines: list[str]) -> list[str]:
        shown: list[str] = []
        if self._theme.links:
            lines = [with_linked_frame(line) if "File " in line else line for line in lines]
        for number, line in enumerate(lines):
            if self._file is None and not self._fits(line):
                self._fold()
            if self._file is not None:
                rest = lines[number:]
                self._folded += len(rest)
                self._tail.extend(rest[-TAIL:])
                break
            shown.append(line)
        return shown

    def _fits(self, line: str) -> bool:
        rows = 1 if len(line) <= self.width else 1 + cells(line) // self.width
        self._used += rows
        return self._used <= HEAD and len(line) < LINE_LIMIT

    def _fold(self) -> None:
        self._file = output_file()
        self._file.write("".join(self._seen))
        self._seen = []

    def _whole(self, whole: str | None) -> str:
        """Where the whole is: in the file that was kept for us, or else in ours."""
        assert self._file
        self._file.close()
        if whole is None:
            return self._file.name
        os.unlink(self._file.name)
        return whole

    def _shortened(self, line: str) -> str:
        room = _LINE_ROWS * self.width
        if len(line) <= room or cells(line) <= room:
            return line
        self._cut = True
        return clip(line, room - 1) + "\x1b[0m" * ("\x1b" in line) + self._theme.symbol("more")

    def _hint(self, hidden: int, path: str | None) -> str:
        lines = "1 more line" if hidden == 1 else f"{hidden:,} more lines" if hidden else "long lines are cut"
        words = f"{self._theme.symbol('more')} {lines}"
        if path:
            words += f", all in {self._theme.path(path)}"
        return self._theme.paint(words, "hint")
