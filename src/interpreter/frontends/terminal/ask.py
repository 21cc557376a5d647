"""One line from the user, in the way that their terminal allows."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.tty import read_line

if TYPE_CHECKING:
    from interpreter.frontends.terminal.terminal import Terminal


def ask(terminal: Terminal, question: str, password: bool = False) -> str | None:
    """The answer, or None at the end of input; KeyboardInterrupt for Ctrl-C."""
    if in_notebook():
        return _ask_in_notebook(question, password)
    if terminal.tty.can_type and not terminal.plain:
        from interpreter.frontends.terminal.prompt import ask_line

        return ask_line(terminal.tty, question, password)
    line = _read_hidden(terminal, question) if password else _read(terminal, question)
    if line is None:
        terminal.unanswered = terminal.unanswered or not terminal.tty.can_type
        terminal.tty.write("\n")
    return line


def _read(terminal: Terminal, question: str) -> str | None:
    terminal.tty.write(question)
    line = read_line(terminal.tty)
    if not line:
        return None
    if terminal.tty.can_type and select.select([terminal.tty.stdin], [], [], 0)[0]:
        # More than a line at once was pasted, not typed: it is no answer to this question.
        terminal.tty.forget_typed()
        return "\n"
    return line.rstrip("\r\n")


def _read_hidden(terminal: Terminal, question: str) -> str | None:
    if not terminal.tty.can_type:
        return _read(terminal, question)
    with terminal.tty.hidden():
        terminal.tty.write(question)
        line = read_line(terminal.tty)
    terminal.tty.write("\n")
    return line.rstrip("\r\n") if line else None


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs us: there is no terminal, but there is somebody to ask."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()


def _ask_in_notebook(question: str, password: bool) -> str | None:
    try:
        if password:
            from getpass import getpass

            return getpass(question)
        return input(question)
    except (EOFError, NotImplementedError):  # a notebook that runs without anybody
        return None
