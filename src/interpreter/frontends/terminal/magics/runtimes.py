"""Magic commands on the live runtimes: their variables, their folder, and the user's own code (!, %%, >>>)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from interpreter.app import own_blocks, result_of
from interpreter.console_text import visible
from interpreter.errors import InterpreterError, UsageError
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.turn import show_block
from interpreter.frontends.terminal.viewer import AT_ONCE, show_table, show_text
from interpreter.runtimes.block import display_chunks
from interpreter.runtimes.state import Picture, Table

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.runtimes.state import Window

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
