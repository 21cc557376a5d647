"""The states that a live session goes through, and what a return to an earlier one brings back."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

numbers = itertools.count(1)  # of states; two sessions share one only where they split
NOT_TAKEN_ALONG = "The variables of {name} cannot be taken along: its blocks can be run again."


@dataclass(frozen=True)
class Place:
    """Where a state found the working directory and the exported variables."""

    cwd: str  # that all languages share
    exported: dict[str, str | None]
    own_env: dict[str, str | None]  # what it had been told


@dataclass(frozen=True)
class Mark:
    """A moment of all sessions of a computer, to return to."""

    states: dict[str, int]  # by language
    cwd: str
    exported: dict[str, str | None]


@dataclass(frozen=True)
class Restored:
    """A return to an earlier state: what it could not bring back."""

    lost: list[str] = field(default_factory=list)  # threads, open sockets and pipes, variables that cannot move
    running: list[str] = field(default_factory=list)  # child processes: they go on, and are nobody's now

    def __str__(self) -> str:
        said = []
        if self.lost:
            said.append(f"Not brought back: {listed(self.lost)}.")
        if self.running:
            said.append(f"Still running, on its own: {listed(self.running)}.")
        return " ".join(said)


def listed(things: list[str]) -> str:
    """Each once, with how often it is there."""
    counted = {thing: things.count(thing) for thing in things}
    return ", ".join(thing if count == 1 else f"{thing} (and {count - 1} more)" for thing, count in counted.items())
