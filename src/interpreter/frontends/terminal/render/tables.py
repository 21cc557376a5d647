"""Tables on the screen: the one in an HTML display, such as pandas and polars make, fitted to the width.

Numbers are aligned to the right. Columns and rows that do not fit are left out of the middle, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from interpreter.console_text import OUTPUT, visible, visible_line
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.render.theme import Theme

_MAX_PAGE_LENGTH = 1_000_000  # characters that are read
_MAX_CELLS = 25_000
_LAYOUT = frozenset("div table thead tbody tfoot tr th td p small br b strong i em span caption colgroup col".split())
HEAD, TAIL = 12, 6  # rows that are shown of a long table
MAX_CELL_WIDTH = 32
GAP = "  "
_NUMBER = re.compile(r"[-+−]?[$€£]?\d[\d,. _]*(?:[eE][-+]?\d+)?\s?%?|[-+]?(?:nan|inf)|NaN|NaT|<NA>|None|null|")
_HEIGHT = re.compile(r"(\d[\d_]*) rows × |shape: \((\d[\d_]*), ")  # as pandas and polars write it
_ELIDED = frozenset({"...", "…", "⋯", "⋮"})


@dataclass
class TextTable:
    """Rows of text under a header; `notes` is the text around the table, such as its shape."""

    header: list[list[str]] = field(default_factory=list)  # one row for each level
    rows: list[list[str]] = field(default_factory=list)
    index: int = 0  # how many columns at the left name the rows
    notes: list[str] = field(default_factory=list)

    @property
    def what_is_saved(self) -> str:
        """Say how much of the table its page has: the library that made the page may have left something out."""
        gaps = sum(all(cell in _ELIDED for cell in row[self.index :]) for row in self.rows)
        if not gaps and not any(cell in _ELIDED for row in self.header for cell in row):
            return "whole table"
        return f"part of the table, {len(self.rows) - gaps:,} rows"


def table_in(html: str) -> TextTable | None:
    """Read the table, if the display contains nothing else and is not too large; None otherwise."""
    if len(html) > _MAX_PAGE_LENGTH or "<table" not in html:
        return None
    reader = _TableReader()
    reader.feed(html)
    reader.close()
    reader.end_note()
    table = reader.table
    rows = [*table.header, *table.rows]
    if reader.given_up or reader.tables != 1 or not any(map(any, rows)):
        return None
    width = max(map(len, rows))
    for row in rows:
        row += [""] * (width - len(row))
    return table


class _TableReader(HTMLParser):
    """Gathers cells. It gives up if it finds more than text in a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = TextTable()
        self.tables = self._cells = 0
        self.given_up = False
        self._hidden_depth = 0
        self._in_head = False
        self._row: list[str] | None = None
        self._names = 0  # header cells at the beginning of the row
        self._text: list[str] | None = None
        self._span = (1, 1)
        self._rowspans: dict[int, int] = {}  # column -> rows that a cell from above still covers
        self._note: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        match tag:
            case "style" | "title":
                self._hidden_depth += 1
            case "table":
                self.tables += 1
                self.end_note()
            case "thead" | "tbody":
                self._in_head = tag == "thead"
            case "tr":
                self._row, self._names = [], 0
            case "td" | "th" if self._row is not None:
                self._skip_covered(self._row)
                if tag == "th" and self._names == len(self._row):
                    self._names += 1
                given = dict(attrs)
                self._span = (_span(given.get("colspan")), _span(given.get("rowspan")))
                self._text = []
                self._cells += self._span[0]
                self.given_up = self.given_up or self._cells > _MAX_CELLS
            case "br" if self._text is not None:
                self._text.append(" ")
            case _ if tag not in _LAYOUT:
                self.given_up = True

    def handle_endtag(self, tag: str) -> None:
        match tag:
            case "style" | "title":
                self._hidden_depth -= 1
            case "td" | "th" if self._row is not None:
                self._end_cell(self._row)
            case "tr" if self._row is not None:
                self._end_cell(self._row)
                self._skip_covered(self._row)
                if self._in_head:
                    self.table.header.append(self._row)
                else:
                    names = self._names if self._names < len(self._row) else 0
                    self.table.index = max(self.table.index, names)
                    self.table.rows.append(self._row)
                self._row = None
            case "thead":
                self._in_head = False
            case "p" | "small" | "div" | "caption":
                self.end_note()

    def handle_data(self, data: str) -> None:
        if self._hidden_depth:
            return
        if self._text is not None:
            self._text.append(data)
        elif self._row is None:
            self._note.append(data)

    def end_note(self) -> None:
        """End the text around the table, and keep it as a note unless it is inside a row."""
        note = " ".join("".join(self._note).split())
        self._note = []
        if note and self._row is None:
            self.table.notes.append(note)

    def _end_cell(self, row: list[str]) -> None:
        if self._text is None:
            return
        columns, rows = self._span
        if rows > 1:
            self._rowspans.update(dict.fromkeys(range(len(row), len(row) + columns), rows - 1))
        row += [" ".join("".join(self._text).split()), *[""] * (columns - 1)]
        self._text = None

    def _skip_covered(self, row: list[str]) -> None:
        """Leave empty the cells that one from a row above still covers."""
        while left := self._rowspans.get(len(row)):
            self._rowspans[len(row)] = left - 1
            if self._names == len(row):
                self._names += 1
            row.append("")


def _span(value: str | None) -> int:
    return max(1, min(int(value), 1000)) if value and value.isdigit() else 1


def fitted(table: TextTable, width: int, theme: Theme) -> tuple[list[str], bool]:
    """Draw the rows that fit. Return them, and whether any part of the table was left out."""
    rows, hidden_rows = table.rows, 0
    if len(rows) > HEAD + TAIL + 3:
        sizes = filter(None, map(_HEIGHT.match, table.notes))  # the page may have left out rows itself
        whole = max([len(rows), *(int((size[1] or size[2]).replace("_", "")) for size in sizes)])
        rows, hidden_rows = rows[:HEAD] + rows[-TAIL:], whole - HEAD - TAIL
    more = theme.symbol("more")
    grid = [[more if cell in _ELIDED else visible(cell, OUTPUT) for cell in row] for row in [*table.header, *rows]]
    columns = list(zip(*grid, strict=True))
    levels = len(table.header)
    values = [[value for value in column[levels:] if value not in _ELIDED] for column in columns]
    numeric = [any(column) and all(map(_NUMBER.fullmatch, column)) for column in values]
    widths = _column_widths([max(map(cells, column)) for column in columns], width)
    kept = _fitting_columns(widths, table.index, width)
    missing = next((place for place, column in enumerate(kept) if column != place), len(kept))
    hidden = len(widths) - len(kept)
    is_cut = False

    def line(row: list[str], style: str = "") -> str:
        nonlocal is_cut
        parts = []
        for column in kept:
            text, room = row[column], widths[column]
            if cells(text) > room:
                is_cut = True
                text = clip(text, room - 1) + more[:1]
            space = " " * (room - cells(text))
            text = theme.paint(text, style or ("border" if column < table.index else ""))
            parts.append(space + text if numeric[column] else text + space)
        if hidden:
            parts.insert(missing, theme.paint(more, "border"))
        return GAP.join(parts).rstrip()

    shown = [line(row, "border" if number else "column") for number, row in enumerate(grid[:levels])]
    if levels:
        total = sum(widths[column] for column in kept) + len(GAP) * (len(kept) - 1)
        total += len(GAP) + len(more) if hidden else 0
        shown.append(theme.paint(theme.symbol("rule") * total, "border"))
    body = [line(row) for row in grid[levels:]]
    if hidden_rows:
        body.insert(HEAD, theme.paint(more, "border"))
    shown = [clip(row, width) for row in shown + body]
    notes = [visible(note, OUTPUT) for note in table.notes]
    if hidden_rows:
        notes.append(f"{hidden_rows:,} rows not shown")
    if hidden:
        notes.append(f"{hidden} column{'s' if hidden > 1 else ''} not shown")
    if notes:
        shown.append(theme.paint(f" {theme.symbol('dot')} ".join(notes), "hint"))
    return shown, bool(hidden_rows or hidden or is_cut)


def _column_widths(wanted: list[int], width: int) -> list[int]:
    """Limit each column to half of the table; if room is left, the leftmost ones may be wider."""
    most = min(MAX_CELL_WIDTH, max(4, width // 2 - 4))
    capped = [min(each, most) for each in wanted]
    spare = width - sum(capped) - len(GAP) * (len(capped) - 1)
    for at, each in enumerate(wanted):
        more = max(0, min(each - capped[at], spare))
        capped[at] += more
        spare -= more
    return capped


def _fitting_columns(widths: list[int], index: int, width: int) -> list[int]:
    """Choose the columns that fit, from both ends. Those that name the rows always stay; the middle is left out."""
    if sum(widths) + len(GAP) * (len(widths) - 1) <= width:
        return list(range(len(widths)))
    room = width - sum(widths[:index]) - len(GAP) * index - 1  # one for the sign that some are missing
    left, right = index, len(widths)
    from_left = True
    while left < right:
        room -= widths[left if from_left else right - 1] + len(GAP)
        if room < 0:
            break
        left, right = (left + 1, right) if from_left else (left, right - 1)
        from_left = not from_left
    return [*range(left), *range(right, len(widths))] if left > index else list(range(min(index + 1, len(widths))))


def column_texts(texts: Sequence[str], right: bool, widest: int) -> list[str]:
    """Make texts from code equally wide, at most `widest` cells."""
    shown = [visible_line(text, OUTPUT) for text in texts]
    width = min(widest, max(map(cells, shown)))
    cut = [text if cells(text) <= width else clip(text, width - 1) + "…" for text in shown]
    return [" " * (width - cells(text)) + text if right else text + " " * (width - cells(text)) for text in cut]
