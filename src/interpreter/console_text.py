"""Text as a reader should see it: nothing in it is hidden, and a program's output has its final form."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_LINE_LENGTH = 1024 * 1024  # past this a line is settled in pieces, so that memory stays bounded
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_]|[()#][0-9A-Za-z])")
OPEN_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,4096}\x1b?|[()#])?\Z")
SPECIAL = re.compile(r"[\r\b\x1b]")
TOKEN = re.compile(r"\r+\n|[\r\n\b]|" + ESCAPE.pattern + r"|\x1b|[^\r\n\b\x1b]+")


# -- nothing hidden --------------------------------------------------------------------------------------------------

_SUSPECT = re.compile(r"[^\t\n -~]")
# Blank, or without a width: fillers, variation selectors, and others that Unicode counts as letters, marks and symbols.
# These patterns are compiled when they are first used.
_BLANK = (
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_SPACES = r"\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_SIGNS = r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2"  # Arabic and Syriac ones that are seen, before numbers
_PICTURES = r"\U0001f000-\U0001faff"  # also those that this Python does not know yet
_EMOJI = rf"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\u3030\u303d{_PICTURES}"
_JOINING = r"\u0600-\u109f\u1780-\u17b3\u17b6-\u18af\ua840-\uabff"  # scripts whose letters change when they are joined
_FLAGS = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
_IN_TEXT = (
    rf"[{_SPACES}{_SIGNS}{_PICTURES}]"
    rf"|(?<=[{_EMOJI}0-9#*])[\ufe0e\ufe0f]|(?<=\U0001f3f4)(?:{_FLAGS})\U000e007f"
    rf"|(?<=[{_EMOJI}])\u200d|(?<=[{_EMOJI}]\ufe0f)\u200d|(?<=[{_JOINING}])[\u200c\u200d]"
    r"|(?<=[\u3400-\u9fff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
PROSE = f"({_IN_TEXT})"  # what people write: other spaces, and joiners inside emoji and words
OUTPUT = rf"({_IN_TEXT}|[\ue000-\uf8ff\U000f0000-\U0010fffd])"  # what programs print: also icons of fonts


class _Shown(dict[int, str]):
    """Maps each character to its visible form, from its Unicode category on first use."""

    def __missing__(self, code: int) -> str:
        shown = f"<U+{code:04X}>"
        if chr(code).isprintable() and not re.match(_BLANK, chr(code)):
            shown = chr(code)
        elif code < 0xA0:
            shown = chr(0x2400 + code) if code < 32 else f"<{code:02x}>"
        self[code] = shown
        return shown


_SHOWN = _Shown({9: "\t", 10: "\n"})


def visible(text: str, kept: str = "") -> str:
    """Show hidden characters as codes: those that control a terminal, have no width or look like a space.

    This is for code, names and anything else that a user decides about. Elsewhere, `kept` is PROSE or OUTPUT.
    """
    if _SUSPECT.search(text) is None:
        return text
    pieces = re.split(kept, text) if kept else [text]
    return "".join(piece if number % 2 else piece.translate(_SHOWN) for number, piece in enumerate(pieces))


def visible_line(text: str, kept: str = "") -> str:
    """Return the text on one line, so that a name cannot look like our own lines."""
    return visible(text, kept).replace("\n", "␊")


# -- numbers and lists in sentences -----------------------------------------------------------------------------------


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 file`, `3 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_few(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first names, and say how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def short_count(count: int) -> str:
    """Abbreviate a large number as people write it: 850, 128k, 1.5M."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{round(count / 1000)}k" if count >= 1000 else str(count)


# -- a program's output ----------------------------------------------------------------------------------------------


class ConsoleText:
    """Takes raw output piece by piece and returns the text that a reader would see.

    Cost is linear in the output and memory is bounded by the limit, however the pieces are cut.
    """

    def __init__(self, limit: int) -> None:
        self._settled = HeadAndTail(limit)
        self._line = ""  # the line that may still be overwritten
        self._column = 0
        self._held = ""  # an escape sequence, or a carriage return, whose rest has not come yet

    def write(self, piece: str) -> None:
        text = self._held + piece
        self._held = ""
        if not SPECIAL.search(text):
            head, newline, last = text.rpartition("\n")
            if newline:
                first, newline2, rest = head.partition("\n")
                self._overwrite(first)
                self._settled.write(self._line + "\n" + (rest + "\n" if newline2 else ""))
                self._line, self._column = "", 0
            self._overwrite(last)
            return
        unfinished = OPEN_ESCAPE.search(text)
        if unfinished:
            text, self._held = text[: unfinished.start()], unfinished.group()
        trailing = len(text) - len(text.rstrip("\r"))
        if trailing and not self._held:
            text, self._held = text[:-trailing], "\r"
        for token in TOKEN.findall(text):
            match token:
                case _ if token.endswith("\n"):
                    self._settled.write(self._line + "\n")
                    self._line, self._column = "", 0
                case "\r":
                    self._column = 0
                case "\b":
                    self._column = max(0, self._column - 1)
                case "\x1b[K" | "\x1b[0K":
                    self._line = self._line[: self._column]
                case "\x1b[2K":
                    self._line = " " * self._column
                case _ if not token.startswith("\x1b"):
                    self._overwrite(token)

    def text(self, path: str | None = None) -> str:
        """Return the text so far. If parts are left out, a notice replaces them and names `path`, if given."""
        return self._settled.text(self._line, path)

    @property
    def cut(self) -> bool:
        return self._settled.total + len(self._line) > self._settled.limit

    def _overwrite(self, text: str) -> None:
        end = self._column + len(text)
        self._line = self._line[: self._column] + text + self._line[end:]
        self._column = end
        if len(self._line) > MAX_LINE_LENGTH:
            self._settled.write(self._line)
            self._line, self._column = "", 0


class HeadAndTail:
    """The first and the last part of a long text, joined by a notice."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._head = ""  # everything, as long as it fits; then its first part
        self._tail = ""
        self._head_size = limit // 3
        self._tail_size = limit - self._head_size

    def write(self, text: str) -> None:
        self.total += len(text)
        if self.total <= self.limit:
            self._head += text
            return
        if not self._tail:
            everything = self._head + text
            self._head, text = everything[: self._head_size], everything[self._head_size :]
        self._tail += text
        if len(self._tail) > 2 * self._tail_size:
            self._tail = self._tail[-self._tail_size :] if self._tail_size else ""

    def text(self, rest: str, path: str | None) -> str:
        """Return the whole text followed by `rest`, or its beginning and end."""
        total = self.total + len(rest)
        everything = self._head + self._tail + rest
        if total <= self.limit:
            return everything
        head = everything[: self._head_size]
        tail = everything[len(everything) - self._tail_size :]
        where = f"; the whole output is in {path}" if path else ""
        notice = f"[... {total - len(head) - len(tail):,} of {total:,} characters left out{where} ...]"
        return f"{head}\n{notice}\n{tail}"
