"""`!commands` and `%magics` in a Python block: taken out, and looked at by themselves."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(r"(?P<indent>\s*)(?P<target>[\w., \[\]'\"]+=\s*)?(?P<mark>!!?|%)(?P<rest>[^\n]*)")
# IPython takes these without a mark, too.
_BARE = re.compile(
    r"(?P<indent>)(?P<rest>(pip|conda|mamba|micromamba|uv|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|man)\s+[^=(\n][^\n]*)$"
)
_HELP = re.compile(r"\s*\??\??[\w.*%]+\?\??\s*$|\s*\?\??[\w.*%]+\s*$")


class Magic(NamedTuple):
    """A line, or a cell, that is no Python."""

    line: int
    name: str
    """Empty for a shell command; `writefile` and the like otherwise."""
    rest: str
    body: str = ""
    """What stands below a cell's magic."""


def taken_out(code: str) -> tuple[str, list[Magic]]:
    """The Python that is left, with the same lines, and the magics."""
    lines = code.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        return _cell(lines, first)
    found = []
    for at, line in enumerate(lines):
        match = _LINE.fullmatch(line) or _BARE.fullmatch(line)
        if match:
            name, rest = _named(match.groupdict().get("mark") or "%", match["rest"])
            found.append(Magic(at + 1, name, _continued(rest, lines, at)))
            lines[at] = f"{match['indent']}{match.groupdict().get('target') or ''}None"
        elif _HELP.fullmatch(line) and "?" in line:
            lines[at] = "None"
    return "\n".join(lines), found


def _cell(lines: list[str], first: int) -> tuple[str, list[Magic]]:
    name, _, rest = lines[first][2:].partition(" ")
    body = "\n".join(lines[first + 1 :])
    if name in ("time", "timeit", "capture", "prun"):
        inner, found = taken_out("\n" * (first + 1) + body)
        return inner, found
    return "", [Magic(first + 1, f"%{name}", rest.strip(), body)]


def _named(mark: str, rest: str) -> tuple[str, str]:
    if mark != "%":
        return "", rest
    name, _, rest = rest.strip().partition(" ")
    return name, rest.strip()


def _continued(rest: str, lines: list[str], at: int) -> str:
    """A command that goes on after a backslash."""
    while rest.endswith("\\") and at + 1 < len(lines):
        at += 1
        rest = f"{rest[:-1]} {lines[at]}"
        lines[at] = ""
    return rest
