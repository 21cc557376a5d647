"""What a runtime says of its state between blocks: variables, values, completions, and states to return to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from interpreter.errors import UsageError

COMPLETING = 1.0  # seconds; the search runs in its own thread, and a later answer is not shown
LISTING = 2.0
SAVING = 60.0  # a large state, on a busy machine
SHOWING = 10.0  # a large figure takes a while to draw

Window = tuple[int, int]


@dataclass(frozen=True)
class Variable:
    """A live variable; `shape` is `3 × 4` or a length, `size` in bytes where it is cheap to say."""

    name: str
    type: str
    preview: str = ""
    shape: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Completions:
    """What could stand in the place of the code from `start` to the cursor: (text, kind)."""

    start: int
    matches: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Text:
    """A value as text."""

    type: str
    text: str


@dataclass(frozen=True)
class Picture:
    """A value by its forms, as a display has them: {MIME type: data}."""

    type: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A window of a table: `cells` column by column, of `rows` and `columns` in all."""

    type: str
    rows: int
    columns: int
    index: Sequence[str] = ()
    header: Sequence[str] = ()
    numeric: Sequence[bool] = ()
    cells: Sequence[Sequence[str]] = field(default_factory=list)


Value = Text | Picture | Table


def variables_from(answer: dict[str, Any]) -> list[Variable]:
    """The variables of a driver's answer."""
    rows = answer.get("variables") or ()
    return [Variable(**{name: value for name, value in row.items() if value is not None}) for row in rows]


def completions_from(answer: dict[str, Any] | None, cursor: int) -> Completions:
    if answer is None or answer.get("start") is None:
        return Completions(cursor)
    return Completions(min(answer["start"], cursor), [(text, kind) for text, kind in answer.get("matches") or ()])


def value_from(answer: dict[str, Any]) -> Value:
    """The value of a driver's answer."""
    kind = answer.get("type") or ""
    match answer.get("kind"):
        case "table":
            index, header, numeric, cells = (answer.get(name) or [] for name in ("index", "header", "numeric", "cells"))
            if len({len(header), len(numeric), len(cells)}) > 1 or any(len(column) != len(index) for column in cells):
                raise UsageError("The session sent a table that is not whole.")
            return Table(kind, answer.get("rows") or 0, answer.get("columns") or 0, index, header, numeric, cells)
        case "picture":
            return Picture(kind, answer.get("data") or {})
        case _:
            return Text(kind, answer.get("text") or "")


numbers = itertools.count(1)  # of states; two runtimes share one only where they split


@dataclass(frozen=True)
class Place:
    """The working directory and the exported variables in a state."""

    cwd: str  # shared by all languages
    exported: dict[str, str | None]
    own_env: dict[str, str | None]  # what the runtime knew of them


@dataclass(frozen=True)
class Mark:
    """A moment of all runtimes of a computer, to return to."""

    states: dict[str, int]  # by language
    cwd: str
    exported: dict[str, str | None]


@dataclass(frozen=True)
class Restored:
    """A return to an earlier state: what it could not bring back."""

    lost: list[str] = field(default_factory=list)  # threads, open sockets and pipes, variables that cannot move
    running: list[str] = field(default_factory=list)  # child processes that keep running without a parent

    def __str__(self) -> str:
        said = []
        if self.lost:
            said.append(f"Not brought back: {listed(self.lost)}.")
        if self.running:
            said.append(f"Still running, on its own: {listed(self.running)}.")
        return " ".join(said)


def listed(things: list[str]) -> str:
    """Each once, with its count."""
    counted = {thing: things.count(thing) for thing in things}
    return ", ".join(thing if count == 1 else f"{thing} (and {count - 1} more)" for thing, count in counted.items())
