"""How a session's processes are started, and how its worker is spoken to."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from interpreter.runtimes.containment import Containment
from interpreter.runtimes.frames import Frame
from interpreter.runtimes.spool import outputs_folder


class Dialect(Protocol):
    """How to talk to a worker that does not read JSON; its own frames are JSON lines all the same."""

    def greet(self, folder: Path) -> bytes:
        """The first words to a new worker."""

    def encode(self, frame: Frame, folder: Path) -> bytes:
        """A frame in the worker's own words; the folder is the session's, for files that go along."""


@dataclass(frozen=True)
class Launch:
    """How a session's processes are started."""

    # ["driver", path]: a file run in the supervisor's Python; ["exec", program, ...]: a program that gets the data
    # socket's number for {data}; ["stdin", program, ...]: a program whose standard input is the data socket
    worker: list[str]
    dialect: Dialect | None = None
    interrupt_frames: bool = False  # for a driver that cannot notice a signal while it is busy
    python: str = sys.executable  # runs the supervisor
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: str | None = None
    containment: Containment | None = None

    def outputs(self) -> Path:
        """Where long outputs are kept."""
        return self.containment.outputs if self.containment else outputs_folder()
