"""%show: a value of a live runtime. A table can be sorted, filtered, searched, summed up, exported and copied.

The value stays in the runtime, unchanged: the runtime sends only the rows on the screen.
"""

from __future__ import annotations

import base64
import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from interpreter.app import result_of
from interpreter.app.exports import export_table
from interpreter.console_text import OUTPUT, counted, visible, visible_line
from interpreter.errors import ComputerError, InterpreterError, MissingLeafError, UsageError
from interpreter.frontends.terminal.render.ansi import cells, clip, program_text
from interpreter.frontends.terminal.render.tables import GAP, column_texts
from interpreter.frontends.terminal.tty import prompt_toolkit_options
from interpreter.leaves import load
from interpreter.runtimes.block import display_chunks
from interpreter.runtimes.state import File, RichValue, TableQuery, TableWindow, Text, Value, Window

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

MAX_COLUMN_WIDTH = 40  # cells of one column, if others want room too
COLUMNS_FETCHED = 30
MAX_ROWS = 500
_WAIT = 0.05  # seconds before the footer says that it is working
_MAX_COPY_LENGTH = 5_000_000  # characters
_MAX_COPY_BY_TERMINAL_BYTES = 70_000  # bytes; terminals ignore more
_ASKED = {
    "f": ("filter", "Filter: "),
    "/": ("find", "Search: "),
    "e": ("export", "Export to (.csv, .xlsx, .parquet): "),
}
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
_OPTION = re.compile(r"(?:^|\s)(?:(sort|filter|find|columns|rows|stats|export)=(?!=)|(stats|copy)\s*$)")


# -- the command ---------------------------------------------------------------------------------------------------


class ShownValue:
    """A value in a runtime that can be read repeatedly."""

    def __init__(self, interpreter: OpenInterpreter, language: str, name: str) -> None:
        self._interpreter, self._language, self.name = interpreter, language, name

    def look(self, rows: Window, columns: Window, view: TableQuery, again: bool = False) -> Value:
        asked = None if view == TableQuery() else view
        return self._interpreter.computer.look(self._language, self.name, rows, columns, asked, again)

    def table(self, rows: Window, columns: Window, view: TableQuery, again: bool = False) -> TableWindow:
        value = self.look(rows, columns, view, again)
        return value if isinstance(value, TableWindow) else TableWindow("", 0, 0)

    def file(self, view: TableQuery, form: str) -> File:
        value = self.look((0, 0), (0, 0), replace(view, export=form, stats=None))
        if not isinstance(value, File):
            raise UsageError("The session sent no file.")
        return value

    def stop(self) -> None:
        self._interpreter.computer.runtimes.runtime(self._language).stop_looking()

    def export(self, view: TableQuery, path: str) -> str:
        rows = 0

        def fetch(form: str) -> bytes:
            nonlocal rows
            file = self.file(view, form)
            rows = file.rows
            return file.data

        written = result_of(export_table(self._interpreter, path, fetch))
        return f"Wrote {counted(rows, 'row')} to {written}."

    def copied(self, terminal: Terminal, view: TableQuery) -> str:
        file = self.file(view, "tsv")
        return f"{copy(terminal, file.data.decode('utf-8', 'replace'))} {counted(file.rows, 'row')}."


def show(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    argument, options = parsed(argument)
    match = re.fullmatch(r"(?:(?P<language>\w+):)?(?P<name>\S.*)", argument, re.DOTALL)
    if match is None:
        raise UsageError("Say what to show, for example %show df. %vars lists the variables.")
    language, name = match["language"], match["name"]
    if language is None or interpreter.computer.get_language(language) is None:
        language, name = _language_of(interpreter, argument), argument
    view, source = view_of(options), ShownValue(interpreter, language, name)
    if "export" in options:
        terminal.display.line(source.export(view, options["export"]))
    if "copy" in options:
        terminal.display.line(source.copied(terminal, view))
    if options.keys() & {"export", "copy"}:
        return
    wanted, lines = options.get("rows"), terminal.tty.size()[1]
    if wanted is not None and not (wanted.isdigit() and 1 <= int(wanted) <= MAX_ROWS):
        raise UsageError(f"rows= takes a number from 1 to {MAX_ROWS}.")
    try:
        value = source.look((0, int(wanted) if wanted else max(lines, 24)), (0, COLUMNS_FETCHED), view)
    except KeyboardInterrupt:
        terminal.tty.write("\n")  # the terminal has shown ^C
        raise UsageError("Stopped.") from None
    match value:
        case RichValue():
            terminal.follow(interpreter)
            for chunk in display_chunks(value.data):
                terminal.display.show({**chunk, "role": "computer"})
            terminal.display.finish()
        case TableWindow():
            show_table(terminal, source, value, view, at_once=wanted is not None or view.stats is not None)
        case Text():
            show_text(terminal, f"{name} ({value.type})", value.text)


def parsed(text: str) -> tuple[str, dict[str, str]]:
    """Split `df sort=total desc filter=region == "EU"` into the name and the options; a value ends at the next."""
    matches = list(_OPTION.finditer(text))
    options: dict[str, str] = {}
    for option, end in zip(matches, [*(each.start() for each in matches[1:]), len(text)], strict=False):
        value = text[option.end() : end].strip()
        if value[:1] in ("'", '"') and value.endswith(value[0]) and value.count(value[0]) == 2:
            value = value[1:-1]
        options[option[1] or option[2]] = value
    name = text[: matches[0].start()].strip() if matches else text
    if stray := re.search(r"\s(\w+)=(?!=)", name):
        raise UsageError(f"There is no option {stray[1]}= here. %help show lists the options.")
    return name, options


def view_of(options: dict[str, str]) -> TableQuery:
    sort, descending = options.get("sort", ""), False
    if direction := re.search(r"\s+(asc|desc)(?:ending)?$", sort, re.IGNORECASE):
        sort, descending = sort[: direction.start()], direction[1].lower() == "desc"
    columns = tuple(name.strip() for name in options.get("columns", "").split(",") if name.strip())
    return TableQuery(
        sort, descending, options.get("filter", ""), options.get("find", ""), columns, options.get("stats")
    )


def _language_of(interpreter: OpenInterpreter, name: str) -> str:
    """Find the first language with this variable. If none has it, return the first, which will report the error."""
    first = re.match(r"\$?([\w$]+)", name)
    names = [language.name for language in interpreter.computer.languages]
    try:
        variables = interpreter.computer.variables() if first else {}
    except InterpreterError:
        variables = {}
    known = [each for each in names if any(first and row.name == first[1] for row in variables.get(each, ()))]
    return next(iter(known or names), "")


def copy(terminal: Terminal, text: str) -> str:
    """Copy a text to this machine's clipboard, or through the terminal to that of the user's machine."""
    if len(text) > _MAX_COPY_LENGTH:
        raise UsageError("That is too much for the clipboard. Filter it, or export it to a file.")
    text, is_remote = visible(text, OUTPUT), bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"))
    if not is_remote:
        try:
            load("interpreter.computer_api.screen.platforms:open_clipboard")().put_text(text)
        except (ComputerError, MissingLeafError, OSError):
            pass  # no display, or no program for its clipboard
        else:
            return "Copied"
    data = text.encode("utf-8", "replace")
    if terminal.plain or len(data) > _MAX_COPY_BY_TERMINAL_BYTES:
        why = "There is no clipboard here" if terminal.plain else "That is too much for this clipboard"
        raise UsageError(f"{why}. export=table.csv writes a file instead.")
    terminal.tty.write(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    return "Sent to the clipboard of your terminal:"


# -- a table as text -----------------------------------------------------------------------------------------------


def drawn(table: TableWindow, width: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Draw part of a table: its lines, the header first, and where in a line each column that fits is.

    Numbers are aligned to the right. The labels of the rows are always at the left.
    """
    texts = [["", *table.index], *([name, *cell] for name, cell in zip(table.header, table.cells, strict=True))]
    fits = sum(max(map(cells, column)) + len(GAP) for column in texts) <= width
    index = column_texts(texts[0], right=False, widest=width if fits else max(8, width // 3))
    grid = [[label] for label in index]
    room, start = width - cells(index[0]), len(index[0])
    places: list[tuple[int, int]] = []
    for name, values, numeric in zip(table.header, table.cells, table.numeric, strict=True):
        if room < len(GAP) + 4 and places:
            break
        column = column_texts(
            [name, *values], numeric, min(width if fits else MAX_COLUMN_WIDTH, max(1, room - len(GAP)))
        )
        if cells(column[0]) + len(GAP) > room and places:
            break
        room -= cells(column[0]) + len(GAP)
        for row, cell in zip(grid, column, strict=True):
            row.append(cell)
        places.append((start + len(GAP), start + len(GAP) + len(column[0])))
        start = places[-1][1]
    return [GAP.join(row).rstrip() for row in grid], places


def show_table(terminal: Terminal, source: ShownValue, first: TableWindow, view: TableQuery, at_once: bool) -> None:
    """Show all of a small table, or a view of a large one; only its beginning if no keys can be read."""
    columns, lines = terminal.tty.size()
    rows, places = drawn(first, columns - 1)
    fits = at_once or (first.rows <= lines - 4 and len(places) == first.columns)
    matching = [f"{first.rows:,} of {first.total:,} rows match"] if first.rows != first.total else []
    more = [(first.rows - len(first.index), "more row"), (first.columns - len(places), "more column")]
    notes = [*matching, *(counted(count, what) for count, what in more if count > 0)]
    size = f"{first.total:,} × {first.columns:,}" if view.stats is None else "statistics"
    title = f"{source.name} ({first.type}, {size})"
    pager = TableView(terminal, source, title, first, view)
    _show(terminal, pager, ": ".join([title, *([", ".join(notes)] if notes else [])]), rows, fits)


def show_output(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Show all that the last block wrote, also what was shortened before."""
    output = interpreter.computer.context.last_output
    if output is None:
        raise UsageError("No block has run yet.")
    show_text(terminal, "Output of the last block", program_text(output.read(), color=False))


def show_text(terminal: Terminal, title: str, text: str) -> None:
    """Show the text, on the whole screen if it is longer than that."""
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


# -- the whole screen ----------------------------------------------------------------------------------------------


class TableView:
    """A part of a table, fetched as it is moved. Positions are rows and columns of the table.

    A thread sends the requests to the runtime, so that a slow answer can be stopped.
    """

    keys = "s sort  f filter  / search  i statistics  e export  c copy  r reset  q leave"

    def __init__(
        self, terminal: Terminal, source: ShownValue, title: str, first: TableWindow, view: TableQuery
    ) -> None:
        self._terminal, self._source, self._title = terminal, source, title
        self._table, self._loaded = first, ((0, len(first.index)), (0, COLUMNS_FETCHED), view)
        self.view = view
        self.statistics: list[str] = []
        self.rows, self.columns = first.rows, first.columns
        self.top = self.left = self.column = 0
        self.message = ""
        self.busy = False
        self.redraw: Callable[[], None] = lambda: None
        self._height, self._places = 0, [(0, 0)]
        self._failed: object = None

    def lines(self, width: int, height: int) -> list[str]:
        """Draw the screen; the first line is a heading."""
        self._height = height - 1
        if self.statistics:
            return self.statistics[:height]
        wanted = ((self.top, self.top + self._height), (self.left, self.left + COLUMNS_FETCHED), self.view)
        if wanted not in (self._loaded, self._failed) and not self.busy:
            self._do(partial(self._load, wanted))
        arrow = ("▼" if self.view.descending else "▲") if self._terminal.tty.unicode else "*"
        sort = self._loaded[2].sort
        header = [f"{name} {arrow}" if sort and name == sort else name for name in self._table.header]
        lines, self._places = drawn(replace(self._table, header=header), width)
        if self.column >= self.left + len(self._places) and not self.busy and self.left < self.columns - 1:
            self.left = self.column - len(self._places) + 1
            return self.lines(width, height)
        return lines[:height]

    @property
    def marked(self) -> tuple[int, int]:
        """Return where in the heading the chosen column is."""
        at = self.column - self._loaded[1][0]
        return (0, 0) if self.statistics or not 0 <= at < len(self._places) else self._places[at]

    def footer(self) -> str:
        if self.busy:
            return "Working. Ctrl-C stops it."
        if self.message:
            return self.message
        last, total = min(self.top + self._height, self.rows), self._table.total
        among = f" ({total:,} in all)" if self.rows != total else ""
        rows = f"rows {min(self.top + 1, last):,}-{last:,} of {self.rows:,}{among}"
        view = self._loaded[2]
        by = [f"filter: {view.filter}"] if view.filter else []
        by += [f"search: {view.find}"] if view.find else []
        columns = f"columns {self.left + 1}-{self.left + len(self._places)} of {self.columns}"
        return " · ".join([f"{rows}, {columns}", *by, self._title])

    def move(self, down: int, right: int, height: int) -> None:
        self.message, self.statistics = "", []
        self.top = max(0, min(self.top + down, max(0, self.rows - height + 1)))
        self.column = max(0, min(self.column + right, self.columns - 1))
        self.left = min(self.left, self.column)

    def press(self, key: str) -> None:
        """Handle a key that acts on the chosen column or on the whole table."""
        at = self.column - self._loaded[1][0]
        name = self._table.header[at] if 0 <= at < len(self._table.header) else ""
        self.message = ""
        if self.busy or (self.statistics and key != "i"):
            return
        match key:
            case "s" if self.view.sort != name:
                self.change(sort=name, descending=False)
            case "s":
                self.change(sort="" if self.view.descending else name, descending=not self.view.descending)
            case "r":
                self.change(sort="", descending=False, filter="", find="")
            case "i" if self.statistics:
                self.statistics = []
            case "i":
                self._do(partial(self._describe, name))
            case "c":
                self._do(lambda: self._source.copied(self._terminal, self.view))

    def change(self, **changes: Any) -> None:
        self.view, self.top, self._failed = replace(self.view, **changes), 0, None

    def enter(self, what: str, text: str) -> None:
        """Apply what was typed for a filter, a search or an export."""
        if what != "export":
            self.change(**{what: text.strip()})
        elif text.strip():
            self._do(lambda: self._source.export(self.view, text.strip()))

    def stop(self) -> None:
        if self.busy:
            self._source.stop()

    def _load(self, wanted: tuple[Window, Window, TableQuery]) -> str:
        rows, columns, view = wanted
        try:
            self._table = self._source.table(rows, columns, view, again=view == self._loaded[2])
        except Exception:
            self._failed, self.view = wanted, self._loaded[2]
            raise
        self._loaded = wanted
        self.rows, self.columns = self._table.rows, self._table.columns
        return self.message

    def _describe(self, name: str) -> str:
        page = self._source.table((0, 0), (0, 0), replace(self.view, stats=name))
        self.statistics = drawn(page, self._terminal.tty.size()[0])[0]
        return "i goes back to the table"

    def _do(self, work: Callable[[], str]) -> None:
        """Call `work` in a thread, then show its message. Waits briefly, so that quick results show at once."""

        def run() -> None:
            try:
                self.message = work()
            except Exception as error:  # noqa: BLE001 - shown in the footer
                self.message = str(error)
            self.busy = False
            self.redraw()

        self.busy = True
        thread = threading.Thread(target=run, name="show", daemon=True)
        thread.start()
        thread.join(_WAIT)


class TextView:
    keys = "q leave"
    marked = (0, 0)

    def __init__(self, title: str, rows: list[str]) -> None:
        self._title, self._rows = title, rows
        self.rows, self.columns = len(rows), max(map(cells, rows), default=0)
        self.top = self.left = 0
        self._height = 0

    def lines(self, width: int, height: int) -> list[str]:
        """Draw the screen; the first line is a heading."""
        self._height = height - 1
        shown = self._rows[self.top : self.top + self._height]
        return [visible(self._title), *(clip(row[self.left :], width) for row in shown)]

    def footer(self) -> str:
        last = min(self.top + self._height, self.rows)
        return f"lines {self.top + 1:,}-{last:,} of {self.rows:,}"

    def move(self, down: int, right: int, height: int) -> None:
        self.top = max(0, min(self.top + down, max(0, self.rows - height + 1)))
        self.left = max(0, min(self.left + right * 8, self.columns - 1))


def _run_full_screen(terminal: Terminal, view: TableView | TextView) -> None:
    """Show the view until the user leaves; the screen is then as it was."""
    from prompt_toolkit.application import Application
    from prompt_toolkit.filters import has_focus
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Layout
    from prompt_toolkit.layout import Window as Pane
    from prompt_toolkit.widgets import TextArea

    asked = ["", ""]  # what is being typed, and the words before it

    def height() -> int:
        return max(2, terminal.tty.size()[1] - 2)

    def body() -> StyleAndTextTuples:
        heading, *others = view.lines(terminal.tty.size()[0], height())
        start, end = view.marked
        parts = (("", heading[:start]), (" reverse", heading[start:end]), ("", heading[end:] + "\n"))
        return [*((f"bold underline{style}", text) for style, text in parts), ("", "\n".join(others))]

    def footer() -> StyleAndTextTuples:
        return [("reverse", clip(visible_line(view.footer()), terminal.tty.size()[0]))]

    def hint() -> StyleAndTextTuples:
        return [("", clip(view.keys, terminal.tty.size()[0]))]

    def move(event: KeyPressEvent, lines: int, pages: int, ends: int, right: int) -> None:
        view.move(lines + pages * max(1, height() - 2) + ends * view.rows, right, height())

    def leave(event: KeyPressEvent) -> None:
        if isinstance(view, TableView) and view.statistics:
            view.press("i")
        elif isinstance(view, TableView) and view.busy and event.key_sequence[0].key == "c-c":
            view.stop()
        else:
            event.app.exit()

    entry = TextArea(height=1, multiline=False, prompt=lambda: asked[1])
    is_typing = has_focus(entry)
    screen = Pane(FormattedTextControl(body, focusable=True))
    keys = KeyBindings()
    for names, (lines, pages, ends, right) in _MOVES.items():
        for name in names.split():
            key = " " if name == "space" else name
            keys.add(key, filter=~is_typing)(partial(move, lines=lines, pages=pages, ends=ends, right=right))
    for name in ("q", "escape", "c-c", "c-d", "enter"):
        keys.add(name, eager=True, filter=~is_typing)(leave)
    if isinstance(view, TableView):
        table = view

        def ask(event: KeyPressEvent) -> None:
            what, label = _ASKED[event.data]
            if not table.busy:
                asked[:] = [what, label]
                entry.text = getattr(table.view, what)
                entry.buffer.cursor_position = len(entry.text)
                event.app.layout.focus(entry)

        def answered(event: KeyPressEvent) -> None:
            event.app.layout.focus(screen)
            if event.key_sequence[0].key == "c-m":
                table.statistics, table.message = [], ""
                table.enter(asked[0], entry.text)

        for name in ("s", "r", "i", "c"):
            keys.add(name, filter=~is_typing)(lambda event: table.press(event.data))
        for name in _ASKED:
            keys.add(name, filter=~is_typing)(ask)
        for name in ("enter", "escape", "c-c", "c-d"):
            keys.add(name, eager=True, filter=is_typing)(answered)
    panes = HSplit(
        [
            screen,
            Pane(FormattedTextControl(footer), height=1),
            ConditionalContainer(entry, is_typing),
            ConditionalContainer(Pane(FormattedTextControl(hint), height=1), ~is_typing),
        ]
    )
    app: Application[None] = Application(
        layout=Layout(panes), key_bindings=keys, full_screen=True, **prompt_toolkit_options(terminal.tty)
    )
    if isinstance(view, TableView):
        view.redraw = app.invalidate
    try:
        app.run()
    finally:
        if isinstance(view, TableView):
            view.stop()
