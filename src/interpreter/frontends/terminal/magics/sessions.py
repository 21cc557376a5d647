"""Commands on saved conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.frontends.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

_MOST = 20


def _sessions(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.conversations import list_conversations
    from interpreter.frontends.terminal.sessions import drawn

    found = list_conversations(interpreter, argument)
    if not found:
        saved = argument and list_conversations(interpreter)
        terminal.display.line("No conversation has these words." if saved else "No conversation is saved yet.")
        return
    width = terminal.tty.size()[0] - 12
    lines = [f"{row.id[:8]}  {drawn(row, width)}" for row in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"and {len(found) - _MOST} older ones: %sessions WORDS searches")
    lines.append("%resume ID takes one up; `interpreter --resume ID` does so from the shell.")
    terminal.display.line("\n".join(lines))


def _resume(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import conversations, result_of
    from interpreter.frontends.terminal import sessions

    actions = {"resume": argument or True}
    row = sessions.named(terminal, interpreter, actions)
    if row is None:
        return
    session = result_of(conversations.resume(interpreter, row, leave=True))
    sessions.show(terminal, interpreter, session)


def _branch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import conversations, result_of

    before = interpreter.journal.id
    after = result_of(conversations.branch(interpreter, argument))
    terminal.display.line(f"From here on this is a new conversation, {after}; {before} stays as it is.")


def _rename(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        terminal.display.line(f"This conversation is called: {interpreter.journal.title or '(nothing yet)'}")
        return
    interpreter.journal.rename(argument)
    terminal.display.line(f"This conversation is now called: {argument}")


def _rerun(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.sessions import rerun

    rerun(terminal, interpreter, argument)


COMMANDS = (
    Command("sessions", "[words]", "list saved conversations", _sessions),
    Command("resume", "[id]", "leave this conversation and take up another one", _resume),
    Command("branch", "[title]", "go on in a new conversation that begins with this one", _branch),
    Command("rename", "[title]", "give this conversation another title", _rename),
    Command("rerun", "[language]", "run the blocks of this conversation again, to have their variables back", _rerun),
)
