"""A block's output under its code: streamed, folded when it is long, with shortened tracebacks and attachments."""

from __future__ import annotations

import os
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from interpreter.frontends.terminal.render.ansi import LINE_LIMIT, ProgramText, cells, clip, without_styles
from interpreter.frontends.terminal.render.code import CodeLines
from interpreter.frontends.terminal.render.notes import saved_to
from interpreter.frontends.terminal.render.saved import output_file, save_image, save_text
from interpreter.frontends.terminal.render.theme import Theme, file_link

if TYPE_CHECKING:
    from interpreter.frontends.terminal.render.images import Pictures

HEAD = 20  # rows shown as they come
TAIL = 10  # lines kept from the end of folded output
_OPEN_TAIL = 5  # of them on the screen while output still arrives
_LINE_ROWS = 3  # rows that one line of the end may take
_MOST_KEPT = 100_000  # characters held until it is known whether they must be folded


class OutputView:
    """Shows the first rows at once; of long output then only the end, and the path of a file with all of it."""

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
        self.empty = True

    def feed(self, text: str, stderr: bool = False, whole: str | None = None) -> list[str]:
        """The rows that are final now; `whole` is what a shortened text stands for."""
        self.empty = False
        kept = text if whole is None else whole
        self._held += len(kept)
        if self._file:
            self._file.write(kept)
        else:
            self._seen.append(kept)
            if self._held > _MOST_KEPT:
                self._fold()
        start = self._theme.start("stderr") if stderr else ""
        if start and "\r" not in text:  # a progress bar returns to the beginning of its line and is not tinted
            text = f"{start}{text}\x1b[39m"
        return self._place(self._text.feed(text))

    def open_rows(self) -> list[str]:
        """The rows that may still change."""
        rows: list[str] = []
        if self._file:
            tail = list(self._tail)[-_OPEN_TAIL:]
            hidden = self._folded - len(tail)
            rows = [self._hint(hidden, None), *tail] if hidden else tail
        return [*rows, self._text.open] if self._text.open else rows

    @property
    def line_open(self) -> bool:
        """Whether the program is in the middle of a line."""
        return bool(self._text.open)

    def take_line(self) -> str:
        """The open line, which the caller shows from now on."""
        line = self._text.open
        self._text.close()
        return line

    def close(self, whole: str | None = None) -> list[str]:
        """The block is over; `whole` is the file with all its output, if there is one already."""
        rows = self._place(self._text.close())
        if not self._file:
            return rows
        room = _LINE_ROWS * self.width
        tail = list(self._tail)
        for at, line in enumerate(tail):
            if len(line) > room and cells(line) > room:
                tail[at] = clip(line, room - 1) + "\x1b[0m" * ("\x1b" in line) + self._theme.symbol("more")
        hidden = self._folded - len(tail)
        self._file.close()
        path = self._file.name
        if not hidden and tail == list(self._tail):
            whole = ""  # all of it is on the screen
        if whole is not None:
            os.unlink(path)
            path = whole
        return [*rows, self._hint(hidden, path), *tail] if path else rows + tail

    def _place(self, lines: list[str]) -> list[str]:
        shown: list[str] = []
        if self._theme.links:
            lines = [with_linked_frame(line) if "File " in line else line for line in lines]
        for number, line in enumerate(lines):
            if self._file is None:
                self._used += 1 if len(line) <= self.width else 1 + cells(line) // self.width
                if self._used > HEAD or len(line) >= LINE_LIMIT:
                    self._fold()
            if self._file is not None:
                rest = lines[number:]
                self._folded += len(rest)
                self._tail.extend(rest[-TAIL:])
                break
            shown.append(line)
        return shown

    def _fold(self) -> None:
        self._file = output_file()
        self._file.write("".join(self._seen))
        self._seen = []

    def _hint(self, hidden: int, path: str | None) -> str:
        lines = "1 more line" if hidden == 1 else f"{hidden:,} more lines" if hidden else "long lines are cut"
        text = f"{self._theme.symbol('more')} {lines}"
        if path:
            text += f", all in {self._theme.path(path)}"
        return self._theme.paint(text, "hint")


# -- attachments -------------------------------------------------------------------------------------------------


def picture_rows(content: str, kind: str, pictures: Pictures, theme: Theme, columns: int, lines: int) -> list[str]:
    """A picture, and below it the path of its file."""
    path = save_image(content, kind) if kind != "description" else None
    if path is None:
        return []
    caption = theme.paint(saved_to("image", theme.path(path)), "hint")
    return pictures.rows(path, columns, lines, caption)


def table_rows(html: str, theme: Theme, width: int) -> list[str] | None:
    """The table that a page consists of, and the path of the page if it does not fit; None for any other page."""
    from interpreter.frontends.terminal.render.tables import fitted, table_in

    table = table_in(html)
    if table is None:
        return None
    rows, cut = fitted(table, width - 1, theme)
    if cut:
        rows.append(theme.paint(f"Whole table: {theme.path(save_text(html, 'html'))}", "hint"))
    return rows


def file_row(content: str, kind: str, theme: Theme) -> str:
    """The path of something that only another program can show."""
    return theme.paint(saved_to(kind, theme.path(save_text(content, kind))), "hint")


# -- tracebacks --------------------------------------------------------------------------------------------------

# IPython's and Python's frames; a style may come between the words.
_STYLE = r"(?:\x1b\[[0-9;:]*m)*"
_LINKED_FRAME = re.compile(rf'^({_STYLE}File {_STYLE}|\s*{_STYLE}File {_STYLE}")((?:/|~/)[^\x1b":]+)')
_HEADER = re.compile(r"^\S.* {2,}Traceback \(most recent call last\)$|^Traceback \(most recent call last\):$")
_DASHES = re.compile(r"^-{20,}$")
_FRAME = re.compile(
    r"^File (?P<ipython>.+?):\d+(?:, in .*)?$"
    r'|^  File "(?P<python>.+?)", line \d+(?:, in .*)?$'
    r"|^Cell In\[\d+\], line \d+.*$"
)
_LIBRARIES = (
    re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)"),
    re.compile(r"[/\\]lib[/\\]python\d[\d.]*[/\\]([^/\\]+)", re.IGNORECASE),
    re.compile(r"^<frozen ([\w.]+)>$"),
    re.compile(r"^([^/\\<]+)[/\\].*\.p(?:yx|xi|xd)$"),
)
_SOURCE = re.compile(r"^((?:-+> |   )? *\d+ )(.*)$")
_ERROR_NAME = re.compile(r"^([\w.]+)(?=:|$)")


def with_linked_frame(line: str) -> str:
    """A line of a traceback that names a file, with the file as a link."""
    found = _LINKED_FRAME.match(line)
    return found[1] + file_link(found[2]) + line[found.end() :] if found else line


@dataclass
class _Frame:
    lines: list[str]
    library: str  # the package that it is in; empty for the user's own


@dataclass
class _Error:
    """One traceback of a chain: its frames, and the text below them."""

    frames: list[_Frame] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)


def shortened(text: str, theme: Theme) -> tuple[str, bool] | None:
    """A traceback with only the user's own frames, and whether any were left out; None for any other text."""
    if "Traceback (most recent call last)" not in text:
        return None
    lines, errors = _parsed(without_styles(text).split("\n"))
    if not any(error.frames for error in errors):
        return None
    for error, result in zip(errors, [*errors[1:], None], strict=True):
        own = any(not frame.library for frame in error.frames)
        # Leave out causes inside a library that say no more than the error that they led to.
        if own or result is None or error.tail[:1] != result.tail[:1]:
            lines += _frames(error.frames, theme)
            if error.tail:
                lines.append(_ERROR_NAME.sub(lambda name: theme.paint(name[1], "error"), error.tail[0]))
                lines += error.tail[1:]
    return "\n".join(lines), any(frame.library for error in errors for frame in error.frames)


def _parsed(lines: list[str]) -> tuple[list[str], list[_Error]]:
    """The lines before the traceback, and its chain of errors."""
    before: list[str] = []
    errors: list[_Error] = []
    for line in lines:
        if _DASHES.match(line):
            continue  # we have drawn a rule above already
        if _HEADER.match(line):
            errors.append(_Error())
        elif not errors:
            before.append(line)
        elif (found := _FRAME.match(line)) and not errors[-1].tail:
            path = found["ipython"] or found["python"] or ""
            library = next((match[1] for each in _LIBRARIES if (match := each.search(path))), "")
            errors[-1].frames.append(_Frame([line], library.removesuffix(".py")))
        elif errors[-1].frames and not errors[-1].tail and (not line or line.startswith((" ", "-", "[... "))):
            errors[-1].frames[-1].lines.append(line)  # source; the error itself begins at the margin, with a letter
        else:
            errors[-1].tail.append(line)
    return before, errors


def _frames(frames: list[_Frame], theme: Theme) -> list[str]:
    lines: list[str] = []
    folded: list[str] = []
    for frame in [*frames, None]:
        if frame is not None and frame.library:
            folded.append(frame.library)
            continue
        if folded:
            names = list(dict.fromkeys(folded))
            named = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
            count = f"{len(folded)} frame{'s' if len(folded) > 1 else ''}"
            lines.append(theme.paint(f"{theme.symbol('more')} {count} in {named}", "hint"))
            folded = []
        if frame is not None:
            lines.append(theme.paint(frame.lines[0], "builtin"))
            code = CodeLines("python", theme)
            for line in frame.lines[1:]:
                if source := _SOURCE.match(line):
                    place = theme.paint(source[1], "error" if ">" in source[1] else "hint")
                    line = place + code.preview(source[2])
                lines.append(line)
    return lines
