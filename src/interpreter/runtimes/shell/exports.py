"""What a shell says of its place and its exported variables."""

from __future__ import annotations

import os
import re

# These say how a shell was reached, not what its user wants others to see.
OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "LOGNAME"})

DECLARATION = re.compile(
    rb"""^declare[ ]-(\S+)[ ](\w+)=(?: "((?:[^"\\]|\\.)*)" | \$'((?:[^'\\]|\\.)*)' )$""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
SIMPLE = dict(zip(b"abeEfnrtv", b"\a\b\x1b\x1b\f\n\r\t\v", strict=True))


class Exports:
    """The exported variables as they were last seen, and what changed since."""

    def __init__(self, env: dict[str, str]) -> None:
        self._known = {name: value for name, value in env.items() if name not in OWN}
        self._told: dict[str, str | None] = {}
        self._listing = b""

    def news(self, report: bytes, told: dict[str, str | None]) -> tuple[str, dict[str, str | None]]:
        """The working directory, and the variables that changed (None: unset) from what they were told to be."""
        place, _, listing = report.partition(b"\0")
        cwd = os.fsdecode(place.removesuffix(b"\n"))
        if (listing, told) == (self._listing, self._told):
            return cwd, {}
        now = {name: value for name, value in exported(listing).items() if name not in OWN}
        before = {name: value for name, value in {**self._known, **told}.items() if value is not None}
        changed: dict[str, str | None] = {name: None for name in before if name not in now}
        changed |= {name: value for name, value in now.items() if before.get(name) != value}
        self._listing, self._known, self._told = listing, now, {**told, **changed}
        return cwd, changed


def exported(listing: bytes) -> dict[str, str]:
    """The exported variables of a listing: bash's `declare -p`, or NAME=VALUE with a NUL after each."""
    if b"\0" in listing:
        # an interrupt may make zsh print something twice, a NUL too
        pairs = [pair.split(b"=", 1) for pair in listing.split(b"\0") if b"=" in pair]
    else:
        pairs = [[name, unquoted(double, ansi)] for name, double, ansi in declarations(listing)]
    return {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}


def declarations(listing: bytes) -> list[tuple[bytes, bytes | None, bytes | None]]:
    """Name and quoted value of each exported variable, arrays excepted: no other program ever gets those."""
    found = (match.groups() for match in DECLARATION.finditer(listing))
    return [(name, double, ansi) for flags, name, double, ansi in found if b"x" in flags]


def unquoted(double: bytes | None, ansi: bytes | None) -> bytes:
    if double is not None:
        return re.sub(rb'\\([\\"$`])|\\\n', lambda match: match[1] or b"", double)
    return re.sub(rb"(?s)\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", escaped, ansi or b"")


def escaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if octal or hexadecimal:
        return bytes([int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)])
    return bytes([SIMPLE.get(other[0], other[0])])
