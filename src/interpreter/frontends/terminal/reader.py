"""Where messages come from: a line editor, or plain lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from interpreter.app.own_blocks import is_unfinished
from interpreter.frontends.terminal.tty import read_line

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal


class Reader(Protocol):
    """Reads messages one by one."""

    def when_ready(self, function: Callable[[], None]) -> None:
        """Have something done once, when the user can type."""

    def read(self, default: str = "") -> str:
        """A message; EOFError at the end, KeyboardInterrupt for Ctrl-C."""


def reader_for(terminal: Terminal, interpreter: OpenInterpreter) -> Reader:
    """What reads the messages here."""
    if terminal.plain or not terminal.tty.can_type:
        return LineReader(terminal, interpreter.multi_line)
    from interpreter.frontends.terminal.prompt import Prompt
    from interpreter.frontends.terminal.status_line import facts
    from interpreter.frontends.terminal.suggestions import Suggestions

    def status() -> list[str]:
        return facts(interpreter) if interpreter.status_line else []

    completer = Suggestions(interpreter)
    return Prompt(terminal.tty, interpreter.get_oi_dir(), interpreter.multi_line, completer, status)


class LineReader:
    """Messages from a terminal without a line editor, or from something that is none."""

    def __init__(self, terminal: Terminal, marker: bool) -> None:
        self._terminal, self._marker = terminal, marker

    def when_ready(self, function: Callable[[], None]) -> None:
        function()

    def read(self, default: str = "") -> str:
        self._terminal.tty.write("> " + default)
        text = default + self._line()
        while (self._marker and text.count('"""') % 2) or is_unfinished(text):
            text += "\n" + self._line()
        return text

    def _line(self) -> str:
        line = read_line(self._terminal.tty)
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
