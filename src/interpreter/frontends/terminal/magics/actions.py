"""The command that shows again what was done on the screen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.journal import Session
    from interpreter.session.journal.entries import Entry

_OUTCOMES = {"ok": "", "failed": ", failed", "refused": ", not allowed"}


def _replay(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.session.journal import Session
    from interpreter.session.journal.transcript import entries_from_session

    if interpreter.journal.path is None:
        terminal.display.line("Nothing is written down of this conversation yet.")
        return
    session = Session.open(interpreter.journal.path)
    turns = turns_of(entries_from_session(session))
    if not argument:  # the last one in which something was done
        number = next((n for n in range(len(turns), 0, -1) if _has_actions(turns[n - 1])), len(turns))
    else:
        number = int(argument) if argument.isdecimal() else 0
    if not 0 < number <= len(turns):
        known = f"There are 1 to {len(turns)}" if turns else "There is none yet"
        terminal.display.line(f"Write the number of a turn, as in %replay 1. {known}.")
        return
    _show_turn(terminal, session, number, turns[number - 1])


def turns_of(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of each turn; it begins with what the user said."""
    from interpreter.session.journal.entries import Said

    turns: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry, Said) and entry.role == "user":
            turns.append([])
        if turns:
            turns[-1].append(entry)
    return turns


def _has_actions(turn: Sequence[Entry]) -> bool:
    return any(getattr(entry, "calls", ()) for entry in turn)


def _show_turn(terminal: Terminal, session: Session, number: int, turn: Sequence[Entry]) -> None:
    from interpreter.session.journal.entries import (
        Block,
        Said,
        Shown,
    )

    said = turn[0]
    words = " ".join(said.text.split()) if isinstance(said, Said) else ""
    terminal.display.line(f"Turn {number}: {words}")
    if not _has_actions(turn):
        terminal.display.line("Nothing was done on the screen in this turn.")
        return
    for entry in turn[1:]:
        if isinstance(entry, Shown):
            _picture(terminal, entry.message)
        elif isinstance(entry, Block):
            for call in entry.calls:
                terminal.display.line(told(call))
                for reference in call.get("pictures", ()):
                    picture = session.blobs.get(reference)
                    _picture(terminal, {"type": "image", "format": "base64.png", "content": picture})
            for output in entry.outputs:
                _picture(terminal, output)
    terminal.display.finish()


def told(call: dict[str, Any]) -> str:
    """A call in a line: when, what, how long it took, and what came of it."""
    when = time.strftime("%H:%M:%S", time.localtime(call["time"])) if call.get("time") else ""
    outcome = _OUTCOMES.get(str(call.get("outcome")), "")
    why = f": {' '.join(str(call['error']).split())}" if call.get("error") else ""
    return f"{when}  {call.get('told')}  ({call.get('seconds', 0):.1f} s{outcome}{why})".strip()


def _picture(terminal: Terminal, message: Mapping[str, Any]) -> None:
    if message.get("type") == "image":
        kind, content = str(message.get("format", "")), message.get("content", "")
        terminal.display.show({"role": "computer", "type": "image", "format": kind, "content": content})


COMMANDS = (Command("replay", "[N]", "show again what was done on the screen, in the last turn or in turn N", _replay),)
