"""Commands on the live sessions: what is in them, where they are, code of the user's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from interpreter.errors import InterpreterError, UsageError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.runtimes.looking import Value, Variable, Window


_HEADINGS = ("name", "type", "shape", "size", "preview")
_NAME = re.compile(r"(?:(?P<language>\w+):)?(?P<name>\S.*)", re.DOTALL)


# -- variables ---------------------------------------------------------------------------------------------------


def list_variables(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    found = interpreter.computer.variables(argument or None)
    for language, variables in found.items():
        if variables:
            terminal.display.line(language, "heading3" if not terminal.plain else "hint")
            _table(terminal, [_HEADINGS, *(_row(each) for each in variables)])
    if not any(found.values()):
        terminal.display.line(f"No {argument or 'session'} has any variables yet.")


def _row(variable: Variable) -> tuple[str, ...]:
    size = "" if variable.size is None else _bytes(variable.size)
    return variable.name, variable.type, variable.shape, size, variable.preview


def _bytes(size: int) -> str:
    if size < 1000:
        return f"{size} B"
    for unit in ("kB", "MB", "GB"):
        size_in_unit = size / 1000
        if size_in_unit < 1000 or unit == "GB":
            return f"{size_in_unit:.1f} {unit}"
        size //= 1000
    return ""


def _table(terminal: Terminal, rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as they need to be; what does not fit is the end of the last one."""
    from interpreter.frontends.terminal.render.ansi import (
        cells,
        clip,
        visible,
    )

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
        terminal.display.line("Write what to show, as in %show df. %vars lists what there is.")
        return
    language, name = match["language"], match["name"]
    if language is None or interpreter.computer.get_language(language) is None:
        language, name = _language_of(interpreter, argument), argument
    _show_value(terminal, interpreter, language, name)


def _language_of(interpreter: OpenInterpreter, name: str) -> str:
    """The first language that knows the name; the first of all says why if none does."""
    first = re.match(r"\$?([\w$]+)", name)
    names = [language.name for language in interpreter.computer.languages]
    try:
        found = interpreter.computer.variables() if first else {}
    except InterpreterError:
        found = {}
    known = [each for each in names if any(first and row.name == first[1] for row in found.get(each, ()))]
    return next(iter(known or names), "")


def _show_value(terminal: Terminal, interpreter: OpenInterpreter, language: str, name: str) -> None:
    from interpreter.frontends.terminal import viewer
    from interpreter.runtimes.displays import display_chunks
    from interpreter.runtimes.looking import Picture, Table

    value = interpreter.computer.look(language, name, (0, 100), (0, viewer.AT_ONCE))
    title = f"{name} ({_kind(value)})"
    if isinstance(value, Picture):
        terminal.follow(interpreter)
        for chunk in display_chunks(value.data):
            terminal.display.show({**chunk, "role": "computer"})
        terminal.display.finish()
    elif isinstance(value, Table):

        def fetch(rows: Window, columns: Window) -> Table:
            page = interpreter.computer.look(language, name, rows, columns)
            return page if isinstance(page, Table) else Table("", 0, 0)

        viewer.show_table(terminal, title, fetch)
    else:
        viewer.show_text(terminal, title, value.text)


def _kind(value: Value) -> str:
    from interpreter.runtimes.looking import Table

    return f"{value.type}, {value.rows:,} × {value.columns:,}" if isinstance(value, Table) else value.type


# -- places and programs -----------------------------------------------------------------------------------------


def change_folder(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import result_of
    from interpreter.app.own_blocks import change_folder

    try:
        path = result_of(change_folder(interpreter, argument.strip("\"'") or "~"))
    except UsageError as error:
        terminal.display.line(str(error), "error")
        return
    terminal.display.line(f"All sessions go on in {path}.")


def run_file(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.own_blocks import run_file
    from interpreter.frontends.terminal.turn import show_block

    if not argument:
        terminal.display.line("Write which file, as in %run prepare.py.")
        return
    try:
        for _ in show_block(terminal, interpreter, run_file(interpreter, argument.strip("\"'"))):
            pass
    except UsageError as error:
        terminal.display.line(str(error), "error")


# -- code at the prompt ------------------------------------------------------------------------------------------


def run_shell(terminal: Terminal, interpreter: OpenInterpreter, command: str, shared: bool | None = None) -> None:
    """`!command` and `%% command`: in the shell session that the model uses."""
    if not command:
        terminal.display.line("Write the command after the sign, as in !ls.")
        return
    _run_own_block(terminal, interpreter, "shell", command, shared)


def run_python(terminal: Terminal, interpreter: OpenInterpreter, text: str) -> None:
    """`>>> code`: in the Python session that the model uses."""
    from interpreter.app.own_blocks import python_of

    code = python_of(text)
    if not code.strip():
        terminal.display.line("Write the code after the sign, as in >>> 1 + 1.")
        return
    _run_own_block(terminal, interpreter, "python", code)


def open_output(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.render.saved import open_shown

    terminal.display.line(f"Opened {open_shown(argument)}.")


def _run_own_block(
    terminal: Terminal, interpreter: OpenInterpreter, language: str, code: str, shared: bool | None = None
) -> None:
    """Run and show it; `shared` tells the model, None does as the setting says."""
    from interpreter.app.own_blocks import run_own_block
    from interpreter.frontends.terminal.turn import show_block

    for _ in show_block(terminal, interpreter, run_own_block(interpreter, language, code, shared)):
        pass
