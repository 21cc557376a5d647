"""A code block as it arrives: its code in colours, and its output below it.

A finished line of code is never drawn again. Long output is folded, and tracebacks are shortened.
"""

from __future__ import annotations

import os
import re
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING, Any, TextIO

from interpreter.console_text import counted, visible, visible_line
from interpreter.frontends.terminal.render.ansi import LINE_LIMIT, ProgramText, cells, clip, without_styles
from interpreter.frontends.terminal.render.saved import new_path
from interpreter.frontends.terminal.render.theme import Theme, file_link
from interpreter.runtimes import BUILT_IN, Registry

if TYPE_CHECKING:
    from pygments.lexer import Lexer


RULE = 72  # columns of the lines above and below a block
_CONTEXT = 30  # lines that are read again inside a string or comment of several lines
_TOKENS = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Keyword.Constant": "constant",
    "Keyword.Type": "builtin",
    "Operator.Word": "keyword",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Name.Function": "name",
    "Name.Class": "name",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Name.Builtin": "builtin",
    "Name.Exception": "builtin",
    "Name.Decorator": "decorator",
    "Name.Variable": "name",
}


class CodeLines:
    def __init__(self, language: str, theme: Theme, languages: Registry = BUILT_IN) -> None:
        self._theme = theme
        described = languages.describe(language)
        self._lexer = _lexer(described.lexer or described.name.lower()) if theme.color else None
        self._context: list[str] = []

    def line(self, text: str) -> str:
        text = visible(text)
        shown, inside = self._colored(text)
        # Inside a long string, the lexer must see its first line to know that it is one.
        context = [*self._context, text] if inside else []
        self._context = context if len(context) <= _CONTEXT else context[:1] + context[2:]
        return shown

    def preview(self, text: str) -> str:
        return self._colored(visible(text))[0]

    def _colored(self, text: str) -> tuple[str, bool]:
        """Colour a line; the flag is set if it ends inside a string or comment."""
        if self._lexer is None:
            return text, False
        source = "\n".join([*self._context, text]) + "\n"
        parts: list[str] = []
        row, inside = 0, False
        for kind, value in self._lexer.get_tokens(source):
            style = _style_of(kind)
            for number, piece in enumerate(value.split("\n")):
                if number:
                    row += 1
                    inside = style in ("string", "comment")
                if row == len(self._context) and piece:
                    parts.append(self._theme.paint(piece, style))
        return "".join(parts), inside


@cache
def _lexer(name: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(name, stripnl=False)
    except ClassNotFound:
        return None


@cache
def _style_of(kind: Any) -> str:
    """Return the style of a token type, or of its nearest ancestor that has one."""
    names = [str(each).removeprefix("Token.") for each in reversed(kind.split())]
    return next((_TOKENS[name] for name in names if name in _TOKENS), "")


class CodeView:
    """A block of code between two rules, as it arrives."""

    def __init__(self, language: str, theme: Theme, width: int, languages: Registry = BUILT_IN) -> None:
        self._lines = CodeLines(language, theme, languages)
        self._theme = theme
        self.width = width
        self._partial = ""
        self.source: list[str] = []
        rule, name = theme.symbol("rule"), visible_line(language)
        title = f"{rule * 2} {name} " if name else ""
        self._head = [theme.paint((title + rule * RULE)[: min(width - 1, RULE)], "rule")]  # until it is shown

    def feed(self, text: str) -> list[str]:
        *lines, self._partial = (self._partial + text).split("\n")
        self.source += lines
        head, self._head = self._head, []
        return head + [self._lines.line(line) for line in lines]

    def open_rows(self) -> list[str]:
        return [self._lines.preview(self._partial)] if self._partial else []

    def close(self) -> list[str]:
        rows = self.feed("\n" if self._partial else "")
        rule = self._theme.symbol("rule") * min(self.width - 1, RULE)
        return [*rows, self._theme.paint(rule, "rule")]


HEAD = 20  # rows shown as they come
TAIL = 10  # last lines of folded output that are kept
_OPEN_TAIL = 5  # of them on the screen while output still arrives
_LINE_ROWS = 3  # rows that one line of the end may take
_MAX_KEPT_LENGTH = 100_000  # characters held until it is known whether they must be folded


class OutputView:
    """Shows the first rows at once; of long output then only the end, and the path of a file with all of it."""

    def __init__(self, theme: Theme, width: int) -> None:
        self.width = width
        self._theme = theme
        self.text = ProgramText(color=theme.color)
        self._used = 0
        self._seen = StringIO()  # the raw text until it is folded
        self._file: TextIO | None = None
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._folded = 0
        self.empty = True

    def feed(self, text: str, stderr: bool = False, whole: str | None = None) -> list[str]:
        """Add output and return the rows that are final now; `whole` is the text before it was shortened."""
        self.empty = False
        (self._file or self._seen).write(text if whole is None else whole)
        if not self._file and self._seen.tell() > _MAX_KEPT_LENGTH:
            self._fold()
        start = self._theme.start("stderr") if stderr else ""
        if start and "\r" not in text:  # a progress bar returns to the beginning of its line and is not tinted
            text = f"{start}{text}\x1b[39m"
        return self._place(self.text.feed(text))

    def open_rows(self) -> list[str]:
        rows: list[str] = []
        if self._file:
            tail = list(self._tail)[-_OPEN_TAIL:]
            hidden = self._folded - len(tail)
            rows = [self._hint(hidden, None), *tail] if hidden else tail
        return [*rows, self.text.open] if self.text.open else rows

    def take_line(self) -> str:
        """Remove and return the open line, which the caller shows from now on."""
        line = self.text.open
        self.text.close()
        return line

    def close(self, whole: str | None = None) -> list[str]:
        """End the output and return its last rows; `whole` is the file with all of it, if there is one already."""
        rows = self._place(self.text.close())
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
        self._file = open(new_path("output", ".txt"), "w", encoding="utf-8", errors="replace")  # noqa: SIM115 - until `close`
        self._file.write(self._seen.getvalue())

    def _hint(self, hidden: int, path: str | None) -> str:
        lines = counted(hidden, "more line") if hidden else "long lines are cut"
        text = f"{self._theme.symbol('more')} {lines}"
        if path:
            text += f", all in {self._theme.path(path)}"
        return self._theme.paint(text, "hint")


# -- tracebacks --------------------------------------------------------------------------------------------------

# IPython's and Python's frames; a style may come between the words.
_STYLE = r"(?:\x1b\[[0-9;:]*m)*"
_LINKED_FRAME = re.compile(rf'^({_STYLE}File {_STYLE}|\s*{_STYLE}File {_STYLE}")((?:/|~/)[^\x1b":]+)')
_HEADER = re.compile(r"^\S.* {2,}Traceback \(most recent call last\)$|^Traceback \(most recent call last\):$")
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


def with_linked_frame(line: str) -> str:
    """Make a traceback line that names a file a link to the file."""
    frame = _LINKED_FRAME.match(line)
    return frame[1] + file_link(frame[2]) + line[frame.end() :] if frame else line


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
    """Keep only the user's own frames of a traceback; the flag is set if any are left out. None for other texts."""
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
                lines.append(re.sub(r"^[\w.]+(?=:|$)", lambda name: theme.paint(name[0], "error"), error.tail[0]))
                lines += error.tail[1:]
    return "\n".join(lines), any(frame.library for error in errors for frame in error.frames)


def _parsed(lines: list[str]) -> tuple[list[str], list[_Error]]:
    """Split into the lines before the traceback, and its chain of errors."""
    before: list[str] = []
    errors: list[_Error] = []
    for line in lines:
        if re.fullmatch("-{20,}", line):
            continue  # we have drawn a rule above already
        if _HEADER.match(line):
            errors.append(_Error())
        elif not errors:
            before.append(line)
        elif (frame := _FRAME.match(line)) and not errors[-1].tail:
            path = frame["ipython"] or frame["python"] or ""
            library = next((match[1] for each in _LIBRARIES if (match := each.search(path))), "")
            errors[-1].frames.append(_Frame([line], library.removesuffix(".py")))
        elif errors[-1].frames and not errors[-1].tail and (not line or line.startswith((" ", "-", "[... "))):
            errors[-1].frames[-1].lines.append(line)  # source; the error itself begins at the margin, with a letter
        else:
            errors[-1].tail.append(line)
    return before, errors


def _frames(frames: list[_Frame], theme: Theme) -> list[str]:
    lines: list[str] = []
    for in_library, group in groupby(frames, lambda frame: bool(frame.library)):
        run = list(group)
        if in_library:
            names = list(dict.fromkeys(frame.library for frame in run))
            named = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
            lines.append(theme.paint(f"{theme.symbol('more')} {counted(len(run), 'frame')} in {named}", "hint"))
            continue
        for frame in run:
            lines.append(theme.paint(frame.lines[0], "builtin"))
            code = CodeLines("python", theme)
            for line in frame.lines[1:]:
                if source := _SOURCE.match(line):
                    place = theme.paint(source[1], "error" if ">" in source[1] else "hint")
                    line = place + code.preview(source[2])
                lines.append(line)
    return lines
