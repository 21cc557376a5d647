"""The host's side of snapshots: have them taken, go on with one, and begin another session from one."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.state import numbers

if TYPE_CHECKING:
    from interpreter.runtimes.runtime import Runtime

PATIENCE = 60.0  # seconds; a machine that is short of memory takes its time
CARRY_PATIENCE = 600.0
ALL = ["all variables"]


class Snapshots:
    """The earlier states that a session's worker left waiting copies of."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.states: set[int] = set()  # that there is a snapshot of, or is about to be
        self._promotion: queue.SimpleQueue[tuple[str, list[str]]] = queue.SimpleQueue()  # how it goes
        self._woken: queue.SimpleQueue[Frame] = queue.SimpleQueue()  # what a new worker says of itself

    # -- taking ----------------------------------------------------------------------------------------------

    def expect(self, state: int, most: int) -> int:
        """Tell the supervisor of a snapshot to come; the worker's end of the line between the two."""
        ours, theirs = socket.socketpair()
        with ours:
            self._runtime.control.say(f"snapshot {state} {most}", [ours.fileno()])
        self.states.add(state)
        return theirs.detach()

    def take_soon(self, state: int, most: int) -> None:
        """Have one taken between blocks, and do not wait for it."""
        fd = self.expect(state, most)
        try:
            self._runtime.send({"op": "snapshot"}, [fd])
        finally:
            os.close(fd)

    def take(self, state: int, most: int) -> None:
        """See to it that there is one of the present state."""
        if state not in self.states:
            self.take_soon(state, most)
        self._runtime.questions.put({"op": "snapshot"}, PATIENCE)  # answered when it is there

    def forget(self) -> None:
        states, self.states = self.states, set()
        if states:
            self._runtime.control.say("forget " + " ".join(map(str, states)))

    # -- going on --------------------------------------------------------------------------------------------

    def promote(self, state: int) -> Frame | None:
        """Go on with a snapshot, which is used up by that; what it says of itself, or None if it is gone."""
        runtime = self._runtime
        if state not in self.states or runtime.control.lost:
            return None
        self.states.discard(state)
        before = runtime.lines() if runtime.alive else None
        self.expect_change()
        runtime.spawn(f"promote {state}")
        left = self.left_by_change()
        if left is None:
            runtime.take_back(before)
            return None
        frame = self.first_words()
        return {**frame, "running": [f"{' '.join(name)} ({pid})" for pid, *name in left]} if frame else None

    def expect_change(self) -> None:
        """From here on, what the supervisor says of a change of workers is heard, or that it is gone."""
        self._woken, self._promotion = queue.SimpleQueue(), queue.SimpleQueue()
        if self._runtime.control.lost:  # that was told to who listened then
            self._promotion.put(("missing", []))

    def left_by_change(self) -> list[list[str]] | None:
        """Wait for it; the processes that outlive it, None if there is no change."""
        left: list[list[str]] = []
        while (said := self._promotion.get())[0] == "left":
            left.append(said[1])
        return None if said[0] == "missing" else left

    def wait_settled(self) -> None:
        """Wait for the end of a trial."""
        while self._promotion.get()[0] not in ("settled", "missing"):
            pass  # what one that was given up still had to say

    def first_words(self) -> Frame | None:
        """What a new worker says of itself; None if it does not find its way back."""
        with contextlib.suppress(queue.Empty):
            return self._woken.get(timeout=PATIENCE) or None
        self._runtime.control.say("kill")  # the next block gets a new one
        return None

    def carry(self) -> list[str]:
        """Replace a worker that cannot go on by a fresh one with its variables; what could not be moved."""
        packed = self._runtime.folder / "variables"
        lost = self._carried({"op": "pack", "path": str(packed)})
        self._runtime.spawn()
        return lost + self._carried({"op": "unpack", "path": str(packed)})

    def carry_to(self, other: Runtime, folder: Path) -> list[str]:
        """Give a fresh worker of another session the variables of this one, which ends; it can write to the folder."""
        packed = folder / "variables"
        lost = self._carried({"op": "pack", "path": str(packed)})
        other.spawn() if other.alive else other.start()
        if packed.is_file() and not packed.is_symlink():  # code in a sandbox can put anything there
            other.inherits = True
            moved = shutil.move(packed, other.folder / packed.name)
            lost += other.snapshots._carried({"op": "unpack", "path": str(moved)})
        self._runtime.close()
        return lost

    def _carried(self, frame: Frame) -> list[str]:
        answer = self._runtime.questions.put_early(frame, CARRY_PATIENCE)
        return ALL if answer is None else list(answer["lost"])

    # -- another session -------------------------------------------------------------------------------------

    def split(self, other: Runtime) -> Frame | None:
        """Begin another session from the present state; what its worker says of itself, None if that failed."""
        state = next(numbers)
        self.take(state, len(self.states) + 2)
        self.states.discard(state)  # it is not to be returned to
        self.expect_change()
        other.start_from(self._runtime, f"split {state}")
        return other.snapshots.first_words() if self.left_by_change() is not None else None

    # -- what the reader's thread calls ------------------------------------------------------------------------

    def gone(self, state: int) -> None:
        self.states.discard(state)

    def promotion_said(self, what: str, words: list[str]) -> None:
        self._promotion.put((what, words))

    def worker_ready(self, frame: Frame) -> None:
        self._woken.put(frame)

    def worker_exited(self) -> None:
        self._woken.put({})
