"""What is in a block, by the language that a scanner knows; every line keeps its number."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from interpreter.runtimes import (
    BUILT_IN,
    Registry,
    resolve,
)

# Cell magics whose body is Python all the same.
_STILL_PYTHON = frozenset({"time", "timeit", "capture", "prun"})
_CELL = re.compile(r"\s*%%(!|\w+)")
_COMMAND = re.compile(r"(?P<indent>[ \t]*)(?:[\w.,\[\] ]+=[ \t]*)?(?P<sign>!{1,2}|%sx[ ]|%)(?P<rest>.*)")
_HELP = re.compile(r"[ \t]*\?{1,2}[\w.*]+[ \t]*|[ \t]*[\w.*]+\?{1,2}[ \t]*")


class Part(NamedTuple):
    """Code of one kind: the name of a language, or "" if no scanner knows it."""

    kind: str
    code: str


def parts_of(language: str, code: str, registry: Registry = BUILT_IN) -> list[Part]:
    """The parts of a block that are to be scanned; none if it is empty."""
    split = registry.describe(language).scan_parts
    parts = resolve(split)(code, registry) if split else [Part(_kind(language, registry), code)]
    return [part for part in parts if part.code.strip()]


def _kind(language: str, registry: Registry) -> str:
    found = registry.describe(language)
    return found.name.lower() if found.scanners else ""


def python_parts(code: str, registry: Registry) -> list[Part]:
    """Python, and the shell commands in it, each with empty lines in the place of the other."""
    cell = _CELL.match(code)
    if cell is not None and cell[1] not in _STILL_PYTHON:
        first, _, body = code[cell.start(1) :].partition("\n")
        above = code.count("\n", 0, cell.start(1)) + 1
        kind = _kind("shell" if cell[1] == "!" else cell[1], registry)
        return [Part(kind, "\n" * above + body if kind else first + body)]
    if _is_python(code):
        return [Part("python", code)]
    python, shell = _told_apart(code.split("\n"))
    if all(line.strip() in ("", "pass") for line in python):
        python = []
    return [Part("python", "\n".join(python)), Part("shell", "\n".join(shell))]


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _told_apart(lines: list[str]) -> tuple[list[str], list[str]]:
    python, shell = [], []
    continued = ""  # the sign of a command that goes on in this line
    for line in lines:
        found = None if continued else _COMMAND.fullmatch(line)
        sign = continued or (found["sign"] if found else "")
        rest = found["rest"] if found else line
        is_command = sign.startswith("!") or sign == "%sx " or (sign == "%" and rest.startswith("sx "))
        shell.append(rest if is_command else "")
        if sign:
            python.append(f"{found['indent']}pass" if found else "")
        else:
            python.append("" if _HELP.fullmatch(line) else line)
        continued = sign if sign and line.endswith("\\") else ""
    return python, shell
