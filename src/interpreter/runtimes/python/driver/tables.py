"""Views of tables in the runtime: sorted, filtered, searched, summarised, exported. No value is ever changed.

A filter is evaluated here, node by node: it knows columns, constants and comparisons, and calls nothing.
"""

from __future__ import annotations

import ast
import io
import operator
import re
import sys
from binascii import b2a_base64
from functools import reduce

from . import displays
from .hints import Any, Callable, Frame, Sequence
from .imports import trusted_import

MAX_ROWS, MAX_COLUMNS = 500, 60
MAX_EXPORT_BYTES = 40_000_000  # bytes
BINS, SAMPLE = 16, 5_000
TOP = 5  # frequent values
MAX_CELL_LENGTH = 200
MIDNIGHT = " 00:00:00"
MISSING = ("NAType", "NaTType")
QUOTED = re.compile("`([^`]+)`")
OPERATORS: Any = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Mod: operator.mod, ast.And: operator.and_, ast.Or: operator.or_,
    ast.Not: operator.invert, ast.USub: operator.neg,
}  # fmt: skip
FILTERS = 'region == "EU" and total > 100, `unit price` < 5, region in ["EU", "US"], "ann" in name, date is None'


class ViewError(ValueError):
    """Something that can't be shown like this, or a view that a table can't have; the text says why."""


class Values(list):  # type: ignore[type-arg]
    """A column as a list, with the operators of a pandas column; values that cannot be compared are not equal."""

    def _each(self, function: Callable[..., Any], other: Any = None) -> Values:
        def one(value: Any, another: Any) -> Any:
            try:
                return not is_missing(value) and not is_missing(another) and function(value, another)
            except TypeError:
                return False

        return Values(map(one, self, other if isinstance(other, Values) else [other] * len(self)))

    def __invert__(self) -> Values:
        return Values(not value for value in self)

    def __neg__(self) -> Values:
        return Values(None if is_missing(value) else -value for value in self)


def forward(name: str) -> Any:
    return lambda self, other: self._each(getattr(operator, name), other)


def backward(name: str) -> Any:
    return lambda self, other: self._each(lambda value, another: getattr(operator, name)(another, value), other)


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "add", "sub", "mul", "truediv", "mod"):
    setattr(Values, "__%s__" % _name.strip("_"), forward(_name))
    setattr(Values, "__r%s__" % _name.strip("_"), backward(_name))


class Grid:
    """A table of any kind: its columns by number, its cells by row number.

    `source` returns the value of a cell; in a subclass it is a library's table.
    """

    def __init__(self, height: int, names: Sequence[Any], source: Any) -> None:
        self.height, self.names, self._source = height, list(names), source

    def cells(self, rows: Sequence[int], at: int) -> list[Any]:
        return [self._source(row, at) for row in rows]

    def labels(self, rows: Sequence[int]) -> list[Any]:
        return list(rows)

    def column(self, at: int) -> Any:
        """Return a column that supports operators."""
        return Values(self.cells(range(self.height), at))

    def marked(self, tests: list[bool]) -> Any:
        """Return these test results as a column of this kind."""
        return Values(tests)

    def missing(self, column: Any) -> Any:
        return Values(is_missing(value) for value in column)

    def where(self, mask: Any) -> Sequence[int]:
        return [row for row, holds in enumerate(mask) if holds]

    def sorted(self, rows: Sequence[int], at: int, descending: bool) -> Sequence[int]:
        """Sort the rows by a column; missing values come last."""
        pairs = list(zip(rows, self.cells(rows, at)))
        filled = [pair for pair in pairs if not is_missing(pair[1])]
        try:
            filled.sort(key=lambda pair: pair[1], reverse=descending)
        except TypeError:
            filled.sort(key=lambda pair: str(pair[1]), reverse=descending)
        return [row for row, _ in filled] + [row for row, value in pairs if is_missing(value)]

    def frame(self, rows: Sequence[int], columns: Sequence[int]) -> Any:
        try:
            pandas = trusted_import("pandas")
        except ImportError:
            raise ViewError(
                "writing such files needs pandas, which this session's Python doesn't have. Use .csv"
            ) from None
        return pandas.DataFrame({str(self.names[at]): self.cells(rows, at) for at in columns})

    def write_parquet(self, rows: Sequence[int], columns: Sequence[int], buffer: io.BytesIO) -> None:
        frame = self.frame(rows, columns)
        frame.columns = [str(name) for name in frame.columns]
        frame.to_parquet(buffer, index=False)

    def text(self, rows: Sequence[int], columns: Sequence[int], delimiter: str) -> str:
        buffer = io.StringIO()
        write = trusted_import("csv").writer(buffer, delimiter=delimiter, lineterminator="\n").writerow
        write([self.names[at] for at in columns])
        for row in zip(*(self.cells(rows, at) for at in columns)):
            write(["" if is_missing(value) else value for value in row])
        return buffer.getvalue()


class PandasGrid(Grid):
    def cells(self, rows: Sequence[int], at: int) -> list[Any]:
        return list(self._source.iloc[:, at].iloc[rows].tolist())

    def labels(self, rows: Sequence[int]) -> list[Any]:
        return list(self._source.index[rows])

    def column(self, at: int) -> Any:
        return self._source.iloc[:, at].reset_index(drop=True)

    def marked(self, tests: list[bool]) -> Any:
        return sys.modules["pandas"].Series(tests, dtype=bool)

    def missing(self, column: Any) -> Any:
        return column.isna()

    def where(self, mask: Any) -> Sequence[int]:
        return mask.index[mask.fillna(False).astype(bool)]  # type: ignore[no-any-return]

    def sorted(self, rows: Sequence[int], at: int, descending: bool) -> Sequence[int]:
        column, options = self.column(at).iloc[rows], {"ascending": not descending, "kind": "stable"}
        try:
            return column.sort_values(**options).index  # type: ignore[no-any-return]
        except TypeError:
            return column.sort_values(**options, key=lambda values: values.astype(str)).index  # type: ignore[no-any-return]

    def frame(self, rows: Sequence[int], columns: Sequence[int]) -> Any:
        part = self._source.iloc[rows, list(columns)]
        return part.reset_index(drop=type(self._source.index).__name__ == "RangeIndex")

    def text(self, rows: Sequence[int], columns: Sequence[int], delimiter: str) -> str:
        return str(self.frame(rows, columns).to_csv(sep=delimiter, index=False, lineterminator="\n"))


class PolarsGrid(Grid):
    def cells(self, rows: Sequence[int], at: int) -> list[Any]:
        return list(self._source.to_series(at).gather(rows).to_list())

    def column(self, at: int) -> Any:
        return self._source.to_series(at)

    def marked(self, tests: list[bool]) -> Any:
        return sys.modules["polars"].Series(tests)

    def missing(self, column: Any) -> Any:
        return column.is_null()

    def where(self, mask: Any) -> Sequence[int]:
        return mask.arg_true().to_list()  # type: ignore[no-any-return]

    def sorted(self, rows: Sequence[int], at: int, descending: bool) -> Sequence[int]:
        order = self._source.to_series(at).gather(rows).arg_sort(descending=descending, nulls_last=True)
        return [rows[place] for place in order]

    def write_parquet(self, rows: Sequence[int], columns: Sequence[int], buffer: io.BytesIO) -> None:
        self._source[list(rows)].select([self.names[at] for at in columns]).write_parquet(buffer)


def grid_of(value: Any, anything: bool = False) -> Grid | None:
    """Treat the value as a table; None for other values. A library is recognised by name, without importing it.

    With `anything`, a list or a dictionary of single values is a table, too.
    """
    root, name = type(value).__module__.partition(".")[0], type(value).__name__
    if root in ("pandas", "polars") and name in ("DataFrame", "Series"):
        frame = value.to_frame() if name == "Series" else value
        kind = PandasGrid if root == "pandas" else PolarsGrid
        return kind(len(frame), frame.columns, frame)
    if root == "numpy" and name in ("ndarray", "matrix") and value.ndim in (1, 2) and value.size > 1:
        flat = value.reshape(-1, 1) if value.ndim == 1 else value
        return Grid(flat.shape[0], range(flat.shape[1]), lambda row, at: flat[row, at].tolist())
    if isinstance(value, dict) and value:
        keys, rows = list(value), list(value.values())
        if all(isinstance(row, dict) and row for row in rows):
            names = ["key", *record_names(rows)]
            return Grid(len(rows), names, lambda row, at: rows[row].get(names[at]) if at else keys[row])
        lengths = {len(row) if isinstance(row, (list, tuple)) else -1 for row in rows}
        if len(lengths) == 1 and lengths.pop() > 1:
            return Grid(len(rows[0]), keys, lambda row, at: rows[at][row])
        return Grid(len(rows), ["key", "value"], lambda row, at: (keys, rows)[at][row]) if anything else None
    if isinstance(value, (list, tuple)) and len(value) > 1 and all(isinstance(row, dict) and row for row in value[:50]):
        names = record_names(value)
        records = [row if isinstance(row, dict) else {} for row in value]
        return Grid(len(value), names, lambda row, at: records[row].get(names[at]))
    if isinstance(value, (list, tuple)) and anything:
        return Grid(len(value), ["value"], lambda row, at: value[row])
    return None


def record_names(records: Sequence[Any]) -> list[Any]:
    names: dict[Any, None] = {}
    for row in records[:200]:
        names.update(dict.fromkeys(row))
    return list(names)


# -- the rows and columns of a view ---------------------------------------------------------------------------------

remembered: Any = (None, ())  # the last view and its rows, for the next page


def answer(value: Any, frame: Frame) -> Frame | None:
    """Return a window of a view, the statistics of a column, or the whole view as a file; None if it is no table."""
    view = frame.get("view") or {}
    grid = grid_of(value, anything=bool(view))
    if grid is None:
        if view:
            raise ViewError("this is not a table, so it can't be sorted, filtered or exported")
        return None
    rows = rows_of(grid, view, (id(value), grid.height, repr(view)), frame.get("again"))
    columns = [column_number(grid, name) for name in view.get("columns") or ()] or range(len(grid.names))
    if view.get("export"):
        return {"kind": "file", "rows": len(rows), "text": exported(grid, rows, columns, str(view["export"]))}
    if view.get("stats") is not None:
        columns = [column_number(grid, view["stats"])] if view["stats"] else columns
        return statistics(grid, rows, columns[:MAX_COLUMNS])
    (top, bottom), (left, right) = frame.get("rows", (0, 50)), frame.get("columns", (0, 50))
    top, left = max(0, int(top)), max(0, int(left))
    shown = rows[top : min(int(bottom), top + MAX_ROWS)]
    chosen = columns[left : min(int(right), left + MAX_COLUMNS)]
    if view.get("histograms"):
        return histograms(grid, rows, chosen)
    cells = [grid.cells(shown, at) for at in chosen]
    page = table_page(grid.labels(shown), [grid.names[at] for at in chosen], cells)
    return {**page, "rows": len(rows), "columns": len(columns), "total": grid.height}


def table_page(labels: list[Any], names: Sequence[Any], cells: list[list[Any]]) -> Frame:
    return {
        "kind": "table",
        "rows": len(labels),
        "columns": len(names),
        "index": column_cells(labels),
        "header": [cell(name) for name in names],
        "numeric": [all(map(is_number, column)) for column in cells],
        "cells": [column_cells(column) for column in cells],
    }


def rows_of(grid: Grid, view: Frame, key: Any, again: Any) -> Any:
    """Return the row numbers of a view, in its order."""
    global remembered
    if again and remembered[0] == key:
        return remembered[1]
    rows: Any = range(grid.height)
    if view.get("filter"):
        rows = filtered(grid, str(view["filter"]))
    if view.get("find"):
        sought = str(view["find"]).casefold()
        matching: set[int] = set()
        for at in range(len(grid.names)):
            matching.update(row for row, each in zip(rows, grid.cells(rows, at)) if sought in str(each).casefold())
        rows = [row for row in rows if row in matching]
    if view.get("sort"):
        rows = grid.sorted(rows, column_number(grid, view["sort"]), bool(view.get("descending")))
    remembered = (key, rows)
    return rows


def column_number(grid: Grid, name: Any) -> int:
    names = [str(each) for each in grid.names]
    if str(name) in names:
        return names.index(str(name))
    close = trusted_import("difflib").get_close_matches(str(name), names, n=1)
    some = ", ".join(names[:8]) + ", ..." * (len(names) > 8)
    advice = "Did you mean %s?" % close[0] if close else "Columns: %s." % some
    raise ViewError("There is no column %s. %s" % (name, advice))


# -- filters --------------------------------------------------------------------------------------------------------


def filtered(grid: Grid, text: str) -> Sequence[int]:
    names: dict[str, str] = {}

    def placeholder(match: Any) -> str:
        names["column_%d_" % len(names)] = match[1]
        return " %s " % list(names)[-1]

    try:
        node = ast.parse(QUOTED.sub(placeholder, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise ViewError("This filter is not complete. Filters look like: %s." % FILTERS) from None
    try:
        mask = evaluate(node, grid, names)
        if isinstance(mask, (bool, int, float, str)) or mask is None:
            raise ViewError("This filter names no column. Filters look like: %s." % FILTERS)
        return grid.where(mask)
    except ViewError:
        raise
    except Exception as error:  # noqa: BLE001 -- libraries may raise anything for types that do not fit
        raise ViewError("This filter does not fit the columns: %s" % str(error).partition("\n")[0]) from None


def evaluate(node: Any, grid: Grid, names: dict[str, str]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return grid.column(column_number(grid, names.get(node.id, node.id)))
    if isinstance(node, (ast.List, ast.Tuple)):
        return [evaluate(each, grid, names) for each in node.elts]
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.operand, grid, names))
    if isinstance(node, (ast.BoolOp, ast.BinOp)) and type(node.op) in OPERATORS:
        operands = node.values if isinstance(node, ast.BoolOp) else (node.left, node.right)
        return reduce(OPERATORS[type(node.op)], [evaluate(each, grid, names) for each in operands])
    if isinstance(node, ast.Compare):
        sides = [evaluate(each, grid, names) for each in (node.left, *node.comparators)]
        return reduce(operator.and_, [compare(grid, *each) for each in zip(sides, node.ops, sides[1:])])
    raise ViewError("A filter only compares columns. It looks like: %s." % FILTERS)


def compare(grid: Grid, left: Any, comparison: Any, right: Any) -> Any:
    is_negative = isinstance(comparison, (ast.NotIn, ast.NotEq, ast.IsNot))
    if right is None:
        mask = grid.missing(left)
    elif isinstance(comparison, (ast.In, ast.NotIn)):
        if isinstance(left, str) and type(right) not in (list, str):
            mask = grid.marked([not is_missing(value) and left in str(value) for value in right])
        else:
            mask = reduce(operator.or_, [left == fitting(left, each) for each in right])
    else:
        return OPERATORS[type(comparison)](fitting(right, left), fitting(left, right))
    return ~mask if is_negative else mask


def fitting(column: Any, value: Any) -> Any:
    """Convert a text to a date to compare it with Python's dates; pandas compares its own dates with texts."""
    if isinstance(value, str) and not isinstance(column, (str, int, float)):
        first: Any = next((each for each in column if not is_missing(each)), None)
        if type(first).__module__ == "datetime":
            return type(first).fromisoformat(value)
    return value


# -- statistics and files -------------------------------------------------------------------------------------------


def statistics(grid: Grid, rows: Sequence[int], columns: Sequence[int]) -> Frame:
    """Summarise columns in a table with one row per figure."""
    labels = ["type", "count", "missing", "unique", "min", "median", "mean", "max"]
    labels += ["top %d" % (place + 1) for place in range(TOP)]
    cells = []
    for at in columns:
        whole = grid.cells(rows, at)
        values = [value for value in whole if not is_missing(value)]
        counts = trusted_import("collections").Counter(
            value if isinstance(value, (str, int, float)) else column_cells([value])[0] for value in values
        )
        figures = ["", "", "", ""]
        try:
            values.sort()
            middle = values[len(values) // 2 : len(values) // 2 + 1] if not isinstance(values[0], str) else []
            if all(map(is_number, values)):
                middle = [(values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2]
                middle += [sum(values) / len(values)]
            texts = [column_cells([each])[0] for each in (values[0], *middle, values[-1])]
            figures = [texts[0], *([*texts[1:-1], "", ""][:2]), texts[-1]]
        except (TypeError, IndexError):
            pass  # nothing that could be put in order
        top = ["%s (%s)" % (cell(value), format(count, ",")) for value, count in counts.most_common(TOP)]
        kinds = getattr(grid.column(at), "dtype", None) or ", ".join(sorted({type(each).__name__ for each in values}))
        sizes = [format(size, ",") for size in (len(values), len(whole) - len(values), len(counts))]
        cells.append([str(kinds), *sizes, *figures, *(top + [""] * TOP)[:TOP]])
    while labels[-1].startswith("top") and not any(column[-1] for column in cells):
        labels, cells = labels[:-1], [column[:-1] for column in cells]
    return table_page(labels, [grid.names[at] for at in columns], cells)


def histograms(grid: Grid, rows: Sequence[int], columns: Sequence[int]) -> Frame:
    """Summarise each column from a sample of its rows: numbers in equal ranges, or the most frequent texts."""
    sample = rows
    if len(rows) > SAMPLE:  # random, because every tenth row may be special
        places = trusted_import("random").Random(0).sample(range(len(rows)), SAMPLE)
        sample = [rows[place] for place in sorted(places)]
    cells = []
    for at in columns:
        values = [value for value in grid.cells(sample, at) if not is_missing(value)]
        numbers = [float(value) for value in values if is_number(value) and abs(float(value)) < float("inf")]
        if numbers and len(numbers) == len(values):
            low, high = min(numbers), max(numbers)
            bins = [0] * BINS
            for number in numbers:
                bins[min(BINS - 1, int((number - low) / ((high - low) or 1) * BINS))] += 1
            cells.append([cell(low), cell(high), " ".join(map(str, bins)), ""])
        else:
            counts = trusted_import("collections").Counter(column_cells(values))
            top = ["%s %d%%" % (text[:30], 100 * count / len(values)) for text, count in counts.most_common(2)]
            frequent = ", ".join(top) if len(counts) * 2 <= len(values) else "mostly different"
            cells.append(["", "", "", frequent])
    return table_page(["low", "high", "bins", "words"], [grid.names[at] for at in columns], cells)


def exported(grid: Grid, rows: Sequence[int], columns: Sequence[int], form: str) -> str:
    """Write the whole view as the content of a file, in base64."""
    buffer = io.BytesIO()
    try:
        if form in ("csv", "tsv"):
            buffer.write(grid.text(rows, columns, "\t" if form == "tsv" else ",").encode("utf-8", "replace"))
        elif form == "parquet":
            grid.write_parquet(rows, columns, buffer)
        else:
            grid.frame(rows, columns).to_excel(buffer, index=False)
    except ImportError as error:
        what = "openpyxl" if form == "xlsx" else "pyarrow"
        raise ViewError("This needs %s in the session's Python (%s). !pip install %s" % (what, error, what)) from None
    if buffer.tell() > MAX_EXPORT_BYTES:
        raise ViewError("This is more than %d MB. Filter it, or write it with code." % (MAX_EXPORT_BYTES // 1_000_000))
    return b2a_base64(buffer.getvalue(), newline=False).decode()


# -- cells ----------------------------------------------------------------------------------------------------------


def is_missing(value: Any) -> bool:
    if isinstance(value, (float, str, int)):  # the usual case
        return bool(value != value)
    return value is None or type(value).__name__ in MISSING


def is_number(value: Any) -> bool:
    is_plain = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
    return is_plain or is_missing(value) or type(value).__name__ == "Decimal"


def column_cells(values: list[Any]) -> list[str]:
    """Format a column as text: floats with equal decimals, dates without a time if it is always midnight."""
    floats = [abs(value) for value in values if isinstance(value, float) and value == value]
    if floats and max(floats) < 1e15 and min([value for value in floats if value] or [1.0]) >= 1e-4:
        most = max(2, 6 - len(str(int(max(floats)))))
        digits = max(len(("%.*f" % (most, value)).rstrip("0").partition(".")[2]) for value in floats)
        return ["%.*f" % (digits, each) if isinstance(each, float) and each == each else cell(each) for each in values]
    texts = [cell(value) for value in values]
    dates = [text for text, value in zip(texts, values) if text and hasattr(value, "isoformat")]
    if dates and all(text.endswith(MIDNIGHT) for text in dates):
        texts = [text[: -len(MIDNIGHT)] if text.endswith(MIDNIGHT) else text for text in texts]
    return texts


def cell(value: Any) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, float):
        return "%.6g" % value
    text = value if isinstance(value, str) else displays.plain(value) if isinstance(value, (list, dict)) else str(value)
    line = " ".join(text[: MAX_CELL_LENGTH * 2].split())
    return line if len(line) <= MAX_CELL_LENGTH else line[: MAX_CELL_LENGTH - 3] + "..."
