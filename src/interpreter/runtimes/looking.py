"""What a language tells between blocks: its live variables, one value page by page, what could be typed next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

COMPLETING = 1.0  # seconds; it is sought in a thread of its own, and whoever has typed on by then does not see it
LISTING = 2.0
SAVING = 60.0  # a state with much in it, on a busy machine
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
    return [Variable(**row) for row in answer.get("variables", ())]


def completions_from(answer: dict[str, Any] | None, cursor: int) -> Completions:
    if answer is None or "start" not in answer:
        return Completions(cursor)
    return Completions(answer["start"], [(text, kind) for text, kind in answer["matches"]])


def value_from(answer: dict[str, Any]) -> Value:
    """The value of a driver's answer."""
    kind = answer.get("type", "")
    match answer["kind"]:
        case "table":
            parts = {name: answer[name] for name in ("rows", "columns", "index", "header", "numeric", "cells")}
            return Table(kind, **parts)
        case "picture":
            return Picture(kind, answer["data"])
        case _:
            return Text(kind, answer["text"])
