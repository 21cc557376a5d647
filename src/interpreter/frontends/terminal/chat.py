"""The chat: greet the user, then read a message and answer it, until the user leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from interpreter.console_text import PROSE, visible
from interpreter.errors import (
    InterpreterError,
    LiteLLMMissingError,
    MissingKeyError,
    PolicyError,
    ProviderNotFoundError,
)
from interpreter.frontends.terminal.approval import MODES
from interpreter.frontends.terminal.terminal import LineReader, reader_for
from interpreter.frontends.terminal.turn import show_turn

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.prompt import Prompt
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.messages import Chunk
    from interpreter.session import Event


_MAGIC_SIGNS = ("%", "!", ">>>")
_LEAVING = ("exit", "quit", "exit()", "quit()")
_HOW_TO_LEAVE = "Press Ctrl-C again, or Ctrl-D, to leave."
_FOR_THE_SHELL = re.compile(r"interpreter\s+--?\w|pip3?\s+install\s[^\n]*\bopen-interpreter\b")
_NEEDED_SOON = (
    "interpreter.agent.turn",
    "interpreter.llm",
    "interpreter.computer_api",
    "rich.console",
    "markdown_it",
    "rich.table",
    "pygments.lexers.python",
    "httpx",
)
_NO_MODEL_HELP = """\
Ways to a model:
  export OPENAI_API_KEY=...     a key; other providers have their own variables
  interpreter --setup           paste a key, or choose a model on this machine
  interpreter --api_base http://localhost:8000/v1 --model NAME
                                any server that speaks OpenAI's format"""


def converse(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[Chunk]:
    """Ask for messages and answer them; yields every chunk of every turn."""
    try:
        check_rules(interpreter)
    except PolicyError as error:
        terminal.tell(f"{error} No code runs until that is mended.", "error")
        terminal.display.finish()
    terminal.forks = None
    reader, warm_up = reader_for(terminal, interpreter), Thread(target=_warm_up, name="warm-up", daemon=True)
    reader.when_ready(warm_up.start)
    while (text := _next_message(terminal, reader)) is not None:
        if warm_up.ident is not None:
            warm_up.join()  # before anything imports the same modules
        if text.lstrip().startswith(_MAGIC_SIGNS):
            from interpreter.frontends.terminal import magics

            with _errors_shown(terminal, interpreter):
                magics.run(terminal, interpreter, text.strip())
                interpreter.journal.sync()  # what it changed in the conversation
            if terminal.left:
                return
            if (current := _current_fork(terminal, interpreter)) is not interpreter:
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


def _current_fork(terminal: Terminal, interpreter: OpenInterpreter) -> OpenInterpreter:
    return terminal.forks.current if terminal.forks is not None else interpreter


def answer(terminal: Terminal, interpreter: OpenInterpreter, text: str, data: str = "") -> Iterator[Chunk]:
    """One turn; an error is shown, and the chat goes on."""
    with _errors_shown(terminal, interpreter):
        yield from show_turn(terminal, interpreter, send(terminal, interpreter, text, data))


@contextmanager
def _errors_shown(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[None]:
    """Errors in here are shown once, in words, and do not end the chat."""
    try:
        yield
    except KeyboardInterrupt:
        terminal.interrupted = True  # in the moment before or after the turn
    except BrokenPipeError:
        raise  # nobody reads any more
    except InterpreterError as error:
        terminal.problem = error
        terminal.error(explained(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not take the conversation with it
        terminal.error(fault(error, interpreter.debug))


def fault(error: Exception, debug: bool) -> str:
    """An unexpected error in a line, or with `debug` its traceback."""
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
        folder = interpreter.computer.context.cwd
        terminal.tell(f"Attached: {', '.join(os.path.relpath(each.path, folder) for each in found)}.")
        pictures = [each.path for each in found if each.is_image]
        if pictures and not terminal.plain:  # plain text would only repeat their names
            terminal.follow(interpreter)
            for path in pictures:
                terminal.display.picture(path)
    if outgoing.hides_images:
        terminal.tell(f"{interpreter.llm.model} cannot look at images: it is told where they are.")
    return attachments.send(interpreter, outgoing)


def _next_message(terminal: Terminal, reader: Prompt | LineReader) -> str | None:
    """The next message, None to leave; what was sent off during the last turn comes first."""
    if not terminal.interrupted and (sent := terminal.typed.take_sent()):
        terminal.tty.write(f"> {visible(sent, PROSE)}\n")
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


def greet(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """A line or two at the start of a chat."""
    from interpreter.policy.approval import mode_of
    from interpreter.version import __version__

    asked = MODES[mode_of(interpreter)]
    terminal.display.line(
        f"Open Interpreter {__version__}, model {interpreter.llm.model}\n"
        f"{asked[0].upper()}{asked[1:]}. %help lists the commands, Ctrl-D leaves."
    )
    if interpreter.os:
        try:
            interpreter.computer.display.size()
            terminal.display.line("OS mode: the model sees the screen, and code can use mouse and keyboard.")
        except InterpreterError as error:
            terminal.display.line(f"OS mode cannot begin. {error}", "error")
    terminal.display.finish()


def check_rules(interpreter: OpenInterpreter) -> None:
    """PolicyError if the rules have a mistake, before it stops the first block; nothing is loaded if there are none."""
    from interpreter.policy import files as rule_files

    if rule_files.are_there(interpreter.workspace):
        from interpreter.policy import Policy

        Policy.load(interpreter.workspace)


def explained(error: InterpreterError) -> str:
    """The text of an error. If the model cannot be asked, it adds the keys that were found, and what to do."""
    if not isinstance(error, MissingKeyError | ProviderNotFoundError) or isinstance(error, LiteLLMMissingError):
        return str(error)
    from interpreter.llm.providers import PROVIDERS

    names = [name for row in PROVIDERS for name in row.key_variables if os.environ.get(name)]
    found = f"Keys in the environment: {', '.join(dict.fromkeys(names)) or 'none'}."
    return "\n".join([str(error), found, _NO_MODEL_HELP])


def _warm_up() -> None:
    """Load what the first answer needs while the user is still typing."""
    for name in _NEEDED_SOON:
        with suppress(ImportError):  # it fails again where it is needed, and is reported there
            import_module(name)
