"""Blocks that the user runs at the prompt, in the sessions that the model uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interpreter.app.own_blocks import run_own_block
from interpreter.frontends.terminal.turn import show_block

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

SIGNS = {"python": ">>> ", "shell": "!"}  # what the user types before such a block


def show_own_block(
    terminal: Terminal, interpreter: OpenInterpreter, language: str, code: str, shared: bool | None = None
) -> None:
    """Run and show it; `shared` tells the model, None does as the setting says."""
    for _ in show_block(terminal, interpreter, run_own_block(interpreter, language, code, shared)):
        pass


def python_of(text: str) -> str:
    """The code of a line or more after `>>>`; the prompts of a pasted session are no part of it."""
    lines = [line[4:] if line.startswith((">>> ", "... ")) else line for line in text.strip("\n").split("\n")]
    lines = ["" if line.rstrip() in (">>>", "...") else line for line in lines]
    first = lines[0].removeprefix(">>>")
    return "\n".join([first.lstrip() if first != lines[0] else first, *lines[1:]]).strip("\n")


def is_unfinished(text: str) -> bool:
    """Whether code after `>>>` goes on in the next line, as Python's own prompt sees it."""
    if not text.lstrip().startswith(">>>"):
        return False
    from codeop import compile_command

    code = python_of(text.lstrip())
    if not code.strip():
        return False
    ends = text.endswith(("\n", "\n..."))
    try:
        return compile_command(code + "\n" * ends) is None
    except (SyntaxError, ValueError, OverflowError):
        return False  # it runs, and Python says what is wrong; IPython takes more than Python does
