"""Something long to look at: a table or a text on the whole screen, moved with the arrow keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from interpreter.errors import InterpreterError
from interpreter.frontends.terminal.render.ansi import (
    cells,
    clip,
    visible,
)
from interpreter.runtimes.state import Table, Window

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings

    from interpreter.frontends.terminal.terminal import Terminal

WIDEST = 40  # cells of one column, where others want room too
GAP = "  "
AT_ONCE = 30  # columns that are fetched
KEYS = "q leaves"

Fetch = Callable[[Window, Window], Table]


@dataclass(frozen=True)
class Drawn:
    """Lines of a window of a table, the first one its header, and how many columns are in them."""

    lines: list[str]
    columns: int


def drawn(table: Table, width: int) -> Drawn:
    """As many columns as fit, numbers to the right; the labels of the rows always stand at the left."""
    index = _column(["", *table.index], right=False, widest=max(8, width // 3))
    grid = [[label] for label in index]
    room = width - cells(index[0])
    shown = 0
    for name, values, numeric in zip(table.header, table.cells, table.numeric, strict=True):
        least = len(GAP) + 4
        if room < least and shown:
            break
        column = _column([name, *values], numeric, min(WIDEST, max(1, room - len(GAP))))
        if cells(column[0]) + len(GAP) > room and shown:
            break
        room -= cells(column[0]) + len(GAP)
        for row, cell in zip(grid, column, strict=True):
            row.append(cell)
        shown += 1
    return Drawn([GAP.join(row).rstrip() for row in grid], shown)


def _column(texts: Sequence[str], right: bool, widest: int) -> list[str]:
    shown = [visible(text) for text in texts]
    width = min(widest, max(map(cells, shown)))
    cut = [text if cells(text) <= width else clip(text, width - 1) + "…" for text in shown]
    return [" " * (width - cells(text)) + text if right else text + " " * (width - cells(text)) for text in cut]


def show_table(terminal: Terminal, title: str, fetch: Fetch) -> None:
    """The whole of a small table, a view of a large one; its beginning where no keys can be read."""
    columns, lines = terminal.tty.size()
    first = fetch((0, max(lines, 24)), (0, AT_ONCE))
    whole = drawn(first, columns - 1)
    fits = first.rows <= lines - 4 and whole.columns == first.columns
    if not fits and _can_view(terminal):
        _view(terminal, TableView(title, first, fetch))
        return
    missing = [f"{first.rows - len(first.index):,} more rows"] if first.rows > len(first.index) else []
    missing += [f"{first.columns - whole.columns} more columns"] if whole.columns < first.columns else []
    _print(terminal, f"{title}{': and ' if missing else ''}{', '.join(missing)}", whole.lines)


def show_text(terminal: Terminal, title: str, text: str) -> None:
    """The text, on the whole screen if it is longer than that."""
    columns, lines = terminal.tty.size()
    rows = [visible(row) for row in text.expandtabs().split("\n")]
    height = sum(1 + (cells(row) - 1) // columns for row in rows)
    if height > lines - 3 and _can_view(terminal):
        _view(terminal, TextView(title, rows))
    else:
        _print(terminal, title, rows)


def _can_view(terminal: Terminal) -> bool:
    return not terminal.plain and terminal.tty.can_type and terminal.tty.can_draw


def _print(terminal: Terminal, title: str, rows: list[str]) -> None:
    terminal.display.finish()
    terminal.tty.write("".join(row + "\n" for row in rows))
    terminal.display.line(title)


# -- the whole screen --------------------------------------------------------------------------------------------


class View(Protocol):
    """Something that can be moved about; positions are rows and columns of its own."""

    top: int
    left: int

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...

    def lines(self, width: int, height: int) -> list[str]:
        """What stands on the screen; the first line is a heading."""

    def footer(self) -> str: ...


class TableView:
    """A window of a table, fetched as it is moved."""

    def __init__(self, title: str, first: Table, fetch: Fetch) -> None:
        self._title, self._fetch = title, fetch
        self._table, self._place = first, ((0, len(first.index)), (0, AT_ONCE))
        self.top = self.left = 0
        self._height = self._shown = 0
        self._problem = ""

    @property
    def rows(self) -> int:
        return self._table.rows

    @property
    def columns(self) -> int:
        return self._table.columns

    def lines(self, width: int, height: int) -> list[str]:
        self._height = height - 1
        place = ((self.top, self.top + self._height), (self.left, self.left + AT_ONCE))
        if place != self._place:
            try:
                self._table, self._place, self._problem = self._fetch(*place), place, ""
            except InterpreterError as error:
                self._problem = str(error)
        found = drawn(self._table, width)
        self._shown = found.columns
        return found.lines[:height]

    def footer(self) -> str:
        last = min(self.top + self._height, self.rows)
        rows = f"rows {min(self.top + 1, last):,}-{last:,} of {self.rows:,}"
        columns = f"columns {self.left + 1}-{self.left + self._shown} of {self.columns}"
        return self._problem or f"{KEYS} · {rows}, {columns} · {self._title}"


class TextView:
    """Some lines of a text."""

    def __init__(self, title: str, rows: list[str]) -> None:
        self._title, self._rows = title, rows
        self.top = self.left = 0
        self._height = 0
        self._widest = max(map(cells, rows), default=0)

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> int:
        return self._widest

    def lines(self, width: int, height: int) -> list[str]:
        self._height = height - 1
        shown = self._rows[self.top : self.top + self._height]
        return [self._title, *(clip(row[self.left :], width) for row in shown)]

    def footer(self) -> str:
        last = min(self.top + self._height, self.rows)
        return f"{KEYS} · lines {self.top + 1:,}-{last:,} of {self.rows:,}"


def _view(terminal: Terminal, view: View) -> None:
    """Show it until the user has seen enough; the screen is then as it was."""
    from prompt_toolkit.application import Application
    from prompt_toolkit.input import create_input
    from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout
    from prompt_toolkit.layout import Window as Pane
    from prompt_toolkit.output import ColorDepth, create_output

    height = [1]

    def body() -> StyleAndTextTuples:
        columns, rows = terminal.tty.size()
        height[0] = max(2, rows - 1)
        heading, *others = view.lines(columns, height[0])
        return [("bold underline", heading + "\n"), ("", "\n".join(others))]

    def footer() -> StyleAndTextTuples:
        return [("reverse", clip(view.footer(), terminal.tty.size()[0]))]

    terminal.display.finish()
    panes = HSplit([Pane(FormattedTextControl(body, focusable=True)), Pane(FormattedTextControl(footer), height=1)])
    Application(
        layout=Layout(panes),
        key_bindings=_keys(view, height),
        full_screen=True,
        input=create_input(terminal.tty.stdin),
        output=create_output(stdout=terminal.tty.stdout),
        color_depth=None if terminal.tty.color else ColorDepth.DEPTH_1_BIT,
    ).run()


def _keys(view: View, height: list[int]) -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    def moves(down: Callable[[], int], right: int = 0) -> Callable[[KeyPressEvent], None]:
        def move(event: KeyPressEvent) -> None:
            last = max(0, view.rows - height[0] + 1)
            view.top = max(0, min(view.top + down(), last))
            view.left = max(0, min(view.left + right, view.columns - 1))

        return move

    for name, distance in {"up": -1, "k": -1, "down": 1, "j": 1}.items():
        keys.add(name)(moves(lambda distance=distance: distance))  # type: ignore[misc]
    for name, sign in {"pageup": -1, "pagedown": 1, " ": 1, "b": -1}.items():
        keys.add(name)(moves(lambda sign=sign: sign * max(1, height[0] - 2)))  # type: ignore[misc]
    for name, sign in {"home": -1, "g": -1, "end": 1, "G": 1}.items():
        keys.add(name)(moves(lambda sign=sign: sign * view.rows))  # type: ignore[misc]
    for name, step in {"left": -1, "h": -1, "right": 1, "l": 1}.items():
        keys.add(name)(moves(lambda: 0, step * (1 if isinstance(view, TableView) else 8)))
    for name in ("q", "escape", "c-c", "c-d", "enter"):
        keys.add(name, eager=True)(lambda event: event.app.exit())
    return keys
