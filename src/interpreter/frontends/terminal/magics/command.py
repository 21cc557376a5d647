"""What a command of the chat is: a row of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal


class Command(NamedTuple):
    """What is typed, what it does, and the words of %help."""

    name: str
    arguments: str
    help: str
    run: Callable[[Terminal, OpenInterpreter, str], None]
