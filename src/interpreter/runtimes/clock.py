"""How long a block may take, and what is done to one that was told to end and does not."""

from __future__ import annotations

import time
from collections.abc import Callable

from interpreter.runtimes.starving import Hunger

SWEEP_AFTER = 0.4  # seconds from an interrupt until the block's children are killed
AGAIN_AFTER = 0.6  # until it is interrupted once more: while os.system() waits for a child, it takes none
KILL_AFTER = 1.0  # seconds from an interrupt until the worker is killed
START_PATIENCE = 25  # how often the first of these steps is put off for a worker that is still starting
STARVED = 0.3  # of the time: a thread that waited so long for a processor had no chance to do what was asked of it
MERCY = 75  # how often a step is put off for that


class Clock:
    """When a block has to be pressed next, and why it ended if it was."""

    def __init__(self, timeout: float | None, worker: Callable[[], int | None] = lambda: None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout
        self.stage = "running"
        self.why: str | None = None
        self._patience, self._mercy = START_PATIENCE, MERCY
        self._worker, self._hunger, self._since = worker, Hunger(lambda: None), 0.0

    def remaining(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def is_patient(self) -> bool:
        """Whether a worker that is not ready yet gets a little more time; if so, it has it now."""
        if self.is_merciful():
            return True
        self._patience -= 1
        if self._patience >= 0:
            self._wait_longer()
        return self._patience >= 0

    def is_merciful(self) -> bool:
        """Whether a worker gets more time because it could not use what it had; if so, it has it now."""
        long = STARVED * (time.monotonic() - self._since)
        starved = any(waited >= long and ran < KILL_AFTER for ran, waited in self._hunger.since())
        if starved and self._mercy > 0:
            self._mercy -= 1
            self._wait_longer()
            return True
        return False

    def _wait_longer(self) -> None:
        self._until = time.monotonic() + SWEEP_AFTER

    def interrupted(self) -> None:
        self.why = self.why or "interrupted"
        if self.stage == "running":  # pressing again does not put off what comes next
            self.advance()

    def advance(self) -> None:
        match self.stage:
            case "running":
                self.stage, self._until = "asked", time.monotonic() + SWEEP_AFTER
                self._hunger, self._since = Hunger(self._worker), time.monotonic()
            case "asked":
                self.stage, self._until = "swept", time.monotonic() + AGAIN_AFTER - SWEEP_AFTER
            case "swept":
                self.stage, self._until = "pressed", time.monotonic() + KILL_AFTER - AGAIN_AFTER
            case _:
                self.stage, self._until = "killed", None
