"""A task: what the user says, in which folder, and when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eval.outcome import Missed, Outcome


@dataclass(frozen=True)
class Task:
    """`words` are said one after the other; `check` raises Missed if the effect is not there."""

    name: str
    words: tuple[str, ...]
    prepare: Callable[[Path], None]
    check: Callable[[Outcome], None]

    @property
    def kind(self) -> str:
        """What it is about: the part of its name before the slash."""
        return self.name.partition("/")[0]

    def verdict(self, outcome: Outcome) -> str:
        """Why it is not done; empty if it is."""
        try:
            self.check(outcome)
        except Missed as missed:
            return str(missed)
        except UnicodeDecodeError:
            return "a file is not UTF-8"
        return ""


def nothing(folder: Path) -> None:
    """A task that needs no files."""


def write(folder: Path, name: str, *lines: str) -> None:
    """A text file of these lines."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
