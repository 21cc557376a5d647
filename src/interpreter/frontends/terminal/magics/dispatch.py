"""The commands of the chat: lines that begin with a percent sign, and code that the user runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.magics import (
    actions,
    changes,
    conversation,
    exports,
    facts,
    forks,
    live,
    opening,
    sessions,
    switches,
    undo,
)
from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

SIGNS = ("%", "!", ">>>")
_NARROW = 70  # columns; below, the words stand under the command


def run(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """Obey a line such as `%verbose true`, `!ls` or `>>> 1 + 1`."""
    if line.startswith(">>>"):
        live.python(terminal, interpreter, line)
    elif line.startswith("!"):
        live.shell(terminal, interpreter, line[1:].strip())
    elif line.startswith("%%"):
        live.shell(terminal, interpreter, line[2:].strip(), shared=False)
    else:
        _obey(terminal, interpreter, line)


def _obey(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    name, argument = [*line[1:].split(None, 1), "", ""][:2]
    command = next((row for row in COMMANDS if row.name == name.lower()), None)
    if command is None:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), [row.name for row in COMMANDS], n=1)
        advice = f"Did you mean %{close[0]}?" if close else "%help lists the commands."
        terminal.display.line(f"There is no command %{name}. {advice}")
    else:
        command.run(terminal, interpreter, argument.strip())


def _help(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    seen = "the model sees it" if interpreter.share_commands else "the model does not see it"
    rows = [
        ("!command", f"run a shell command in the model's session; {seen}"),
        (">>> code", f"run Python in the model's session; {seen}"),
        ("%% command", "run a shell command; the model does not see it"),
        *((f"%{row.name} {row.arguments}".rstrip(), row.help) for row in COMMANDS),
    ]
    terminal.display.line("\n".join(_two_columns(rows, terminal.tty.size()[0] - 1)))


def _two_columns(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    """What is typed, and beside it what it does; one below the other where there is no room."""
    from textwrap import wrap

    left = max(len(typed) for typed, _ in rows) + 2
    for typed, does in rows:
        if width < _NARROW:
            yield f"{typed}\n    {does}"
            continue
        first, *others = wrap(does, width - left)
        yield typed.ljust(left) + first
        yield from (" " * left + other for other in others)


def _exit(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.left = True


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "list the commands", _help),
    *live.COMMANDS,
    *undo.COMMANDS,
    *changes.COMMANDS,
    *actions.COMMANDS,
    *conversation.COMMANDS,
    *forks.COMMANDS,
    *sessions.COMMANDS,
    *exports.COMMANDS,
    *opening.COMMANDS,
    *switches.COMMANDS,
    *facts.COMMANDS,
    Command("exit", "", "leave", _exit),
)
