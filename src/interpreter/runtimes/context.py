"""What the runtimes of one session share: the working directory, exported variables, settings and collaborators."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interpreter.runtimes.launch import Containment

if TYPE_CHECKING:
    from interpreter.messages import Chunk
    from interpreter.runtimes.calls import Request, Tools

OnInput = Callable[[str, bool], "str | None"]


def nearest_folder(path: str) -> str:
    """The folder itself, or what is left above it when it was deleted."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


@dataclass
class SessionContext:
    """Shared by all languages of a computer; `cd` in one is seen by the others."""

    cwd: str = field(default_factory=os.getcwd)
    exported: dict[str, str | None] = field(default_factory=dict)  # None: unset since
    on_input: OnInput | None = None  # (prompt, is it a password) -> the answer, or None for end of file
    cancelled: Callable[[], bool] = lambda: False  # whether the turn that a block belongs to was cancelled
    keyboard: bool = False  # whether the user's keys can reach a shell block
    colors: bool = False
    timeout: float | None = None
    max_output: int = 2800
    python: str | None = None
    shell: str | None = None
    shell_rc: bool = False
    active_lines: bool = True
    snapshots: int = 20  # how many earlier states of a runtime are kept
    size: tuple[int, int] = (80, 24)  # columns, lines
    tools: Tools | None = None  # answers the calls that code makes to `computer`
    skills: Callable[[], list[str]] | None = None  # the names of those that a Python runtime starts with
    action: object = None  # the session's action that is running
    ask: Callable[[Request, Chunk], Chunk] | None = None  # gets an answer now; returns the chunk that was shown
    emit_images: bool = True  # whether the model gets the images that code shows
    containment: Containment | None = None  # the sandbox of new runtimes

    def environment(self) -> dict[str, str]:
        """The environment variables of a new runtime."""
        merged: dict[str, str | None] = {**os.environ, **self.exported}
        env = {name: value for name, value in merged.items() if value is not None}
        return self.containment.environment(env) if self.containment else env

    def own_environment(self) -> dict[str, str]:
        """The environment to look for programs in, which code in a sandbox cannot change."""
        return dict(os.environ) if self.containment else self.environment()

    def return_to(self, cwd: str, exported: dict[str, str | None]) -> None:
        """Return to an earlier directory and exported variables; what was exported since gets its outside value."""
        self.cwd = cwd
        self.leave_lost_folder()
        self.exported = {**{name: os.environ.get(name) for name in self.exported}, **exported}

    def leave_lost_folder(self) -> None:
        """If the directory was deleted, go to what is left above it; a sandbox cannot be checked from outside."""
        if self.containment is None:
            self.cwd = nearest_folder(self.cwd)
