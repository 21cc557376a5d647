"""Commands that change how the chat behaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.terminal.terminal import Terminal


def _reset(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    interpreter.reset()
    terminal.display.line("The conversation is empty, and all sessions are ended.")


def _verbose(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _switch(terminal, argument, interpreter.verbose)
    if wanted is None:
        return
    interpreter.verbose = wanted
    if wanted:
        terminal.display.line(json.dumps(interpreter.messages, indent=2, ensure_ascii=False, default=str))
    terminal.display.line(f"verbose is {'on' if wanted else 'off'}.")


def _debug(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.display.line("%debug is now %verbose.")
    _verbose(terminal, interpreter, argument)


def _auto_run(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _switch(terminal, argument, interpreter.auto_run)
    if wanted is not None:
        interpreter.auto_run = wanted
        told = "Code runs without asking from now on." if wanted else "You are asked before code runs."
        terminal.display.line(told)


def _switch(terminal: Terminal, argument: str, now: bool) -> bool | None:
    """True or false as it was said, the other of the two if nothing was; None if it cannot be understood."""
    words = {"": not now, "true": True, "on": True, "false": False, "off": False}
    if argument.lower() not in words:
        terminal.display.line(f"Write true or false, not {argument}.")
    return words.get(argument.lower())


COMMANDS = (
    Command("reset", "", "forget the conversation and end all sessions", _reset),
    Command("auto_run", "[true/false]", "run code without asking", _auto_run),
    Command("verbose", "[true/false]", "tell more; shows the messages as they are", _verbose),
    Command("debug", "[true/false]", "the old name of %verbose", _debug),
)
