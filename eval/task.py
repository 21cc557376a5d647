"""A task: the user's messages, its files, and its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eval.outcome import Missed, Outcome


@dataclass(frozen=True)
class Task:
    """`words` are sent one after the other; `check` raises Missed if the effect is missing."""

    name: str
    words: tuple[str, ...]
    prepare: Callable[[Path], None]
    check: Callable[[Outcome], None]

    @property
    def kind(self) -> str:
        """Return the part of its name before the slash."""
        return self.name.partition("/")[0]

    def verdict(self, outcome: Outcome) -> str:
        """Why the task failed; empty if it succeeded."""
        try:
            self.check(outcome)
        except Missed as missed:
            return str(missed)
        except UnicodeDecodeError:
            return "a file is not UTF-8"
        return ""


def nothing(folder: Path) -> None:
    """Prepare no files."""


def write(folder: Path, name: str, *lines: str) -> None:
    """Write a text file with these lines."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
