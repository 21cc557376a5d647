"""Tables fitted to the screen: numbers to the right, columns and rows left out of the middle, and told."""

from __future__ import annotations

import re
from itertools import pairwise

from interpreter.frontends.terminal.render.ansi import (
    cells,
    clip,
    visible,
)
from interpreter.frontends.terminal.render.html_table import Table
from interpreter.frontends.terminal.render.theme import Theme

HEAD, TAIL = 12, 6  # rows that are shown of a long table
WIDEST_CELL = 32
_GAP = "  "
_NUMBER = re.compile(r"[-+−]?[$€£]?\d[\d,. _]*(?:[eE][-+]?\d+)?\s?%?|[-+]?(?:nan|inf)|NaN|NaT|<NA>|None|null|")
_ELIDED = frozenset({"...", "…", "⋯", "⋮"})


def fitted(table: Table, width: int, theme: Theme, all_rows: bool = False) -> tuple[list[str], bool]:
    """The rows on the screen, and whether anything of the table is missing in them."""
    rows, cut_rows = (table.rows, 0) if all_rows else _fewer(table.rows)
    grid = [[_shown(cell, theme) for cell in row] for row in [*table.header, *rows]]
    widths = _widths([max(map(cells, column)) for column in zip(*grid, strict=True)], width)
    right = [_numeric(column, len(table.header)) for column in zip(*grid, strict=True)]
    kept = _fitting(widths, table.index, width)
    drawn = _Grid(theme, widths, right, kept, table.index)
    levels = len(table.header)
    lines = [drawn.line(row, "border" if number else "column") for number, row in enumerate(grid[:levels])]
    lines += [drawn.rule()] if levels else []
    body = [drawn.line(row) for row in grid[levels:]]
    if cut_rows:
        body.insert(HEAD, theme.paint(theme.symbol("more"), "border"))
    hidden = len(widths) - len(kept)
    shown = [clip(line, width) for line in lines + body]
    return shown + _notes(table, theme, cut_rows, hidden), bool(cut_rows or hidden or drawn.cut)


def _widths(wanted: list[int], width: int) -> list[int]:
    """Long cells are cut where the table is too wide, the longest ones first, and no more than is needed."""
    most = min(WIDEST_CELL, max(4, width // 2 - 4))
    capped = [min(each, most) for each in wanted]
    spare = width - sum(capped) - len(_GAP) * (len(capped) - 1)
    for at, each in enumerate(wanted):
        more = max(0, min(each - capped[at], spare))
        capped[at] += more
        spare -= more
    return capped


def _fewer(rows: list[list[str]]) -> tuple[list[list[str]], int]:
    if len(rows) <= HEAD + TAIL + 3:
        return rows, 0
    return rows[:HEAD] + rows[-TAIL:], len(rows) - HEAD - TAIL


def _shown(cell: str, theme: Theme) -> str:
    return theme.symbol("more") if cell in _ELIDED else visible(cell)


def _numeric(column: tuple[str, ...], header: int) -> bool:
    values = [value for value in column[header:] if value not in _ELIDED]
    return any(values) and all(_NUMBER.fullmatch(value) for value in values)


def _fitting(widths: list[int], index: int, width: int) -> list[int]:
    """The columns that fit, from both ends; the names of the rows always, what is missing is the middle."""
    if sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        return list(range(len(widths)))
    room = width - sum(widths[:index]) - len(_GAP) * index - 1  # one for the sign that some are missing
    left, right = index, len(widths)
    from_left = True
    while left < right:
        at = left if from_left else right - 1
        room -= widths[at] + len(_GAP)
        if room < 0:
            break
        left, right = (left + 1, right) if from_left else (left, right - 1)
        from_left = not from_left
    return [*range(left), *range(right, len(widths))] if left > index else list(range(min(index + 1, len(widths))))


def _notes(table: Table, theme: Theme, cut_rows: int, hidden: int) -> list[str]:
    notes = [visible(note) for note in table.notes]
    if cut_rows:
        notes.append(f"{cut_rows:,} rows not shown")
    if hidden:
        notes.append(f"{hidden} column{'s' if hidden > 1 else ''} not shown")
    return [theme.paint(f" {theme.symbol('dot')} ".join(notes), "hint")] if notes else []


class _Grid:
    """Draws lines of cells."""

    def __init__(self, theme: Theme, widths: list[int], right: list[bool], kept: list[int], index: int) -> None:
        self._theme, self._widths, self._right = theme, widths, right
        self._kept = kept
        self._index = index
        gaps = [at for at, (one, other) in enumerate(pairwise(kept), 1) if other != one + 1]
        missing_end = kept and kept[-1] != len(widths) - 1
        self._break = gaps[0] if gaps else (len(kept) if missing_end else 0)
        self.cut = False

    def line(self, row: list[str], style: str = "") -> str:
        parts = []
        for place, column in enumerate(self._kept):
            if self._break and place == self._break:
                parts.append(self._theme.paint(self._theme.symbol("more"), "border"))
            parts.append(self._cell(row[column], column, style))
        if self._break == len(self._kept):
            parts.append(self._theme.paint(self._theme.symbol("more"), "border"))
        return _GAP.join(parts).rstrip()

    def _cell(self, text: str, column: int, style: str) -> str:
        width = self._widths[column]
        if cells(text) > width:
            self.cut = True
            text = clip(text, width - 1) + self._theme.symbol("more")[:1]
        space = " " * (width - cells(text))
        style = style or ("border" if column < self._index else "")
        painted = self._theme.paint(text, style) if style else text
        return space + painted if self._right[column] else painted + space

    def rule(self) -> str:
        total = sum(self._widths[column] for column in self._kept) + len(_GAP) * (len(self._kept) - 1)
        total += len(_GAP) + len(self._theme.symbol("more")) if self._break else 0
        return self._theme.paint(self._theme.symbol("rule") * total, "border")
