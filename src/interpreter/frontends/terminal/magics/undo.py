"""Commands that go back, and forward again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpreter.errors import UndoError
from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.checkpoints import Part, Way

OPTIONS = ("--conversation", "--files", "--variables", "--block", "-y")


@dataclass
class Wanted:
    """What was typed after the command."""

    parts: tuple[Part, ...]
    blocks: bool = False
    yes: bool = False
    place: str = ""


def parsed(argument: str) -> Wanted:
    """The words after the command; UndoError if one of them is not known."""
    from interpreter.session.checkpoints import PARTS

    wanted, parts = Wanted(PARTS), []
    for word in argument.lower().split():
        name = word.lstrip("-")
        if word in ("-y", "--yes"):
            wanted.yes = True
        elif word in ("--block", "--blocks"):
            wanted.blocks = True
        elif word.startswith("--") and name in PARTS:
            parts.append(name)
        elif word == "now" or re.fullmatch("-?[0-9]+", word):
            wanted.place = word
        else:
            raise UndoError(f"{word} means nothing here. A number is known, and {', '.join(OPTIONS)}.")
    wanted.parts = tuple(part for part in PARTS if part in parts) or PARTS
    return wanted


def _count(wanted: Wanted) -> int:
    if wanted.place in ("", "now"):
        return 1
    if int(wanted.place) < 1:
        raise UndoError(f"How many? A number from 1 on, not {wanted.place}.")
    return int(wanted.place)


def _undo(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _move(terminal, interpreter, argument, "back")


def _redo(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _move(terminal, interpreter, argument, "forward")


def _move(terminal: Terminal, interpreter: OpenInterpreter, argument: str, way: Way) -> None:
    from interpreter.app.undo import plan_redo, plan_undo
    from interpreter.frontends.terminal.taking_back import carry_out

    try:
        wanted = parsed(argument)
        plan = plan_undo if way == "back" else plan_redo
        outlook = plan(interpreter, _count(wanted), wanted.parts, wanted.blocks)
        carry_out(terminal, interpreter, outlook, way, wanted.yes)
    except UndoError as error:
        terminal.display.line(str(error))


def _rewind(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.undo import plan_restore
    from interpreter.frontends.terminal.rewind import NOW
    from interpreter.frontends.terminal.taking_back import carry_out

    try:
        wanted = parsed(argument)
        name = wanted.place or _chosen(terminal, interpreter)
        if name:
            outlook = plan_restore(interpreter, None if name == NOW else int(name), wanted.parts)
            carry_out(terminal, interpreter, outlook, "there", wanted.yes)
    except UndoError as error:
        terminal.display.line(str(error))


def _chosen(terminal: Terminal, interpreter: OpenInterpreter) -> str:
    """Let the user choose; empty if there is no choice, or they would rather not."""
    from interpreter.frontends.terminal.rewind import (
        Places,
        choose,
        listed,
    )

    places = Places(interpreter)
    if not places.places:
        raise UndoError("There is nothing to go back to yet.")
    if terminal.plain or not terminal.tty.can_type:
        listed(terminal, places)
        return ""
    try:
        return choose(terminal, places)
    except KeyboardInterrupt:
        terminal.display.line("Nothing was changed.")
        return ""


COMMANDS = (
    Command("undo", "[N] [--files] ...", "take back your last message and all that came of it", _undo),
    Command("redo", "[N] [--files] ...", "do again what %undo has taken back", _redo),
    Command("rewind", "[number]", "choose a moment to go back to", _rewind),
)
