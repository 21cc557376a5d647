"""Commands on saved conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.terminal.terminal import Terminal

_MOST = 20


def _sessions(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.journal import listed
    from interpreter.terminal.sessions import drawn

    rows = listed(interpreter.journal.root)
    wanted = argument.lower().split()
    found = [row for row in rows if all(word in f"{row.title} {row.facts.folder}".lower() for word in wanted)]
    if not found:
        terminal.display.line("No conversation has these words." if rows else "No conversation is saved yet.")
        return
    width = terminal.tty.size()[0] - 12
    lines = [f"{row.id[:8]}  {drawn(row, width)}" for row in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"and {len(found) - _MOST} older ones: %sessions WORDS searches")
    lines.append("%resume ID takes one up; `interpreter --resume ID` does so from the shell.")
    terminal.display.line("\n".join(lines))


def _resume(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.terminal import sessions

    actions = {"resume": argument or True}
    row = sessions.named(terminal, interpreter, actions)
    if row is None:
        return
    interpreter.reset()
    session = sessions.resume(interpreter, row)
    sessions.show(terminal, interpreter, session)


def _branch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    before = interpreter.journal.id
    after = interpreter.journal.branch(argument or None)
    terminal.display.line(f"From here on this is a new conversation, {after}; {before} stays as it is.")


def _rename(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        terminal.display.line(f"This conversation is called: {interpreter.journal.title or '(nothing yet)'}")
        return
    interpreter.journal.rename(argument)
    terminal.display.line(f"This conversation is now called: {argument}")


def _rerun(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.terminal.sessions import rerun

    rerun(terminal, interpreter, argument)


COMMANDS = (
    Command("sessions", "[words]", "list saved conversations", _sessions),
    Command("resume", "[id]", "leave this conversation and take up another one", _resume),
    Command("branch", "[title]", "go on in a new conversation that begins with this one", _branch),
    Command("rename", "[title]", "give this conversation another title", _rename),
    Command("rerun", "[language]", "run the blocks of this conversation again, to have their variables back", _rerun),
)
