"""Commands, and the table of functions that know them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from interpreter.policy.analysis.notes import Doing, Notes


class Call(NamedTuple):
    """A command as it is called."""

    words: list[str]
    line: int
    text: str
    stdin: str | None = None
    """What it reads, where the text tells."""
    functions: Iterable[str] = ()
    """Names that the code itself has defined; what they do was looked at there."""
    piped: str = ""
    """What another command seems to print for it to read."""

    @property
    def arguments(self) -> list[str]:
        return self.words[1:]


Handler = Callable[[Call, Doing, Notes], None]

HANDLERS: dict[str, Handler] = {}


def handles(*programs: str) -> Callable[[Handler], Handler]:
    """Enter a function into the table for these programs."""

    def enter(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(programs, handler))
        return handler

    return enter
