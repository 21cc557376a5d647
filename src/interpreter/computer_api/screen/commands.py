"""`%replay`: what the model did on the screen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from interpreter.api import OpenInterpreter
from interpreter.errors import UsageError
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.session.journal import SavedSession
from interpreter.session.journal.reader import Entry, RecordedBlock, Said, Shown, entries_from_session


def replay(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if interpreter.journal.path is None:
        terminal.display.line("Nothing of this conversation is saved yet.")
        return
    session = SavedSession.open(interpreter.journal.path)
    turns: list[list[Entry]] = []  # each begins with a message of the user
    for entry in entries_from_session(session):
        if isinstance(entry, Said) and entry.role == "user":
            turns.append([])
        if turns:
            turns[-1].append(entry)
    if not argument:  # the last one in which the model used the screen
        number = next((n for n in range(len(turns), 0, -1) if _has_actions(turns[n - 1])), len(turns))
    else:
        number = int(argument) if argument.isdecimal() else 0
    if not 0 < number <= len(turns):
        known = f"Turns 1 to {len(turns)} are available" if turns else "There are none yet"
        raise UsageError(f"Give the number of a turn, for example %replay 1. {known}.")
    first, *rest = turns[number - 1]
    request = " ".join(first.text.split()) if isinstance(first, Said) else ""
    terminal.display.line(f"Turn {number}: {request}")
    if not _has_actions(rest):
        terminal.display.line("The model didn't use the screen in this turn.")
        return
    for entry in rest:
        if isinstance(entry, Shown):
            _show_picture(terminal, entry.message)
        elif isinstance(entry, RecordedBlock):
            for call in entry.calls:
                when = time.strftime("%H:%M:%S", time.localtime(call["time"])) if call.get("time") else ""
                outcome = {"failed": ", failed", "refused": ", not allowed"}.get(str(call.get("outcome")), "")
                why = f": {' '.join(str(call['error']).split())}" if call.get("error") else ""
                took = f"({call.get('seconds', 0):.1f} s{outcome}{why})"
                terminal.display.line(f"{when}  {call.get('told')}  {took}".strip())
                for reference in call.get("pictures", ()):
                    picture = {"type": "image", "format": "base64.png", "content": session.blobs.get(reference)}
                    _show_picture(terminal, picture)
            for output in entry.outputs:
                _show_picture(terminal, output)
    terminal.display.finish()


def _has_actions(turn: Sequence[Entry]) -> bool:
    return any(getattr(entry, "calls", ()) for entry in turn)


def _show_picture(terminal: Terminal, message: Mapping[str, Any]) -> None:
    if message.get("type") == "image":
        kind, content = str(message.get("format", "")), message.get("content", "")
        terminal.display.show({"role": "computer", "type": "image", "format": kind, "content": content})
