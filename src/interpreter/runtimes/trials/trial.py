"""What a trial of a block offers, whatever the language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from interpreter.messages import Chunk
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.trials.gate import Denied


class Trial(Protocol):
    """A copy of a session, in a view: the block runs in the copy, and then one of the two goes on."""

    lost: list[str]
    """What the copy does not have that the session has: connections, threads, pipes."""

    @property
    def active(self) -> BaseLanguage:
        """Runs the block, and can be told to stop."""

    def run(self, code: str) -> Iterator[Chunk]:
        """Run the block and yield its chunks; an interrupt ends it as any other."""

    @property
    def died(self) -> bool:
        """Whether the copy ended: then it cannot be kept."""

    @property
    def denied(self) -> list[Denied]:
        """What the block wanted to do and could not."""

    def keep(self) -> list[str]:
        """The copy is the session from now on, in the real file system; what could not come along."""

    def drop(self) -> None:
        """End the copy and everything that it started: the session is as it was."""
