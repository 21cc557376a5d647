"""Reads the tables of what programs and functions do: in tables/, and in the folders of languages."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "tables"
_BUILTINS = frozenset(dir(builtins)) | {"get_ipython", "display", "share", "In", "Out", "quit", "exit", "_"}


def _rows(name: str) -> Iterator[tuple[str, str]]:
    """Split each line of a table at its last colon; indented lines say more about the row above them."""
    for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            left, colon, right = line.rpartition(": ") if not line.startswith("  like ") else (line, "", "")
            if not colon:
                left, right = (line if line.startswith((" ", "@")) else line.removesuffix(":")), ""
            yield left, right


# -- shell programs -------------------------------------------------------------------------------------------------


class EffectRule(NamedTuple):
    """One effect: `write`, or with its target, `write node_modules`."""

    kind: str
    what: str = ""


@dataclass
class ProgramRow:
    """A row of the table: a program's effects on its operands, and the effects of its options."""

    effects: tuple[EffectRule, ...]
    # Each option's value: nothing, `=` (a word), `=?` (the rest of the same word), `=*` (a word; operands follow).
    options: dict[str, str] = field(default_factory=dict)
    adds: dict[str, tuple[EffectRule, ...]] = field(default_factory=dict)  # what some options do
    verbs: dict[str, tuple[EffectRule, ...]] = field(default_factory=dict)
    prefixes: frozenset[str] = frozenset()
    like: re.Pattern[str] | None = None  # words that it may interpret as commands or files


@cache
def programs() -> dict[str, ProgramRow]:
    rows: dict[str, ProgramRow] = {}
    row = ProgramRow(())
    for left, right in _rows("programs.txt"):
        fields = left.split()
        match fields[0]:
            case _ if left.startswith("@"):
                continue
            case _ if not left.startswith(" "):
                row = ProgramRow(_rules(right))
                rows |= dict.fromkeys(fields, row)
            case "verb":
                row.verbs |= dict.fromkeys(fields[1:], _rules(right))
            case "like":
                row.like = re.compile(left.strip().removeprefix("like "))
            case "prefix":
                row.prefixes = frozenset(fields[1:])
            case _:
                options = {name: takes for word in fields for name, takes in _options(word).items()}
                row.options |= options
                if right:
                    row.adds |= dict.fromkeys(options, _rules(right))
    return rows


def _options(word: str) -> dict[str, str]:
    if word.startswith("-[") and word.endswith("]"):
        return {f"-{letter}": "" for letter in word[2:-1]}
    name, equals, more = word.partition("=")
    return {name: equals + more}


def _rules(text: str) -> tuple[EffectRule, ...]:
    return tuple(EffectRule(kind, " ".join(what)) for kind, *what in map(str.split, filter(None, text.split(", "))))


@cache
def listed(table: str, directive: str) -> frozenset[str]:
    """Return the words after a directive: `listed("python.txt", "@open")`."""
    lines = (left.split() for left, _ in _rows(table) if left.startswith(f"{directive} "))
    return frozenset(item for line in lines for item in line[1:])


# -- functions ------------------------------------------------------------------------------------------------------


class Does(NamedTuple):
    """One effect of a call, and the argument that says on what."""

    kind: str
    at: int = -1  # the position of the argument; -1: there is none
    name: str = ""  # the same argument's keyword, or `self` for the object itself
    default: str = ""  # what it happens to if that is not given


Calls = dict[str, tuple[Does, ...]]


@cache
def python_calls() -> Calls:
    """Return the effects by full name; a call inside a name is written `()`."""
    return {name: does for name, does in calls("python.txt").items() if not name.startswith(".")}


@cache
def python_methods() -> Calls:
    """Return the effects by a method's name alone, for objects of unknown type."""
    return {name[1:]: does for name, does in calls("python.txt").items() if name.startswith(".")}


@cache
def python_aliases() -> dict[str, str]:
    """Map common short names to what they stand for when nothing was imported."""
    return dict(word.split("=", 1) for word in listed("python.txt", "@alias"))


@cache
def is_known_module(name: str) -> bool:
    """Return whether this module may be imported. What its functions do is decided elsewhere."""
    root = name.partition(".")[0]
    if root in listed("python.txt", "@unsafe"):
        return False
    standard = root in sys.stdlib_module_names and not root.startswith("_")
    return standard or root in listed("python.txt", "@module") or root == "__future__"


@cache
def is_module(name: str) -> bool:
    """Return whether this is the full name of a module, and not of something in it."""
    return name not in python_calls() and (
        name in sys.stdlib_module_names or name in listed("python.txt", "@module") or is_open_module(name)
    )


@cache
def is_open_module(name: str) -> bool:
    """Return whether functions of this module are harmless unless a row lists them."""
    parts = name.split(".")
    above = {".".join(parts[:end]) + ".*" for end in range(1, len(parts) + 1)}
    return not above.union([name]).isdisjoint(listed("python.txt", "@open"))


# A function of this name is not harmless only because its module is.
_ACTING = re.compile(
    r"(read|write|save|load|dump|open|fetch|download|upload|run|exec|eval|system|connect|send|post|put|delete|remove|show|scan)"
    r"(?![a-z])|save|\w+_(write|save|download)(?![a-z])"
)


@cache
def is_harmless(name: str) -> bool:
    """Return whether the function with this full name does nothing that matters when it is called or passed on."""
    module, _, last = name.rpartition(".")
    if name in python_calls():
        return not python_calls()[name]
    if not module:
        return name in _BUILTINS
    if last.startswith("_"):
        return False
    if is_open_module(module):
        return not _ACTING.match(last) or module == "matplotlib.pyplot"
    if is_known_module(module) and (last.isupper() or last.endswith(("Error", "Exception", "Warning"))):
        return True
    return last in listed("python.txt", "@harmless") and (module.endswith("()") or is_harmless(module))


@cache
def calls(name: str) -> Calls:
    """Return all functions of a table."""
    rows: Calls = {}
    for left, right in _rows(name):
        if not left.startswith("@"):
            rows |= dict.fromkeys(left.split(), tuple(map(_does, filter(None, right.split(", ")))))
    return rows


def _does(text: str) -> Does:
    kind, *places = text.split()
    if places in ([], ["self"]):
        return Does(kind, -1, "".join(places))
    at, _, name = places[0].partition(":")
    return Does(kind, int(at), name, "".join(places[1:]))
