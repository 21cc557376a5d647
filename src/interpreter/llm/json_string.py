"""The inside of a JSON string, decoded as far as it has arrived."""

from __future__ import annotations

import re
from typing import NamedTuple

_STOPS = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_HEX_BEGUN = re.compile(r"[0-9a-fA-F]{0,3}\Z")
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_LOW_BEGUN = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z")
_BEHIND_QUOTE = re.compile(r"\s*(.?)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_BROKEN = "\ufffd"


class Scanned(NamedTuple):
    """What was decoded, where the rest begins, and whether the string has ended."""

    text: str
    at: int
    ended: bool


def scan(text: str, at: int, quote: str = '"', lenient: bool = False) -> Scanned:
    """Decode from `at` up to the closing quote, or to where the meaning depends on what comes next.

    Raw newlines and unknown escapes are taken as they are. With `lenient` a quote that no comma or brace
    follows is taken as one that the model forgot to escape.
    """
    decoded: list[str] = []
    while found := _STOPS[quote].search(text, at):
        here = found.start()
        decoded.append(text[at:here])
        if text[here] == quote:
            ends = _is_end(text, here) if lenient else True
            if ends is not False:
                return Scanned("".join(decoded), here + 1 if ends else here, bool(ends))
            character, at = quote, here + 1
        else:
            character, at = _escape(text, here)
            if not character:
                return Scanned("".join(decoded), here, False)
        decoded.append(character)
    decoded.append(text[at:])
    return Scanned("".join(decoded), len(text), False)


def _is_end(text: str, quote: int) -> bool | None:
    """Whether the string ends with this quote; None if that is not known yet."""
    behind = _BEHIND_QUOTE.match(text, quote + 1)
    if behind is None or not behind[1]:
        return None
    return behind[1] in ",}"


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character that the escape here stands for, and where it ends; "" if it is not whole yet."""
    kind = text[at + 1 : at + 2]
    if kind != "u":
        return (_ESCAPES.get(kind, "\\" + kind), at + 2) if kind else ("", at)
    unit = _HEX.match(text, at + 2)
    if unit is None:
        return ("", at) if _HEX_BEGUN.match(text, at + 2) else ("\\u", at + 2)
    code = int(unit.group(), 16)
    if not 0xD800 <= code < 0xE000:
        return chr(code), at + 6
    if code >= 0xDC00:
        return _BROKEN, at + 6
    low = _LOW.match(text, at + 6)
    if low:
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), at + 12
    return ("", at) if _LOW_BEGUN.match(text, at + 6) else (_BROKEN, at + 6)
