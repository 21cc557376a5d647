"""What a session's processes are shut in, as far as sessions need to know."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

HELD = 60  # the supervisor's number for the terminal of the block that runs
KEYBOARD = 61  # and for that of somebody at the keyboard


@dataclass(frozen=True)
class Start:
    """How a process is started."""

    argv: list[str]
    env: dict[str, str]
    cwd: str | None = None
    fds: list[int] = field(default_factory=list)  # go along


class Containment(Protocol):
    """Shuts processes in."""

    outputs: Path  # where long outputs are kept, which can be read inside

    def __hash__(self) -> int: ...

    @property
    def within(self) -> Containment | None:
        """The narrower one that this was made of."""

    @property
    def only_reads(self) -> bool:
        """Whether nothing of the user's can be changed from inside."""

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        """The variables that go along."""

    def wrap(self, start: Start, folder: Path | None = None) -> AbstractContextManager[Start]:
        """The same start inside; the folder is the session's own. Descriptors are closed at the end of the context."""

    def close(self) -> None:
        """Put everything away; its sessions have ended."""

    def shows(self, path: str) -> bool:
        """Whether a file can be seen inside under the same path; links are followed already."""

    def denials(self, code: str, done: dict[str, Any]) -> list[str]:
        """What was kept from a block that has ended, each in a line."""

    def door(self) -> int:
        """A port of this machine, through which a program outside reaches what can be reached inside."""

    def refusal(self, host: str, port: int) -> str:
        """Why a host cannot be reached, and how to ask for it; nothing if it can."""

    def may_read(self, path: Path) -> bool:
        """Whether the user's file at a path can be read inside."""

    def may_write(self, path: Path) -> bool:
        """Whether it can be written inside."""


def path_of(descriptor: int) -> str:
    """Where processes inside find a descriptor of the supervisor, which is the first of them."""
    return f"/proc/1/fd/{descriptor}"
