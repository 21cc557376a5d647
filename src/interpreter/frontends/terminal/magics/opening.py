"""The command that opens what the terminal cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal


def _open(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.opening import open_shown

    terminal.display.line(f"Opened {open_shown(argument)}.")


COMMANDS = (Command("open", "[number or path]", "open the last page, picture or table in its own program", _open),)
