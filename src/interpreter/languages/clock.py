"""How long a block may take, and what is done to one that was told to end and does not."""

from __future__ import annotations

import time

SWEEP_AFTER = 0.4  # seconds from an interrupt until the block's children are killed
AGAIN_AFTER = 0.6  # until it is interrupted once more: while os.system() waits for a child, it takes none
KILL_AFTER = 1.0  # seconds from an interrupt until the worker is killed
START_PATIENCE = 25  # how often the first of these steps is put off for a worker that is still starting


class Clock:
    """When a block has to be pressed next, and why it ended if it was."""

    def __init__(self, timeout: float | None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout
        self.stage = "running"
        self.why: str | None = None
        self._patience = START_PATIENCE

    def remaining(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def is_patient(self) -> bool:
        """Whether a worker that is not ready yet gets a little more time; if so, it has it now."""
        self._patience -= 1
        if self._patience >= 0:
            self._until = time.monotonic() + SWEEP_AFTER
        return self._patience >= 0

    def interrupted(self) -> None:
        self.why = self.why or "interrupted"
        if self.stage == "running":  # pressing again does not put off what comes next
            self.advance()

    def advance(self) -> None:
        match self.stage:
            case "running":
                self.stage, self._until = "asked", time.monotonic() + SWEEP_AFTER
            case "asked":
                self.stage, self._until = "swept", time.monotonic() + AGAIN_AFTER - SWEEP_AFTER
            case "swept":
                self.stage, self._until = "pressed", time.monotonic() + KILL_AFTER - AGAIN_AFTER
            case _:
                self.stage, self._until = "killed", None
