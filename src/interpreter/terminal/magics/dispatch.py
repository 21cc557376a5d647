"""The commands of the chat: lines that begin with a percent sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.terminal.magics import conversation, facts, switches
from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.terminal.terminal import Terminal


def run(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """Obey a line such as `%verbose true`."""
    if line.startswith("%%"):
        _shell(terminal, interpreter, line[2:].strip())
        return
    name, _, argument = line[1:].partition(" ")
    command = next((row for row in COMMANDS if row.name == name.lower()), None)
    if command is None:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), [row.name for row in COMMANDS], n=1)
        advice = f"Did you mean %{close[0]}?" if close else "%help lists the commands."
        terminal.display.line(f"There is no command %{name}. {advice}")
    else:
        command.run(terminal, interpreter, argument.strip())


def _help(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    rows = [(f"%{row.name} {row.arguments}".rstrip(), row.help) for row in COMMANDS]
    rows.insert(0, ("%% command", "run a shell command; the model does not see it"))
    width = max(len(left) for left, _ in rows)
    terminal.display.line("\n".join(f"{left.ljust(width)}  {right}" for left, right in rows))


def _shell(terminal: Terminal, interpreter: OpenInterpreter, command: str) -> None:
    from interpreter.terminal.turn import show_block

    if not command:
        terminal.display.line("Write the command after %%, as in %% ls.")
        return
    for _ in show_block(terminal, interpreter, interpreter.computer.stream("shell", command)):
        pass


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "list the commands", _help),
    *conversation.COMMANDS,
    *switches.COMMANDS,
    *facts.COMMANDS,
)
