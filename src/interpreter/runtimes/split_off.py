"""The supervisor of a session that began as a copy of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.runtimes.lines import Control
    from interpreter.runtimes.processes import Processes


class SplitOff:
    """Stands where a process would: it is no child of ours, so its line says whether it is there."""

    def __init__(self, control: Control, origin: Processes) -> None:
        self._control, self._origin = control, origin
        origin.parts.add(self)

    def poll(self) -> int | None:
        return 0 if self._control.lost else None

    def wait(self, timeout: float | None = None) -> int:
        self._control.over.wait()
        self._origin.part_ended(self)
        return 0

    def kill(self) -> None:
        """It ends by itself as soon as what it waits for does."""
        self._control.over.set()
