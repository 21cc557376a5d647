"""A runtime's state between blocks: variables, values, completions, and earlier states."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interpreter.errors import UsageError

COMPLETE_TIMEOUT = 1.0  # seconds; the search runs in its own thread, and a later answer is not shown
LIST_TIMEOUT = 2.0
SAVE_TIMEOUT = 60.0  # a large state, on a busy machine
SHOW_TIMEOUT = 10.0  # a large figure takes a while to draw

Window = tuple[int, int]


@dataclass(frozen=True)
class Variable:
    """A live variable; `shape` is `3 × 4` or a length, `size` in bytes if it is cheap to compute."""

    name: str
    type: str
    preview: str = ""
    shape: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Completions:
    """Texts that could replace the code from `start` to the cursor, as (text, kind)."""

    start: int
    matches: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Text:
    type: str
    text: str


@dataclass(frozen=True)
class RichValue:
    """A value by its forms, as in a display: {MIME type: data}."""

    type: str
    data: dict[str, Any]


@dataclass(frozen=True)
class TableWindow:
    """A window of a table: `cells` column by column, out of `rows` and `columns` in total."""

    type: str
    rows: int
    columns: int
    index: Sequence[str] = ()
    header: Sequence[str] = ()
    numeric: Sequence[bool] = ()
    cells: Sequence[Sequence[str]] = field(default_factory=list)
    total: int = 0  # the rows without a filter


@dataclass(frozen=True)
class File:
    """A view of a table as the content of a file."""

    type: str
    rows: int
    data: bytes


@dataclass(frozen=True)
class TableQuery:
    """A view of a table; the table itself stays unchanged.

    `stats` is a column to summarise, or empty for all. `export` is `csv`, `tsv`, `parquet` or `xlsx`: the whole view as
    a file of that kind. With `histograms`, the answer is a table with the range of each column, and how many values are
    in each part of it.
    """

    sort: str = ""
    descending: bool = False
    filter: str = ""
    find: str = ""
    columns: tuple[str, ...] = ()
    stats: str | None = None
    export: str = ""
    histograms: bool = False


Value = Text | RichValue | TableWindow | File


def variables_from(answer: dict[str, Any]) -> list[Variable]:
    rows = answer.get("variables") or ()
    return [Variable(**{name: value for name, value in row.items() if value is not None}) for row in rows]


def completions_from(answer: dict[str, Any] | None, cursor: int) -> Completions:
    if answer is None or answer.get("start") is None:
        return Completions(cursor)
    return Completions(min(answer["start"], cursor), [(text, kind) for text, kind in answer.get("matches") or ()])


def value_from(answer: dict[str, Any]) -> Value:
    kind = answer.get("type") or ""
    match answer.get("kind"):
        case "table":
            index, header, numeric, cells = (answer.get(name) or [] for name in ("index", "header", "numeric", "cells"))
            if len({len(header), len(numeric), len(cells)}) > 1 or any(len(column) != len(index) for column in cells):
                raise UsageError("The session sent an incomplete table.")
            rows, columns = answer.get("rows") or 0, answer.get("columns") or 0
            return TableWindow(kind, rows, columns, index, header, numeric, cells, answer.get("total") or rows)
        case "file":
            try:
                return File(kind, answer.get("rows") or 0, base64.b64decode(answer.get("text") or ""))
            except ValueError:
                raise UsageError("The session sent an incomplete file.") from None
        case "picture":
            return RichValue(kind, answer.get("data") or {})
        case _:
            return Text(kind, answer.get("text") or "")


numbers = itertools.count(1)  # state numbers; two runtimes share one only where they split


@dataclass(frozen=True)
class StateContext:
    """The working directory and the exported variables in a state."""

    cwd: str  # shared by all languages
    exported: dict[str, str | None]
    own_env: dict[str, str | None]  # those that the runtime knew
    own_shared: dict[str, int]  # the numbers of the shared values that it knew


@dataclass(frozen=True)
class Mark:
    """A moment of all runtimes of a computer, to return to."""

    states: dict[str, int]  # by language
    cwd: str
    exported: dict[str, str | None]


@dataclass(frozen=True)
class Restored:
    """The result of restoring an earlier state: what could not be restored."""

    lost: list[str] = field(default_factory=list)  # threads, open sockets and pipes, variables that cannot move
    running: list[str] = field(default_factory=list)  # child processes that keep running without a parent

    def __str__(self) -> str:
        parts = {"Not restored": self.lost, "Still running independently": self.running}
        return " ".join(f"{title}: {listed(things)}." for title, things in parts.items() if things)


@dataclass(frozen=True)
class Saved:
    """The variables of a runtime as bytes, for a later run of the session."""

    data: bytes
    names: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # variables that could not be saved
    is_late: bool = False  # some were left out for lack of time


Saving = Callable[[], "Saved | None"]  # waits for the variables to be saved; None if that failed or took too long


def listed(things: list[str]) -> str:
    counted = {thing: things.count(thing) for thing in things}
    return ", ".join(thing if count == 1 else f"{thing} (and {count - 1} more)" for thing, count in counted.items())
