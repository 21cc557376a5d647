"""Magic commands on the live runtimes: their values (%vars, %show), their folder, the user's own code (!, %%, >>>)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from interpreter.app import own_blocks, result_of
from interpreter.console_text import OUTPUT, visible, visible_line
from interpreter.errors import InterpreterError, UsageError
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.tty import prompt_toolkit_options
from interpreter.frontends.terminal.turn import show_block
from interpreter.runtimes.block import display_chunks
from interpreter.runtimes.state import Picture, Table, Window

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal


WIDEST = 40  # cells of one column, if others want room too
GAP = "  "
AT_ONCE = 30  # columns that are fetched
KEYS = "q leaves"
_MOVES = {  # keys -> how far they move: lines, pages, all the way, to the right
    "up k": (-1, 0, 0, 0),
    "down j": (1, 0, 0, 0),
    "pageup b": (0, -1, 0, 0),
    "pagedown space": (0, 1, 0, 0),
    "home g": (0, 0, -1, 0),
    "end G": (0, 0, 1, 0),
    "left h": (0, 0, 0, -1),
    "right l": (0, 0, 0, 1),
}

Fetch = Callable[[Window, Window], Table]


def drawn(table: Table, width: int) -> tuple[list[str], int]:
    """The lines of a part of a table, the first one its header, and how many columns fit.

    Numbers are aligned to the right. The labels of the rows are always at the left.
    """
    index = _column(["", *table.index], right=False, widest=max(8, width // 3))
    grid = [[label] for label in index]
    room = width - cells(index[0])
    shown = 0
    for name, values, numeric in zip(table.header, table.cells, table.numeric, strict=True):
        if room < len(GAP) + 4 and shown:
            break
        column = _column([name, *values], numeric, min(WIDEST, max(1, room - len(GAP))))
        if cells(column[0]) + len(GAP) > room and shown:
            break
        room -= cells(column[0]) + len(GAP)
        for row, cell in zip(grid, column, strict=True):
            row.append(cell)
        shown += 1
    return [GAP.join(row).rstrip() for row in grid], shown


def _column(texts: Sequence[str], right: bool, widest: int) -> list[str]:
    shown = [visible_line(text, OUTPUT) for text in texts]
    width = min(widest, max(map(cells, shown)))
    cut = [text if cells(text) <= width else clip(text, width - 1) + "…" for text in shown]
    return [" " * (width - cells(text)) + text if right else text + " " * (width - cells(text)) for text in cut]


def show_table(terminal: Terminal, title: str, fetch: Fetch) -> None:
    """All of a small table, a view of a large one; its beginning if no keys can be read."""
    columns, lines = terminal.tty.size()
    first = fetch((0, max(lines, 24)), (0, AT_ONCE))
    rows, shown = drawn(first, columns - 1)
    fits = first.rows <= lines - 4 and shown == first.columns
    missing = [f"{first.rows - len(first.index):,} more rows"] if first.rows > len(first.index) else []
    missing += [f"{first.columns - shown} more columns"] if shown < first.columns else []
    heading = f"{title}{': and ' if missing else ''}{', '.join(missing)}"
    _show(terminal, TableView(title, first, fetch), heading, rows, fits)


def show_text(terminal: Terminal, title: str, text: str) -> None:
    """The text, on the whole screen if it is longer than that."""
    columns, lines = terminal.tty.size()
    rows = [visible(row, OUTPUT) for row in text.expandtabs().split("\n")]
    height = sum(1 + (cells(row) - 1) // columns for row in rows)
    _show(terminal, TextView(title, rows), title, rows, fits=height <= lines - 3)


def _show(terminal: Terminal, view: TableView | TextView, title: str, rows: list[str], fits: bool) -> None:
    terminal.display.finish()
    if not fits and not terminal.plain and terminal.tty.can_type and terminal.tty.can_draw:
        _run_full_screen(terminal, view)
        return
    terminal.tty.write("".join(row + "\n" for row in rows))
    terminal.display.line(title)


# -- the whole screen --------------------------------------------------------------------------------------------


class TableView:
    """A part of a table, fetched as it is moved. Positions are rows and columns of the table."""

    step = 1  # columns that an arrow key moves

    def __init__(self, title: str, first: Table, fetch: Fetch) -> None:
        self._title, self._fetch = title, fetch
        self._table, self._place = first, ((0, len(first.index)), (0, AT_ONCE))
        self.rows, self.columns = first.rows, first.columns
        self.top = self.left = 0
        self._height = self._shown = 0
        self._problem = ""

    def lines(self, width: int, height: int) -> list[str]:
        """The lines on the screen; the first one is a heading."""
        self._height = height - 1
        place = ((self.top, self.top + self._height), (self.left, self.left + AT_ONCE))
        if place != self._place:
            try:
                self._table, self._place, self._problem = self._fetch(*place), place, ""
                self.rows, self.columns = self._table.rows, self._table.columns
            except InterpreterError as error:
                self._problem = str(error)
        lines, self._shown = drawn(self._table, width)
        return lines[:height]

    def footer(self) -> str:
        last = min(self.top + self._height, self.rows)
        rows = f"rows {min(self.top + 1, last):,}-{last:,} of {self.rows:,}"
        columns = f"columns {self.left + 1}-{self.left + self._shown} of {self.columns}"
        return self._problem or f"{KEYS} · {rows}, {columns} · {self._title}"


class TextView:
    """Some lines of a text."""

    step = 8

    def __init__(self, title: str, rows: list[str]) -> None:
        self._title, self._rows = title, rows
        self.rows, self.columns = len(rows), max(map(cells, rows), default=0)
        self.top = self.left = 0
        self._height = 0

    def lines(self, width: int, height: int) -> list[str]:
        """The lines on the screen; the first one is a heading."""
        self._height = height - 1
        shown = self._rows[self.top : self.top + self._height]
        return [visible(self._title), *(clip(row[self.left :], width) for row in shown)]

    def footer(self) -> str:
        last = min(self.top + self._height, self.rows)
        return f"{KEYS} · lines {self.top + 1:,}-{last:,} of {self.rows:,}"


def _run_full_screen(terminal: Terminal, view: TableView | TextView) -> None:
    """Show the view until the user leaves; the screen is then as it was."""
    from prompt_toolkit.application import Application
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout
    from prompt_toolkit.layout import Window as Pane

    def height() -> int:
        return max(2, terminal.tty.size()[1] - 1)

    def body() -> StyleAndTextTuples:
        heading, *others = view.lines(terminal.tty.size()[0], height())
        return [("bold underline", heading + "\n"), ("", "\n".join(others))]

    def footer() -> StyleAndTextTuples:
        return [("reverse", clip(visible(view.footer()), terminal.tty.size()[0]))]

    def move(event: KeyPressEvent, lines: int, pages: int, ends: int, right: int) -> None:
        down = lines + pages * max(1, height() - 2) + ends * view.rows
        view.top = max(0, min(view.top + down, max(0, view.rows - height() + 1)))
        view.left = max(0, min(view.left + right * view.step, view.columns - 1))

    keys = KeyBindings()
    for names, (lines, pages, ends, right) in _MOVES.items():
        for name in names.split():
            key = " " if name == "space" else name
            keys.add(key)(partial(move, lines=lines, pages=pages, ends=ends, right=right))
    for name in ("q", "escape", "c-c", "c-d", "enter"):
        keys.add(name, eager=True)(lambda event: event.app.exit())
    panes = HSplit([Pane(FormattedTextControl(body, focusable=True)), Pane(FormattedTextControl(footer), height=1)])
    options = prompt_toolkit_options(terminal.tty)
    Application(layout=Layout(panes), key_bindings=keys, full_screen=True, **options).run()


_HEADINGS = ("name", "type", "shape", "size", "preview")
_NAME = re.compile(r"(?:(?P<language>\w+):)?(?P<name>\S.*)", re.DOTALL)


# -- variables -----------------------------------------------------------------------------------------------------


def list_variables(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    found = interpreter.computer.variables(argument or None)
    for language, variables in found.items():
        if variables:
            rows = [(each.name, each.type, each.shape, _bytes(each.size), each.preview) for each in variables]
            terminal.display.line(language, "heading3" if not terminal.plain else "hint")
            _table(terminal, [_HEADINGS, *rows])
    if not any(found.values()):
        terminal.display.line(f"No {argument or 'session'} has any variables yet.")


def _bytes(size: int | None) -> str:
    if size is None:
        return ""
    if size < 1000:
        return f"{size} B"
    if size < 1e6:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def _table(terminal: Terminal, rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as they need to be; only the end of the last one is cut off."""
    width = terminal.tty.size()[0] - 1
    shown = [[visible(cell) for cell in row] for row in rows]
    kept = [at for at in range(len(_HEADINGS)) if any(row[at] for row in shown[1:])]
    if width < 60:
        kept = [at for at in kept if at in (0, 1, 4)]
    widths = {at: min(30, max(cells(row[at]) for row in shown)) for at in kept}
    for row in shown:
        parts = [clip(row[at], widths[at]) for at in kept[:-1]]
        padded = [part + " " * (widths[at] - cells(part)) for part, at in zip(parts, kept, strict=False)]
        terminal.tty.write(clip("  ".join(["", *padded, row[kept[-1]]]), width).rstrip() + "\n")


def show(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    match = _NAME.fullmatch(argument)
    if match is None:
        raise UsageError("Write what to show, as in %show df. %vars lists what there is.")
    language, name = match["language"], match["name"]
    if language is None or interpreter.computer.get_language(language) is None:
        language, name = _language_of(interpreter, argument), argument
    value = interpreter.computer.look(language, name, (0, 100), (0, AT_ONCE))
    if isinstance(value, Picture):
        terminal.follow(interpreter)
        for chunk in display_chunks(value.data):
            terminal.display.show({**chunk, "role": "computer"})
        terminal.display.finish()
    elif isinstance(value, Table):

        def fetch(rows: Window, columns: Window) -> Table:
            page = interpreter.computer.look(language, name, rows, columns)
            return page if isinstance(page, Table) else Table("", 0, 0)

        show_table(terminal, f"{name} ({value.type}, {value.rows:,} × {value.columns:,})", fetch)
    else:
        show_text(terminal, f"{name} ({value.type})", value.text)


def _language_of(interpreter: OpenInterpreter, name: str) -> str:
    """The first language that knows the name. If none does, the first of all, whose error says so."""
    first = re.match(r"\$?([\w$]+)", name)
    names = [language.name for language in interpreter.computer.languages]
    try:
        found = interpreter.computer.variables() if first else {}
    except InterpreterError:
        found = {}
    known = [each for each in names if any(first and row.name == first[1] for row in found.get(each, ()))]
    return next(iter(known or names), "")


# -- the user's own code -------------------------------------------------------------------------------------------


def change_folder(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = result_of(own_blocks.change_folder(interpreter, argument.strip("\"'") or "~"))
    terminal.display.line(f"All sessions go on in {path}.")


def run_file(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        raise UsageError("Write which file, as in %run prepare.py.")
    for _ in show_block(terminal, interpreter, own_blocks.run_file(interpreter, argument.strip("\"'"))):
        pass


def run_code(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """`!command`, `%% command` and `>>> code`, in the runtime that the model uses; it does not see those with %%."""
    if line.startswith(">>>"):
        language, code, example = "python", own_blocks.python_of(line), "the code after the sign, as in >>> 1 + 1"
    else:
        code = line.removeprefix("!" if line.startswith("!") else "%%").strip()
        language, example = "shell", "the command after the sign, as in !ls"
    if not code.strip():
        raise UsageError(f"Write {example}.")
    shared = False if line.startswith("%%") else None
    for _ in show_block(terminal, interpreter, own_blocks.run_own_block(interpreter, language, code, shared)):
        pass
