"""Diffs of tables: rows, columns, types and cells instead of lines.

CSV, TSV and JSON lines are read here, with the standard library. Code may have written them to do harm, so size, cells
and time are bounded. A file that is not a regular table within the bounds gets no such diff. Excel and Parquet need
libraries, so a process in the session reads them: it sends the cells as text, and they are compared here.
"""

from __future__ import annotations

import csv
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from io import StringIO
from itertools import islice
from typing import Any, NamedTuple

from interpreter.console_text import counted, visible_line
from interpreter.errors import InterpreterError
from interpreter.workspace.diff import Change, Parse, Read, is_data_file

_READ_TIMEOUT = 20.0  # seconds for a workbook
_MAX_DATA_BYTES = 8 * 1024 * 1024
_COMPARE_TIMEOUT = 3.0  # seconds for one table
_MAX_DESCRIBED = 3  # tables described after a block, few enough that no one waits
_MAX_DESCRIBED_BYTES = 512 * 1024
_DESCRIBE_TIMEOUTS = (0.25, 4.0)  # seconds per table: to compare it, and to read it with a library
_MAX_LINES = 500_000
_MAX_COLUMNS = 1000
_MAX_CELLS = 2_000_000
_MAX_KEYS = 8  # columns tried as the key
_EXAMPLES = 3
_MAX_VALUE_LENGTH = 40  # characters of a cell in an example
_MAX_NAMES = 8
_NOTHING = "no cells changed"
_TYPES = (
    ("integer", re.compile(r"-?(?:0|[1-9]\d*)")),
    ("number", re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")),
    ("date", re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d[\d:.+Z-]*)?")),
    ("true/false", re.compile("true|false", re.IGNORECASE)),
)

Row = tuple[str, ...]


class _NotATable(Exception):
    """The content is not a regular table, or too large."""


@dataclass
class _Data:
    columns: list[str]
    rows: list[Row]
    types: dict[str, str] = field(default_factory=dict)  # by column, for files that declare them

    def type_of(self, name: str) -> str:
        return self.types[name] if self.types else _type_of(self.column(name))

    def column(self, name: str) -> list[str]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    @property
    def size(self) -> str:
        return f"{counted(len(self.rows), 'row')}, {counted(len(self.columns), 'column')}"


class TableDiff(NamedTuple):
    size: str
    columns: Sequence[str] = ()
    cells: str = ""
    examples: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        return [self.size, *self.columns, *filter(None, [self.cells]), *(f"  {each}" for each in self.examples)]

    @property
    def note(self) -> str:
        return ", ".join(filter(None, (self.size, self.cells)))


def describe(changes: Sequence[Change], fields: Sequence[dict[str, Any]], read: Read, parse: Parse | None) -> None:
    """Add a summary to the fields of each table."""
    described = 0
    for change, each in zip(changes, fields, strict=True):
        if described < _MAX_DESCRIBED and (is_data_file(change.path) or _workbook_kind(change.path)):
            described += 1
            table_diff = _table_diff(change, read, parse, _MAX_DESCRIBED_BYTES, _DESCRIBE_TIMEOUTS)
            if table_diff is not None and not isinstance(table_diff, str):
                each["data"] = table_diff.note


def diff_of(change: Change, read: Read, parse: Parse | None, data: bool) -> str:
    """Format the diff of a table; empty for other files, and for CSV and the like unless `data` asks for it."""
    has_no_lines = parse is not None and _workbook_kind(change.path)
    table_diff = _table_diff(change, read, parse) if data or has_no_lines else None
    if table_diff is None:
        return ""
    name = visible_line(os.fsencode(change.path).decode("utf-8", "replace"))
    lines = [f"{change.what}; no cell diff: {table_diff}"] if isinstance(table_diff, str) else table_diff.lines
    return "\n  ".join([f"{name}: {lines[0]}", *lines[1:]]) + "\n"


def _workbook_kind(path: str) -> str | None:
    """Return the kind of a file whose cells only a library can read; None for other files."""
    return {".xlsx": "xlsx", ".xlsm": "xlsx", ".parquet": "parquet"}.get(os.path.splitext(path.lower())[1])


def _table_diff(
    change: Change,
    read: Read,
    parse: Parse | None = None,
    largest: int = _MAX_DATA_BYTES,
    seconds: tuple[float, float] = (_COMPARE_TIMEOUT, _READ_TIMEOUT),
) -> TableDiff | str | None:
    """Compare a table, or say why that is not possible. None if it is no table, or too large to be read as text."""
    items = [item for item in (change.before, change.after) if item is not None]
    kind = _workbook_kind(change.path) if parse is not None else None
    if not (kind or is_data_file(change.path)) or any(item.kind != "file" for item in items):
        return None
    if any(item.size > largest for item in items):
        return f"it has more than {largest >> 20} MB" if kind else None
    contents = [item and read(item) for item in (change.before, change.after)]
    if sum(content is not None for content in contents) < len(items) or contents[0] == contents[1]:
        return None
    if kind is None or parse is None:
        return data_diff(change.path, contents[0], contents[1], seconds[0])
    try:
        before, after = parse(kind, contents, seconds[1])
    except (InterpreterError, OSError, ValueError, TypeError) as error:
        return visible_line(str(error)).rstrip(".") or "it cannot be read"
    return workbook_diff(before, after, seconds[0]) or "it has no regular table"


def data_diff(path: str, before: bytes | None, after: bytes | None, seconds: float) -> TableDiff | None:
    """Compare two versions of a table. None if the file is no table; if it is new or deleted, there is only a size."""
    end = time.monotonic() + seconds
    try:
        old, new = (None if content is None else _read(path, content, end) for content in (before, after))
        if old is None or new is None:
            only = old or new
            return TableDiff(only.size) if only is not None else None
        return _compare(old, new, end)
    except (_NotATable, ValueError, RecursionError, ArithmeticError, csv.Error):
        return None


def workbook_diff(before: Any, after: Any, seconds: float) -> TableDiff | None:
    """Compare the tables of a file, as `read_tables` returns them, by name. None if they are not regular."""
    end = time.monotonic() + seconds
    try:
        old, new = (None if tables is None else _workbook(tables) for tables in (before, after))
        if old is None or new is None:
            tables = list((old or new or {}).values())
            return TableDiff(tables[0].size if len(tables) == 1 else counted(len(tables), "sheet")) if tables else None
        if len(old) == 1 and old.keys() == new.keys():
            return next(_compare(old[name], new[name], end) for name in old)
        names = {"sheets added": new.keys() - old.keys(), "sheets removed": old.keys() - new.keys()}
        lines = [f"{what}: {_listed(sorted(those))}" for what, those in names.items() if those]
        diffs = {name: _compare(old[name], new[name], end) for name in new if name in old}
        changed = {name: each for name, each in diffs.items() if each.columns or each.cells != _NOTHING}
        lines += [
            f"{_short(name)}: {line}" for name, each in islice(changed.items(), _MAX_NAMES) for line in each.lines
        ]
        return TableDiff(counted(len(new), "sheet"), lines, f"{counted(len(changed), 'sheet')} changed")
    except (_NotATable, ValueError, ArithmeticError, TypeError, AttributeError):
        return None


def _workbook(tables: Any) -> dict[str, _Data]:
    """Check and convert the tables that the process sent, which may be anything. Raises _NotATable, for example."""
    sheets: dict[str, _Data] = {}
    for title, columns in tables.items():
        names = [str(name) for name, _, _ in columns]
        rows = list(zip(*(map(str, cells) for _, _, cells in columns), strict=True))
        if len(set(names)) < len(names) or len(names) > _MAX_COLUMNS:
            raise _NotATable
        sheets[str(title)] = _Data(names, rows, {str(name): str(kind) for name, kind, _ in columns})
    return sheets


# -- reading -----------------------------------------------------------------------------------------------------


def _read(path: str, content: bytes, end: float) -> _Data:
    if b"\0" in content or content.count(b"\n") > _MAX_LINES:
        raise _NotATable
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    records = _json_rows(text) if path.lower().endswith((".jsonl", ".ndjson")) else _csv_rows(text)
    header = next(records, ())
    rows: list[Row] = []
    for number, row in enumerate(records):
        if number % 1000 == 0:
            _check(end, width=len(header), cells=number * len(header))
        if len(row) != len(header):
            row += ("",) * (len(header) - len(row))
            _check(end, longer=len(row) - len(header))
        rows.append(row)
    return _Data(list(header), rows)


def _csv_rows(text: str) -> Iterator[Row]:
    """Yield the column names, then the rows."""
    delimiter = max(",;\t|", key=text.partition("\n")[0].count)
    rows = (tuple(row) for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter) if row)
    header = next(rows, ())
    is_data = len(set(header)) < len(header) or any(not name or _type_of([name]) != "text" for name in header)
    if is_data and header[:1] != ("",):  # pandas leaves the name of the index empty
        yield tuple(f"column {number}" for number in range(1, len(header) + 1))
    yield header
    yield from rows


def _json_rows(text: str) -> Iterator[Row]:
    records = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not all(isinstance(record, dict) for record in records):
        raise _NotATable
    names = dict.fromkeys(name for record in records for name in record)
    if len(names) > _MAX_COLUMNS or len(names) * len(records) > _MAX_CELLS:
        raise _NotATable
    yield tuple(names)
    for record in records:
        yield tuple(json.dumps(record[name], ensure_ascii=False) if name in record else "" for name in names)


def _check(end: float, width: int = 0, cells: int = 0, longer: int = 0) -> None:
    if width > _MAX_COLUMNS or cells > _MAX_CELLS or longer or time.monotonic() > end:
        raise _NotATable


def _type_of(values: list[str]) -> str:
    """Infer the type of a column from the text of its cells; empty if all cells are empty."""
    filled = {value for value in values if value not in ("", "null")}
    matching = (name for name, pattern in _TYPES if all(map(pattern.fullmatch, filled)))
    return next(matching, "text") if filled else ""


# -- comparing ---------------------------------------------------------------------------------------------------


@dataclass
class _Matched:
    """The rows of two tables that belong together, by a key or by position, and how their cells differ."""

    pairs: list[tuple[int, int]]
    cells: int = 0
    examples: tuple[str, ...] = ()


def _compare(old: _Data, new: _Data, end: float) -> TableDiff:
    counts = [(len(old.rows), len(new.rows), "row"), (len(old.columns), len(new.columns), "column")]
    size = ", ".join(f"{was:,} -> " * (was != now) + counted(now, what) for was, now, what in counts)
    shared = [name for name in new.columns if name in old.columns]
    pairs = [(name, old.column(name), new.column(name)) for name in shared]
    retyped = [name for name, was, now in pairs if old.types or was != now]
    types = [(name, old.type_of(name), new.type_of(name)) for name in retyped]
    differences = {
        "columns added": [name for name in new.columns if name not in shared],
        "columns removed": [name for name in old.columns if name not in shared],
        "types changed": [f"{name} ({was} -> {now})" for name, was, now in types if was and now and was != now],
    }
    columns = [f"{what}: {_listed(names)}" for what, names in differences.items() if names]
    if not shared:
        return TableDiff(size, columns)
    sides = [list(zip(*map(data.column, shared), strict=True)) for data in (old, new)]
    gone, come = (Counter(one) - Counter(other) for one, other in (sides, sides[::-1]))
    if not gone and not come:
        return TableDiff(size, columns, _NOTHING if sides[0] == sides[1] else "the same rows in another order")
    matches = [_match(shared, sides, pairs, key, end) for key, pairs in _alignments(shared, sides)]
    if not matches:
        return TableDiff(size, columns, f"{counted(come.total(), 'row')} added, {counted(gone.total(), 'row')} removed")
    best = min(matches, key=lambda one: one.cells + (len(old.rows) + len(new.rows) - 2 * len(one.pairs)) * len(shared))
    rows = [(len(new.rows) - len(best.pairs), "added"), (len(old.rows) - len(best.pairs), "removed")]
    parts = [f"{counted(count, 'row')} {what}" for count, what in rows if count]
    return TableDiff(size, columns, ", ".join([*parts, f"{counted(best.cells, 'cell')} changed"]), best.examples)


def _alignments(columns: list[str], sides: list[list[Row]]) -> Iterator[tuple[str | None, list[tuple[int, int]]]]:
    """Yield possible pairings of rows: by the first column whose values are unique, and by position."""
    for at, name in enumerate(columns[:_MAX_KEYS]):
        old, new = ({row[at]: number for number, row in enumerate(side)} for side in sides)
        if len(old) == len(sides[0]) and len(new) == len(sides[1]):
            pairs = [(old[value], number) for value, number in new.items() if value in old]
            if 2 * len(pairs) >= min(len(old), len(new)):
                yield name, pairs
                break
    if len(sides[0]) == len(sides[1]):
        yield None, [(number, number) for number in range(len(sides[0]))]


def _match(
    columns: list[str], sides: list[list[Row]], pairs: list[tuple[int, int]], key: str | None, end: float
) -> _Matched:
    matched = _Matched(pairs)
    for number, (before, after) in enumerate(pairs):
        if number % 1000 == 0:
            _check(end)
        old, new = sides[0][before], sides[1][after]
        if old == new:
            continue
        where = f"row {after + 1}" if key is None else f"{_short(key)} {_short(new[columns.index(key)])}"
        changed = [at for at in range(len(columns)) if not _same(old[at], new[at])]
        matched.cells += len(changed)
        examples = (f"{where}, {_short(columns[at])}: {_short(old[at])} -> {_short(new[at])}" for at in changed)
        matched.examples += tuple(islice(examples, _EXAMPLES - len(matched.examples)))
    return matched


def _same(old: str, new: str) -> bool:
    """Compare two cells by value: 2 equals 2.0, but 007 does not equal 7."""
    if old == new or max(len(old), len(new)) > _MAX_VALUE_LENGTH:
        return old == new
    number = _TYPES[1][1]
    return bool(number.fullmatch(old) and number.fullmatch(new)) and Decimal(old) == Decimal(new)


# -- words -------------------------------------------------------------------------------------------------------


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*(_short(name) for name in names[:_MAX_NAMES]), *more])


def _short(value: str) -> str:
    line = " ".join(value.split()) or "(empty)"
    return line if len(line) <= _MAX_VALUE_LENGTH else f"{line[: _MAX_VALUE_LENGTH - 3]}..."
