"""Text with escape sequences: a program's output made safe to show, and text measured, clipped and wrapped."""

from __future__ import annotations

import re

from interpreter.console_text import OUTPUT, visible

RESET = "\x1b[0m"
LINE_LIMIT = 4000  # characters of one line that are kept for the screen
_HELD_LIMIT = 4096  # longer sequences aren't treated as escapes
_STYLES_KEPT = 8

SGR = re.compile(r"\x1b\[[0-9;:]{0,200}m")  # longer ones are no style that a program needs
# One part of a style: a colour with its own numbers, or a number.
_STYLE_PART = re.compile(r"0*[345]8(?:;0*5;\d*|;0*2;\d*;\d*;\d*|:[\d:]*)|[\d:]+")
# The first sixteen colours as xterm has them; how little others may differ from each other to look the same.
_BASIC = tuple(
    tuple(bytes.fromhex(each))
    for each in "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 "
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff".split()
)
_SAME_COLOR = 16
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


def _rgb(color: list[int]) -> tuple[int, ...]:
    """Return the colour behind `38;`: `5;N` of the palette, or `2;R;G;B`."""
    kind, *_, number = color
    if kind != 5:
        return tuple([0, 0, *color[1:]][-3:])
    if number < 16:
        return _BASIC[number]
    if number > 231:
        return (10 * number - 2312,) * 3
    return tuple(each and 40 * each + 55 for each in ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6))


class ProgramText:
    """Turns a program's output, cut anywhere, into lines: `feed` and `close` return finished ones, one more is `open`.

    Colours stay. Sequences that move the cursor are removed, except that a carriage return starts the line again.
    """

    def __init__(self, color: bool = True, limit: int | None = LINE_LIMIT) -> None:
        self._color = color
        self._limit = limit
        self._held = ""
        self._parts: list[str] = []
        self._length = 0
        self._styles: list[str] = []
        self._styled = False
        self._colors: dict[int, tuple[int, ...]] = {}  # of the text (3) and behind it (4)
        self._returned = False
        self._cut = False

    def feed(self, text: str) -> list[str]:
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
        return self._shown() if self._length else ""

    def close(self) -> list[str]:
        self._held = ""
        return [self._finish()] if self._length else []

    def _put(self, text: str) -> None:
        if text and _SPECIAL.search(text) is None:
            self._write(text)
            return
        for token in _TOKEN.finditer(text):
            match token[0]:
                case written if token["text"]:
                    self._write(written)
                case "\r" | "\x1b[2K" | "\x1b[G" | "\x1b[1G" | "\x1b[0G":
                    self._returned = True
                case "\b" if self._parts and not self._parts[-1].startswith("\x1b"):
                    self._parts[-1] = self._parts[-1][:-1]
                    self._length = max(0, self._length - 1)
                    if not self._parts[-1]:
                        self._parts.pop()
                case "\x1b[K" | "\x1b[0K" if self._returned:
                    self._restart()
                case escape if self._color and SGR.fullmatch(escape):
                    if self._returned:
                        self._restart()
                    is_reset = not escape[2:-1].lstrip("0")
                    if style := self._readable(escape[2:-1] or "0"):
                        self._styles = [] if is_reset else [*self._styles, style][-_STYLES_KEPT:]
                        self._parts.append(style)
                        self._styled = True

    def _readable(self, codes: str) -> str:
        """Drop what hides text from a style: `8`, and a colour that is also the one behind the text."""
        kept = []
        for part in _STYLE_PART.findall(codes):
            numbers = [int(each or 0) for each in re.split("[:;]", part)]
            number = numbers[0]
            if number != 8:
                kept.append(part)
            if number in (0, 39, 49):
                self._colors = {
                    ground: color for ground, color in self._colors.items() if number and ground != number // 10
                }
            elif number in (38, 48) and len(numbers) > 2:
                self._colors[number // 10] = _rgb(numbers[1:])
            elif number // 10 in (3, 4, 9, 10) and number % 10 < 8:
                self._colors[3 if number // 10 in (3, 9) else 4] = _BASIC[number % 10 + 8 * (number >= 90)]
        text, behind = self._colors.get(3), self._colors.get(4)
        if text and behind and all(abs(a - b) < _SAME_COLOR for a, b in zip(text, behind, strict=True)):
            kept += ["39", "49"]
            self._colors.clear()
        return f"\x1b[{';'.join(kept)}m" if kept else ""

    def _write(self, text: str) -> None:
        if self._returned:
            self._restart()
        if self._limit is not None and self._length + len(text) > self._limit:
            self._cut = True
            text = text[: self._limit - self._length]
        self._length += len(text)
        if self._parts and not self._parts[-1].startswith("\x1b"):  # a character may depend on the one before it
            text = self._parts.pop() + text
        self._parts.append(text)

    def _restart(self) -> None:
        self._parts = list(self._styles)
        self._length, self._cut, self._returned = 0, False, False

    def _finish(self) -> str:
        line = self._shown()
        self._restart()
        self._styled = bool(self._styles)
        return line

    def _shown(self) -> str:
        parts = [part if part.startswith("\x1b") else visible(part, OUTPUT) for part in self._parts]
        line = "".join(parts) + "…" * self._cut
        return line + RESET if self._styled else line


def program_text(text: str, color: bool) -> str:
    """Make a program's text safe to show, with its colours if it may have them."""
    program = ProgramText(color, limit=None)
    return "\n".join([*program.feed(text), program.open])


def without_styles(text: str) -> str:
    return _OURS.sub("", text)


def cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(without_styles(text).expandtabs(8))


def clip(text: str, width: int) -> str:
    """Clip a line to this many columns, keeping its styles."""
    text = text.expandtabs(8)
    if (len(text) <= width and text.isascii()) or cells(text) <= width:
        return text
    from rich.cells import get_character_cell_size

    kept: list[str] = []
    room = width
    for piece in _OURS.split(text):
        if piece.startswith("\x1b"):
            kept.append(piece)
            continue
        for char in piece:
            room -= get_character_cell_size(char)
            if room < 0:
                break
            kept.append(char)
    return "".join(kept)


def wrapped(text: str, width: int, hanging: int = 0) -> list[str]:
    """Wrap plain text into lines that fit. A continued line is indented like its beginning, plus `hanging`."""
    from textwrap import wrap

    rows: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + hanging)
        rows += wrap(line, max(width, 10), subsequent_indent=indent, break_on_hyphens=False) or [""]
    return rows
