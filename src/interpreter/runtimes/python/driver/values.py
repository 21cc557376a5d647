"""One value for somebody to look at: a page of a table, a picture, or text."""

from __future__ import annotations

import ast
import builtins
from itertools import islice
from types import FunctionType, ModuleType

from . import displays
from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

    Page = Dict[str, Any]

MOST_ROWS, MOST_COLUMNS = 500, 60
LONGEST_CELL = 200
LONGEST_TEXT = 200_000
MOST_ELEMENTS = 2000
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


class NotAName(Exception):
    """What was asked for is no name, attribute or element."""


def found(namespace: Dict[str, Any], path: str) -> Any:
    """The value of `a`, `a.b` or `a["b"][0]`; nothing is called, and nothing else is evaluated."""
    try:
        tree = ast.parse(path.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise NotAName(path) from None
    return value_of(tree, namespace)


def value_of(node: Any, namespace: Dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        if node.id in namespace:
            return namespace[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise NameError("name %r is not defined" % node.id)
    if isinstance(node, ast.Attribute):
        return getattr(value_of(node.value, namespace), node.attr)
    if isinstance(node, ast.Subscript):
        key = node.slice
        if key.__class__.__name__ == "Index":
            key = key.value  # type: ignore[attr-defined]  # Python 3.8
        try:
            return value_of(node.value, namespace)[ast.literal_eval(key)]
        except ValueError:
            pass
    raise NotAName


def page_of(value: Any, rows: Sequence[int], columns: Sequence[int], png: Callable[[Any], Optional[bytes]]) -> Page:
    """What is shown of a value; of a table, these rows and columns."""
    shown = table(value)
    if shown is not None:
        return shown.page(within(rows, MOST_ROWS), within(columns, MOST_COLUMNS))
    if not isinstance(value, (str, bytes, type)):
        pictures = displays.bundle_of(value, png) if may_be_picture(value) else {}
        if any(mime in pictures for mime in PICTURES):
            return {"kind": "picture", "data": pictures}
    return {"kind": "text", "text": cut(text_of(value))}


def may_be_picture(value: Any) -> bool:
    methods = ("_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_mimebundle_")
    return displays.is_figure(value) or any(hasattr(type(value), method) for method in methods)


def within(asked: Sequence[int], most: int) -> Tuple[int, int]:
    start = max(0, int(asked[0]))
    return start, min(int(asked[1]), start + most)


# -- tables ------------------------------------------------------------------------------------------------------


class Table:
    """Something with rows and columns; `part` gives the labels and the columns' cells of a window of it."""

    def __init__(self, rows: int, columns: int, part: Callable[..., Tuple[List[Any], List[Any], List[List[Any]]]]):
        self._rows, self._columns, self._part = rows, columns, part

    def page(self, rows: Tuple[int, int], columns: Tuple[int, int]) -> Page:
        index, header, cells = self._part(rows[0], min(rows[1], self._rows), columns[0], min(columns[1], self._columns))
        return {
            "kind": "table",
            "rows": self._rows,
            "columns": self._columns,
            "index": [cell(label) for label in index],
            "header": [cell(name) for name in header],
            "numeric": [all(is_number(value) for value in column) for column in cells],
            "cells": [[cell(value) for value in column] for column in cells],
        }


def table(value: Any) -> Optional[Table]:
    """The value as a table, if it is one; a library is recognised by name, and never imported to find out."""
    root, name = type(value).__module__.partition(".")[0], type(value).__name__
    if (root, name) == ("pandas", "DataFrame"):
        return Table(len(value), len(value.columns), lambda *window: pandas_part(value, *window))
    if (root, name) == ("pandas", "Series"):
        return table(value.to_frame())
    if (root, name) == ("polars", "DataFrame"):
        return Table(value.height, value.width, lambda *window: polars_part(value, *window))
    if root == "numpy" and name in ("ndarray", "matrix") and value.ndim in (1, 2) and value.size > 1:
        grid = value.reshape(-1, 1) if value.ndim == 1 else value
        return Table(grid.shape[0], grid.shape[1], lambda *window: numpy_part(grid, *window))
    if isinstance(value, list) and len(value) > 1 and all(isinstance(row, dict) and row for row in value[:50]):
        return records(value)
    return None


def pandas_part(frame: Any, top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
    part = frame.iloc[top:bottom, left:right]
    cells = [part.iloc[:, column].tolist() for column in range(part.shape[1])]
    return list(part.index), list(part.columns), cells


def polars_part(frame: Any, top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
    names = frame.columns[left:right]
    part = frame.slice(top, max(0, bottom - top)).select(names)
    return list(range(top, bottom)), names, [part[name].to_list() for name in names]


def numpy_part(grid: Any, top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
    part = grid[top:bottom, left:right]
    return list(range(top, bottom)), list(range(left, right)), part.T.tolist()


def records(value: List[Any]) -> Table:
    names: Dict[str, None] = {}
    for row in value[:200]:
        names.update(dict.fromkeys(row))

    def part(top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
        header = list(names)[left:right]
        rows = [row if isinstance(row, dict) else {} for row in value[top:bottom]]
        return list(range(top, bottom)), header, [[row.get(name, "") for row in rows] for name in header]

    return Table(len(value), len(names), part)


def is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, complex)) and not isinstance(value, bool))


def cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return "%.6g" % value
    text = value if isinstance(value, str) else displays.plain(value) if isinstance(value, (list, dict)) else str(value)
    line = " ".join(text[: LONGEST_CELL * 2].split())
    return line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 3] + "..."


# -- text --------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (FunctionType, type, ModuleType)):
        return source_of(value)
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return elements_of(value)
    return displays.plain(value)


def source_of(value: Any) -> str:
    inspect = trusted_import("inspect")
    try:
        return str(inspect.getsource(value))
    except (OSError, TypeError):
        about = inspect.getdoc(value) or ""
        return "%s\n\n%s" % (displays.plain(value), about) if about else displays.plain(value)


def elements_of(value: Any) -> str:
    """Pretty-printed; of very many elements only the first."""
    pretty = trusted_import("pprint").pformat
    if len(value) <= MOST_ELEMENTS:
        return str(pretty(value, width=100, compact=True))
    few = list(islice(value.items() if isinstance(value, dict) else value, MOST_ELEMENTS))
    shown = pretty(dict(few) if isinstance(value, dict) else few, width=100, compact=True)
    return "%s\n... and %d more" % (shown, len(value) - MOST_ELEMENTS)


def cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return "%s\n... and %d characters more" % (text[:LONGEST_TEXT], len(text) - LONGEST_TEXT)
