"""Charts drawn with characters, from the lines, points and bars that the session embedded in a figure's image.

Bars of categories become rows with their values. Anything else is drawn on a grid with ticks, in braille dots, or with
a mark for each series where the terminal has no colours or no Unicode.
"""

from __future__ import annotations

import json
import math
import zlib
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any

from interpreter.console_text import visible_line
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.runtimes.protocol import Check, list_of, number, object_of, one_of, optional, text

_KEYWORD = b"zTXtInterpreter-Chart\0\0"  # runtimes/python/driver/figures_backend.py writes it, after the header
_HEADER, _MAX_LENGTH, _MAX_WIDTH = 33, 400_000, 120
_SCALE = 1000  # positions are thousandths of the panel
_MARKS = "*ox#@%&="
_BAR_KINDS, _SIGNS = ("bars", "rows"), {"line": "━━", "points": "•", "bars": "█", "rows": "█"}
_LEVELS, _PARTS = " ▁▂▃▄▅▆▇█", ("", *"▏▎▍▌▋▊▉█")  # eighths of a cell, from below and from the left
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille character, by row and column
_ASCII = str.maketrans("│┤└─┬", "|++-+")
_FEW_POINTS = 100  # which get a bullet each


def _row_of(*checks: Check) -> Check:
    return lambda value: (
        list_of(lambda _: True, len(checks), len(checks))(value)
        and all(check(each) for check, each in zip(checks, value, strict=True))
    )


_LABEL, _AT = text(300), number(-_SCALE, 2 * _SCALE)
_TICKS = list_of(_row_of(number(0, _SCALE), _LABEL), 200)
_PLACES, _BOXES = list_of(optional(_row_of(_AT, _AT)), 2000), list_of(_row_of(_AT, _AT, _AT, _AT, _LABEL), 2000)
_LINES = object_of(kind=one_of("line", "points"), name=_LABEL, color=_LABEL, at=_PLACES)
_BARS = object_of(kind=one_of(*_BAR_KINDS), name=_LABEL, color=_LABEL, at=_BOXES)
_SERIES = list_of(lambda each: _LINES(each) or _BARS(each), 60)
_PANEL = object_of(title=_LABEL, x=_LABEL, y=_LABEL, x_ticks=_TICKS, y_ticks=_TICKS, series=_SERIES)
_is_chart = object_of(panels=list_of(_PANEL, 6, 1))


def chart_of(png: bytes, width: int, lines: int, theme: Theme) -> list[str]:
    """Draw the chart inside an image, at most this wide; empty if it has none."""
    return drawn_chart(chart_in(png), width, lines, theme)


def chart_in(png: bytes) -> list[dict[str, Any]]:
    """Read the panels inside an image; empty if it has none, or anything that the session doesn't write."""
    size, body = int.from_bytes(png[_HEADER : _HEADER + 4], "big") + 4, png[_HEADER + 4 :]
    if body.startswith(_KEYWORD):
        with suppress(ValueError, RecursionError, zlib.error):
            chart = json.loads(zlib.decompressobj().decompress(body[len(_KEYWORD) : size], _MAX_LENGTH))
            return chart["panels"] if _is_chart(chart) else []
    return []


def drawn_chart(panels: list[dict[str, Any]], width: int, lines: int, theme: Theme) -> list[str]:
    """Draw a chart that is at most this wide; its panels are below each other."""
    height = max(6, min(20, (lines * 2 // 3 - 4) // max(1, len(panels))))
    shown = [_Panel(panel, min(width, _MAX_WIDTH), height, theme).rows() for panel in panels]
    return [row for rows in shown for row in ["", *rows]][1:]


class _Panel:
    def __init__(self, panel: dict[str, Any], width: int, height: int, theme: Theme) -> None:
        self.width, self.height, self.theme = width, height, theme
        self.title, self.x, self.y = (visible_line(panel[name]) for name in ("title", "x", "y"))
        self.ticks = [[(at, visible_line(label)) for at, label in panel[name]] for name in ("x_ticks", "y_ticks")]
        # Draw bars first, and grey parts such as error bars below coloured ones.
        self.series = sorted(panel["series"], key=lambda each: (each["kind"] not in _BAR_KINDS, each["color"] > ""))
        keys = list(dict.fromkeys((each["color"], each["name"]) for each in panel["series"] if each["color"]))
        colors = list(dict.fromkeys(color for color, _ in keys))
        has_marks = not theme.unicode or (not theme.color and len(keys) > 1)
        for each in self.series:
            key = each["color"], each["name"]
            each["style"] = f"series{colors.index(key[0]) % 6}" if key in keys else "border"
            each["mark"] = (_MARKS[keys.index(key) % len(_MARKS)] if key in keys else "|") * has_marks

    def rows(self) -> list[str]:
        signs = {each["name"]: (each["mark"] or _SIGNS[each["kind"]], each["style"]) for each in self.series}
        legend = "   ".join(f"{self.theme.paint(*sign)} {visible_line(name)}" for name, sign in signs.items() if name)
        title = self.theme.paint(self._centred(self.title, self.width), "column")
        return [*filter(None, [title, self._centred(legend, self.width)]), *(self._categories() or self._grid())]

    def _centred(self, line: str, width: int) -> str:
        return clip(" " * (max(0, width - cells(line)) // 2 * bool(line)) + line, width)

    def _hint(self, line: str) -> list[str]:
        return [self.theme.paint(clip(line, self.width), "hint")] if line.strip() else []

    # -- bars of categories --------------------------------------------------------------------------------------

    def _categories(self) -> list[str]:
        """Draw a row for each bar, with its name and its value; none if these aren't bars of categories."""
        kinds = {each["kind"] for each in self.series if each["color"] or each["kind"] in _BAR_KINDS}
        way = int(kinds == {"rows"})  # the axis of the categories
        names = self.ticks[way]
        groups: dict[int, dict[int, list[tuple[Any, Any]]]] = {}  # tick -> middle of the bar -> its parts
        bars = [each for each in self.series if each["kind"] in _BAR_KINDS and len(kinds) == 1 and names]
        for each in bars:
            for box in each["at"]:
                middle = (box[way] + box[way + 2]) // 2
                tick = min(range(len(names)), key=lambda at: abs(names[at][0] - middle))
                groups.setdefault(tick, {}).setdefault(middle, []).append((box, each))
        counts = [sum(map(len, group.values())) for group in groups.values()]
        fits = 0 < max(counts, default=0) <= len(bars) and sum(map(len, groups.values())) <= 2 * self.height
        is_exact = all(abs(sum(group) / len(group) - names[tick][0]) < 5 for tick, group in groups.items())
        is_named = any(not label.replace(",", "").replace(".", "").strip("-$€£%").isdigit() for _, label in names)
        return self._bar_rows(groups, way) if len(groups) == len(names) and fits and (is_exact or is_named) else []

    def _bar_rows(self, groups: dict[int, dict[int, list[tuple[Any, Any]]]], way: int) -> list[str]:
        names, start, end = self.ticks[way], 1 - way, 3 - way  # where a box has the ends of its bar
        order = [(tick, at) for tick in sorted(groups, reverse=way > 0) for at in sorted(groups[tick], reverse=way > 0)]
        notes = [" + ".join(visible_line(box[4]) for box, _ in groups[tick][at]) for tick, at in order]
        ends = [box[each] for tick, at in order for box, _ in groups[tick][at] for each in (start, end)]
        gutter = min(self.width // 3, max(cells(label) for _, label in names))
        scale = max(1, self.width - gutter - 3 - max(map(cells, notes))) / max(1, max(ends) - min(ends))
        rows, above, edge = self._hint(" by ".join(filter(None, [self.x, self.y][:: 2 * way - 1]))), -1, "│"
        for (tick, middle), note in zip(order, notes, strict=True):
            line, at = "", 0.0
            for box, series in sorted(groups[tick][middle], key=lambda part: sorted((part[0][start], part[0][end]))):
                left, right = ((each - min(ends)) * scale for each in sorted((box[start], box[end])))
                eighths = max(round((right - max(left, at)) * 8), 0)
                bar = _PARTS[8] * (eighths // 8) + _PARTS[eighths % 8]
                bar = series["mark"] * round(eighths / 8) if series["mark"] else bar
                line += " " * round(left - at) + self.theme.paint(bar, series["style"])
                at = max(at, right)
            label = clip(names[tick][1], gutter) if tick != above else ""
            rows.append(clip(f"{' ' * (gutter - cells(label))}{label} {self._edge(edge)}{line} {note}", self.width))
            above = tick
        return rows

    # -- everything else -----------------------------------------------------------------------------------------

    def _edge(self, line: str) -> str:
        return self.theme.paint(line if self.theme.unicode else line.translate(_ASCII), "border")

    def _grid(self) -> list[str]:
        labels = self._y_labels()
        gutter = max(map(cells, labels.values()), default=0)
        self.columns = max(1, self.width - gutter - 2)
        self.cells: dict[tuple[int, int], tuple[str, str]] = {}  # row and column -> character and style
        for each in self.series:
            if each["kind"] in _BAR_KINDS:
                self._fill(each)
            else:
                self._trace(each)
        rows = self._hint(self.y)
        for row in range(self.height):
            label = labels.get(row, "")
            line = [self.cells.get((row, column), (" ", "")) for column in range(self.columns)]
            runs = [(style, "".join(char for char, _ in run)) for style, run in groupby(line, lambda cell: cell[1])]
            drawn = "".join(self.theme.paint(run, style) for style, run in runs).rstrip()
            rows.append(f"{label:>{gutter - cells(label) + len(label)}} {self._edge('┤' if label else '│')}{drawn}")
        axis, below = self._x_axis()
        rows += [" " * (gutter + 1) + self._edge("└" + axis), *([" " * (gutter + 2) + below] if below else [])]
        return rows + self._hint(" " * (gutter + 2) + self._centred(self.x, self.columns))

    def _y_labels(self) -> dict[int, str]:
        """Return the labels by row; fewer of them if two would share one."""
        last = self.height - 1
        places = [(round((_SCALE - at) * last / _SCALE), clip(label, self.width // 3)) for at, label in self.ticks[1]]
        strides = (places[::stride] for stride in range(1, len(places) + 1))
        return next((dict(some) for some in strides if len(dict(some)) == len(some)), {})

    def _x_axis(self) -> tuple[str, str]:
        """Draw the axis with its ticks, and the labels below it; fewer of them if they would touch."""
        last, axis, below = self.columns - 1, ["─"] * self.columns, ""
        places = [(round(at * last / _SCALE), cells(label), label) for at, label in self.ticks[0]]
        starts = [(max(0, min(at - size // 2, last + 1 - size)), size, at, label) for at, size, label in places]
        strides = (starts[::stride] for stride in range(1, len(starts) + 1))
        is_open = lambda some: all(one[0] + one[1] + 1 < other[0] for one, other in pairwise(some))  # noqa: E731
        for start, _, at, label in next(filter(is_open, strides), []):
            axis[at] = "┬"
            below += " " * (start - cells(below)) + label
        return "".join(axis), clip(below, self.columns)

    def _fill(self, series: dict[str, Any]) -> None:
        """Paint bars; their upper ends in eighths of a cell."""
        for left, bottom, right, top, _ in series["at"]:
            first, last = (round(max(0, min(each, _SCALE)) * self.columns / _SCALE) for each in sorted((left, right)))
            low, high = (max(0, min(each, _SCALE)) * self.height / _SCALE for each in sorted((bottom, top)))
            for row in range(int(low), math.ceil(high)):
                char = _LEVELS[round(min(1.0, high - row) * 8)]
                for column in range(first, max(last, first + 1)) if char >= ("▄" if series["mark"] else "▁") else ():
                    self.cells[self.height - 1 - row, column] = series["mark"] or char, series["style"]

    def _trace(self, series: dict[str, Any]) -> None:
        is_line, last = series["kind"] == "line", None
        mark = series["mark"] or ("" if is_line or len(series["at"]) > _FEW_POINTS else "•")
        wide, high = (1, 1) if mark else (2, 4)
        for place in series["at"]:
            x, y = place or (0, 0)
            end = x * (self.columns * wide - 1) / _SCALE, (_SCALE - y) * (self.height * high - 1) / _SCALE
            x0, y0 = last if last and is_line else end
            steps = max(1, math.ceil(max(abs(end[0] - x0), abs(end[1] - y0)))) if place else -1
            for step in range(steps + 1):
                right, down = (round(a + (b - a) * step / steps) for a, b in zip((x0, y0), end, strict=True))
                at, before = (down // high, right // wide), self.cells.get((down // high, right // wide), ("", ""))[0]
                dots = ord(before) if "\u2800" < before < "\u2900" else 0x2800
                if 0 <= at[0] < self.height and 0 <= at[1] < self.columns:
                    self.cells[at] = mark or chr(dots | _DOTS[down % high][right % wide]), series["style"]
            last = end if place else None
