"""What a shell says of its place and its exported variables, read from its own notation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

# These say how a shell was reached, not what its user wants others to see.
OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "LOGNAME"})

KEYWORDS = ("declare", "export", "typeset")
SIMPLE = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
ESCAPE = re.compile(r"\\((?:M-|C-|\\[MC]-)+)?(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
PIECE = re.compile(
    r"""\$'((?:[^'\\]|\\.)*)' | '([^']*)' | "((?:[^"\\]|\\.)*)" | \\(.) | ([^\s'"\\$]+) | (\$)""",
    re.DOTALL | re.VERBOSE,
)


class Exports:
    """The exported variables as they were last seen, and what changed since."""

    def __init__(self, env: dict[str, str]) -> None:
        self._known = {name: value for name, value in env.items() if name not in OWN}
        self._report = b""

    def news(self, report: bytes) -> tuple[str, dict[str, str | None]]:
        """The working directory, and the variables that changed (None: unset) since the last report."""
        place, _, listing = report.partition(b"\0")
        cwd = os.fsdecode(place.removesuffix(b"\n"))
        if listing == self._report:
            return cwd, {}
        self._report = listing
        now = {name: value for name, value in exported(listing).items() if name not in OWN}
        changed: dict[str, str | None] = {name: None for name in self._known if name not in now}
        changed |= {name: value for name, value in now.items() if self._known.get(name) != value}
        self._known = now
        return cwd, changed


def exported(listing: bytes) -> dict[str, str]:
    """The exported ones of the variables that `declare -p` (bash) or `typeset -p` (zsh) lists."""
    found: dict[str, str] = {}
    words = shell_words(listing.decode("latin-1"))
    flags = tied = ""
    for word, plain in words:
        name, given, value = word.partition("=")
        if plain and word in KEYWORDS:
            flags, tied = "x" if word == "export" else "", ""
        elif plain and word.startswith("-"):
            flags += word
        elif "x" not in flags or "a" in flags or "A" in flags:
            continue  # no array of bash's ever reaches another program
        elif value == "(" and plain:  # zsh shows PATH as `-T PATH path=( one two )`
            found[tied] = environ_text(":".join(until_closed(words)))
        elif given:
            found[name] = environ_text(value)
        else:
            tied = name
    return found


def until_closed(words: Iterator[tuple[str, bool]]) -> Iterator[str]:
    for word, plain in words:
        if plain and word == ")":
            return
        yield word


def shell_words(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a listing without their quotes, and whether a word had none."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        pieces: list[str] = []
        plain = True
        while piece := PIECE.match(text, at):
            at = piece.end()
            bare = piece[5] or piece[6]
            plain = plain and bare is not None
            pieces.append(bare if bare is not None else unquoted(piece))
        yield "".join(pieces), plain


def unquoted(piece: re.Match[str]) -> str:
    if piece[1] is not None:
        return ESCAPE.sub(escaped, piece[1])
    if piece[2] is not None:
        return piece[2]
    if piece[3] is not None:
        return re.sub(r'\\([\\"$`])|\\\n', lambda match: match[1] or "", piece[3])
    return piece[4]


def escaped(match: re.Match[str]) -> str:
    modifiers, hexadecimal, octal, code, other = match.groups()
    if code:
        return chr(int(code, 16)).encode().decode("latin-1")
    if hexadecimal or octal:
        character = chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF)
    else:
        character = other if modifiers else SIMPLE.get(other, other)
    if modifiers and "C" in modifiers:  # zsh's \C-a and \M-a
        character = "\x7f" if character == "?" else chr(ord(character) & 0x1F)
    if modifiers and "M" in modifiers:
        character = chr(ord(character) | 0x80)
    return character


def environ_text(text: str) -> str:
    """The text as Python's own os.environ has it."""
    return os.fsdecode(text.encode("latin-1"))
