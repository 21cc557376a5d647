"""The chat: prompt, turn, prompt, until the user leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interpreter.errors import InterpreterError
from interpreter.frontends.terminal import intro, magics
from interpreter.frontends.terminal.reader import Reader, reader_for
from interpreter.frontends.terminal.turn import show_turn
from interpreter.frontends.terminal.warm_up import WarmUp

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk
    from interpreter.session import Event

_LEAVING = ("exit", "quit", "exit()", "quit()")
_HOW_TO_LEAVE = "Press Ctrl-C again, or Ctrl-D, to leave."
_FOR_THE_SHELL = re.compile(r"interpreter\s+--?\w|pip3?\s+install\s[^\n]*\bopen-interpreter\b")


def converse(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[Chunk]:
    """Ask for messages and answer them; yields every chunk of every turn."""
    intro.tell_of_rules(terminal, interpreter)
    terminal.forks = None
    reader, warm_up = reader_for(terminal, interpreter), WarmUp()
    reader.when_ready(warm_up.begin)
    while (text := _next_message(terminal, reader)) is not None:
        warm_up.finish()
        if text.lstrip().startswith(magics.SIGNS):
            with told(terminal, interpreter):
                magics.run(terminal, interpreter, text.strip())
                interpreter.journal.sync()  # what it changed in the conversation
            if terminal.left:
                return
            if (current := _current(terminal, interpreter)) is not interpreter:
                interpreter = current
                reader = reader_for(terminal, interpreter)
        elif _FOR_THE_SHELL.match(text.strip()):
            terminal.display.line(
                f"That is for your shell: leave with Ctrl-D first, or run it here with !{text.strip()}"
            )
        elif text.strip().lower() in _LEAVING:
            return
        elif text.strip():
            yield from answer(terminal, interpreter, text)


def _current(terminal: Terminal, interpreter: OpenInterpreter) -> OpenInterpreter:
    """The fork that the user is in now."""
    return terminal.forks.current if terminal.forks is not None else interpreter


def answer(terminal: Terminal, interpreter: OpenInterpreter, text: str, data: str = "") -> Iterator[Chunk]:
    """One turn; an error is shown, and the chat goes on."""
    with told(terminal, interpreter):
        yield from show_turn(terminal, interpreter, send(terminal, interpreter, text, data))


@contextmanager
def told(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[None]:
    """What goes wrong here is told once, in words, and does not end the chat."""
    try:
        yield
    except KeyboardInterrupt:
        terminal.interrupted = True  # in the moment before or after the turn
    except BrokenPipeError:
        raise  # nobody reads any more
    except InterpreterError as error:
        terminal.problem = error
        terminal.error(intro.explained(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not take the conversation with it
        terminal.error(fault(error, interpreter.debug))


def fault(error: Exception, debug: bool) -> str:
    """An error that nobody expected, in a line, or whole for those who want to see it."""
    if debug:
        from traceback import format_exception

        return "".join(format_exception(error)).rstrip()
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"Something went wrong inside Open Interpreter: {what}. --debug shows where."


def send(terminal: Terminal, interpreter: OpenInterpreter, text: str, data: str = "") -> Iterator[Event]:
    """The turn that answers a message; the files and images that it names go along, but not what its data names."""
    from interpreter.app import attachments

    outgoing = attachments.prepare(interpreter, text, data)
    for name in outgoing.missing:
        terminal.tell(f"There is no file {name}.")
    if found := outgoing.attached:
        folder = interpreter.computer.surroundings.cwd
        terminal.tell(f"Attached: {', '.join(os.path.relpath(each.path, folder) for each in found)}.")
        terminal.show_pictures(interpreter, [each.path for each in found if each.is_image])
    if outgoing.hides_images:
        terminal.tell(f"{interpreter.llm.model} cannot look at images: it is told where they are.")
    return attachments.send(interpreter, outgoing)


def _next_message(terminal: Terminal, reader: Reader) -> str | None:
    """The next message, None to leave; what was sent off during the last turn comes first."""
    if not terminal.interrupted and (sent := terminal.typed.take_sent()):
        terminal.tty.write(f"> {sent}\n")
        return sent
    terminal.interrupted = False
    pressed = 0
    while True:
        try:
            if pressed:
                terminal.display.line(_HOW_TO_LEAVE)  # in here, since the next Ctrl-C may come while it is shown
            return reader.read(terminal.typed.take_all())
        except EOFError:
            terminal.tty.write("\n" if terminal.plain else "")
            return None
        except KeyboardInterrupt:
            pressed += 1
            if pressed > 1:
                return None
