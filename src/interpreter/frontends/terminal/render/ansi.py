"""What programs print, made safe to show: colours stay, what moves the cursor goes."""

from __future__ import annotations

import re

from interpreter.frontends.terminal.render.theme import RESET

LINE_LIMIT = 4000  # characters of one line that are kept for the screen
_HELD_LIMIT = 4096  # an escape that is longer than this is no escape
_STYLES_KEPT = 8

SGR = re.compile(r"\x1b\[[0-9;:]*m")
_OURS = re.compile(r"(\x1b\[[0-9;:]*m|\x1b\]8;[^\x1b]*\x1b\\)")  # colours, and links, which only we make
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_SPECIAL = re.compile(_CONTROL)
_ESCAPE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system commands: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # device control and other strings
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # two-character escapes
)
_TOKEN = re.compile(rf"(?P<escape>{_ESCAPE})|(?P<control>{_CONTROL})|(?P<text>(?:(?!{_CONTROL}).)+)", re.DOTALL)
_UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)|\r)\Z")


class ProgramText:
    """Turns a program's output, cut anywhere, into finished lines and one open line."""

    def __init__(self, color: bool = True, limit: int | None = LINE_LIMIT) -> None:
        self._color = color
        self._limit = limit
        self._held = ""
        self._parts: list[str] = []
        self._length = 0
        self._styles: list[str] = []
        self._styled = False
        self._returned = False
        self._cut = False

    def feed(self, text: str) -> list[str]:
        """The lines that are finished now."""
        text = (self._held + text).replace("\r\n", "\n")
        self._held = ""
        if (tail := _UNFINISHED.search(text)) and len(tail[0]) < _HELD_LIMIT:
            text, self._held = text[: tail.start()], tail[0]
        first, *others = text.split("\n")
        self._put(first)
        finished = []
        for line in others:
            finished.append(self._finish())
            self._put(line)
        return finished

    @property
    def open(self) -> str:
        """The line that is still being written, as far as it has come."""
        return self._shown() if self._parts and not self._blank() else ""

    def close(self) -> list[str]:
        """The rest: the open line, if anything is on it."""
        self._held = ""
        return [self._finish()] if self._parts and not self._blank() else []

    def _blank(self) -> bool:
        return self._length == 0

    def _put(self, text: str) -> None:
        if not text:
            return
        if _SPECIAL.search(text) is None:
            self._write(text)
            return
        for token in _TOKEN.finditer(text):
            if token["text"]:
                self._write(token["text"])
            elif token["escape"]:
                self._obey(token["escape"])
            else:
                self._control(token["control"])

    def _write(self, text: str) -> None:
        if self._returned:
            self._restart()
        if self._limit is not None and self._length + len(text) > self._limit:
            self._cut = True
            text = text[: self._limit - self._length]
        self._parts.append(text)
        self._length += len(text)

    def _control(self, char: str) -> None:
        if char == "\r":
            self._returned = True
        elif char == "\b" and self._parts and not self._parts[-1].startswith("\x1b"):
            self._parts[-1] = self._parts[-1][:-1]
            self._length = max(0, self._length - 1)
            if not self._parts[-1]:
                self._parts.pop()

    def _obey(self, escape: str) -> None:
        if SGR.fullmatch(escape):
            self._style(escape)
        elif escape in ("\x1b[2K", "\x1b[G", "\x1b[1G", "\x1b[0G"):
            self._returned = True
        elif escape in ("\x1b[K", "\x1b[0K") and self._returned:
            self._restart()

    def _style(self, escape: str) -> None:
        if not self._color:
            return
        if self._returned:
            self._restart()
        codes = escape[2:-1].lstrip("0")
        self._styles = [] if not codes else [*self._styles, escape][-_STYLES_KEPT:]
        self._parts.append(escape)
        self._styled = True

    def _restart(self) -> None:
        """Begin the line again, as after a carriage return."""
        self._parts = list(self._styles)
        self._length, self._cut = 0, False
        self._returned = False

    def _finish(self) -> str:
        line = self._shown()
        self._parts = list(self._styles)
        self._length, self._cut = 0, False
        self._styled = bool(self._styles)
        self._returned = False
        return line

    def _shown(self) -> str:
        line = "".join(self._parts)
        if self._cut:
            line += "…"
        return line + RESET if self._styled else line


_INVISIBLE = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)}
_INVISIBLE |= {code: f"<{code:02x}>" for code in range(0x7F, 0xA0)}
_INVISIBLE |= {code: f"<U+{code:04X}>" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def visible(text: str) -> str:
    """A model's text with control and direction-changing characters made visible: nothing hides in it."""
    return text.translate(_INVISIBLE)


def without_styles(text: str) -> str:
    """The text without colours and links."""
    return _OURS.sub("", text)


def cells(text: str) -> int:
    """Columns that a line takes on the screen."""
    from rich.cells import cell_len

    return cell_len(without_styles(text).expandtabs(8))


def clip(text: str, width: int) -> str:
    """The beginning of a line that fits into so many columns; styles are kept."""
    text = text.expandtabs(8)
    if (len(text) <= width and text.isascii()) or cells(text) <= width:
        return text
    kept, room = [], width
    for piece in _OURS.split(text):
        if piece.startswith("\x1b"):
            kept.append(piece)
        elif room > 0:
            cut = _fitting(piece, room)
            kept.append(cut)
            room = room - cells(cut) if cut == piece else 0
    return "".join(kept)


def _fitting(text: str, width: int) -> str:
    from rich.cells import get_character_cell_size

    used = 0
    for index, char in enumerate(text):
        used += get_character_cell_size(char)
        if used > width:
            return text[:index]
    return text
