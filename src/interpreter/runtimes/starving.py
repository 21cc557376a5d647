"""How long a process has waited for a processor: on a busy machine, a slow worker is no stuck one."""

from __future__ import annotations

import os
from collections.abc import Callable


def times(pid: int) -> dict[str, tuple[float, float]]:
    """By thread, the seconds that it ran, and that it was ready to and did not; nothing where that is not told."""
    found: dict[str, tuple[float, float]] = {}
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                ran, waited, _ = file.read().split()
                found[task] = int(ran) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        pass  # it has ended, or this is not Linux
    return found


class Hunger:
    """How long a worker has waited for a processor, and had one, since somebody began to look; and how long we have."""

    def __init__(self, worker: Callable[[], int | None]) -> None:
        self._worker = worker
        self._before = self._now()

    def since(self) -> list[tuple[float, float]]:
        """The seconds that each thread ran, and that it waited."""
        now = self._now()
        had = {task: self._before.get(task, (0.0, 0.0)) for task in now}
        return [(now[task][0] - had[task][0], now[task][1] - had[task][1]) for task in now]

    def _now(self) -> dict[str, tuple[float, float]]:
        pid = self._worker()
        return {**times(pid), **times(os.getpid())} if pid is not None else {}  # one that is not heard cannot go on
