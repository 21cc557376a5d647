"""What the library shows: chats, blocks and messages, on the terminal of this process or plainly without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from interpreter.frontends.terminal.turn import show_block, show_turn

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk
    from interpreter.session import Event

_terminals: dict[bool, Terminal] = {}


def show_chat(interpreter: OpenInterpreter, message: Any = None) -> Iterator[Chunk]:
    """Chat in the terminal, or show the answer to one message; yields every chunk."""
    if message is None:
        from interpreter.frontends.terminal.chat import converse

        yield from converse(_terminal(interpreter), interpreter)
    else:
        yield from show_turn(_terminal(interpreter), interpreter, interpreter.respond(message))


def show_events(interpreter: OpenInterpreter | None, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the events of a block while they pass."""
    if interpreter is None:
        from interpreter.api import OpenInterpreter

        interpreter = OpenInterpreter()
    yield from show_block(_terminal(interpreter), interpreter, events)


def show_message(interpreter: OpenInterpreter, markdown: str) -> None:
    """Show a text of ours."""
    _terminal(interpreter).display.markdown(markdown)


def local_setup(interpreter: OpenInterpreter) -> None:
    """Ask which local model to use."""
    from interpreter.frontends.terminal import setup

    setup.local_setup(interpreter)


def _terminal(interpreter: OpenInterpreter) -> Terminal:
    """The terminal of this process, plain or not; it keeps what was typed ahead between turns."""
    plain, tty = interpreter.plain_text_display, Tty()
    known = _terminals.get(plain)
    if known is None or known.tty.stdout is not tty.stdout or known.tty.stdin is not tty.stdin:
        _terminals[plain] = known = Terminal(plain, tty)
    return known
