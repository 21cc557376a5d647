"""The host's side of snapshots: take them, return to one, start another runtime from one, and dry runs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.host.files import Folder
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.state import Saved, Saving, numbers

if TYPE_CHECKING:
    from interpreter.runtimes.runtime import Runtime, Worker

TIMEOUT = 60.0  # seconds; a machine that is short of memory is slow
CARRY_TIMEOUT = 600.0
LOAD_TIMEOUT = 60.0
EVERYTHING = "all variables"
MAX_REPORT_BYTES = 1024 * 1024  # bytes of a worker's report about saved variables
MAX_NAME_LENGTH = 200
NO_LIMIT = 1000  # snapshots: the copy of a dry run must not displace any


class Snapshots:
    """The earlier states of which a runtime's worker left waiting copies."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.states: set[int] = set()  # states with a snapshot, or one that is about to be taken
        # The reader thread fills these queues.
        self.changes: queue.SimpleQueue[tuple[str, list[str]]] = queue.SimpleQueue()  # reports of a change of workers
        self.woken: queue.SimpleQueue[Frame] = queue.SimpleQueue()  # a new worker's `ready` frame; {}: it ended
        self._suspended: Worker | None = None  # the worker that a dry run has replaced for now

    # -- taking --------------------------------------------------------------------------------------------------

    def expect(self, state: int, most: int) -> int:
        """Announce a snapshot to the supervisor. Returns the worker's end of the socket between the two."""
        ours, theirs = socket.socketpair()
        with ours:
            self._runtime.control.say(f"snapshot {state} {most}", [ours.fileno()])
        self.states.add(state)
        return theirs.detach()

    def take_soon(self, state: int, most: int) -> None:
        """Take a snapshot between blocks, without waiting for it."""
        fd = self.expect(state, most)
        try:
            self._runtime.send({"op": "snapshot"}, [fd])
        finally:
            os.close(fd)

    def take(self, state: int, most: int) -> None:
        """Make sure that there is a snapshot of the present state."""
        if state not in self.states:
            self.take_soon(state, most)
        self._runtime.query({"op": "snapshot"}, TIMEOUT)  # answered once it is taken

    def forget(self, but: int = 0) -> None:
        kept = set(sorted(self.states)[-but:] if but else ())
        old, self.states = self.states - kept, kept
        if old:
            self._runtime.control.say("forget " + " ".join(map(str, old)))

    # -- returning -----------------------------------------------------------------------------------------------

    def promote(self, state: int) -> Frame | None:
        """Continue with a snapshot, which uses it up. Returns its `ready` frame, or None if it is gone."""
        runtime = self._runtime
        if state not in self.states or runtime.control.lost:
            return None
        self.states.discard(state)
        before = runtime.worker() if runtime.alive else None
        self.expect_change()
        runtime.spawn(f"promote {state}")
        left = self.left_by_change()
        if left is None:
            runtime.restore_worker(before)
            return None
        frame = self.first_words()
        if frame is None:
            runtime.control.say("kill")  # the next block gets a new one
            return None
        return {**frame, "running": [f"{' '.join(name)} ({pid})" for pid, *name in left]}

    def expect_change(self) -> None:
        """Start collecting what the supervisor reports about a change of workers."""
        self.woken, self.changes = queue.SimpleQueue(), queue.SimpleQueue()
        if self._runtime.control.lost:  # in case that was reported before
            self.changes.put(("missing", []))

    def left_by_change(self) -> list[list[str]] | None:
        """Wait for the change. Returns the processes that survive it; None if it failed."""
        left: list[list[str]] = []
        while (report := self.changes.get())[0] == "left":
            left.append(report[1])
        return None if report[0] == "missing" else left

    def first_words(self) -> Frame | None:
        """Return a new worker's `ready` frame; None if it ended or does not report in time."""
        with contextlib.suppress(queue.Empty):
            return self.woken.get(timeout=TIMEOUT) or None
        return None

    # -- moving variables ----------------------------------------------------------------------------------------

    def carry(self) -> list[str]:
        """Replace a worker that cannot continue by a fresh one with its variables. Returns what could not be moved."""
        packed = self._runtime.folder / "variables"
        lost = self._move("pack", packed)
        self._runtime.spawn()
        return lost + self._move("unpack", packed)

    def carry_to(self, other: Runtime, folder: Path) -> list[str]:
        """Move the variables to a fresh worker of another runtime, which can write to the folder, and end this one."""
        packed = folder / "variables"
        lost = self._move("pack", packed)
        other.spawn() if other.alive else other.start()
        if packed.is_file() and not packed.is_symlink():  # code in a sandbox can put anything there
            other.inherits = True
            moved = other.folder / packed.name
            os.rename(packed, moved)  # on the same file system, so nothing is read here
            lost += other.snapshots._move("unpack", moved)
        self._runtime.close()
        return lost

    def save(self, most: int, seconds: float) -> Saving:
        """Save the variables to a file of limited size, from a copy of the worker, so that blocks need not wait."""
        folder, name = self._runtime.folder, f"saved-{next(numbers)}"
        reader, writer = os.pipe()
        frame = {"op": "save", "path": str(folder / name), "most": most, "seconds": seconds}
        try:
            self._runtime.send(frame, [writer])
        finally:
            os.close(writer)

        def wait() -> Saved | None:
            end, report = time.monotonic() + seconds + 1, b""
            try:
                while select.select([reader], [], [], max(0, end - time.monotonic()))[0]:
                    if not (part := os.read(reader, 65536)) or len(report) > MAX_REPORT_BYTES:
                        break
                    report += part
                with Folder(folder) as files:  # code can put anything there
                    data = files.read_bytes(name, most + 1)
                    files.unlink(name)
                lists = json.loads(report)
                saved, lost = ([str(each)[:MAX_NAME_LENGTH] for each in lists[key]] for key in ("saved", "lost"))
                return Saved(data, saved, lost, bool(lists.get("late"))) if len(data) <= most else None
            except (OSError, ValueError, TypeError, KeyError, AttributeError):
                return None
            finally:
                os.close(reader)

        return wait

    def load(self, data: bytes) -> list[str]:
        """Load saved variables into the worker. Returns what could not be loaded."""
        path = self._runtime.folder / "variables"
        with Folder(self._runtime.folder) as files:
            files.write_bytes(path.name, data, 0o600)
        lost = self._move("unpack", path, LOAD_TIMEOUT)
        self._runtime.inherits = True
        return lost

    def _move(self, op: str, path: Path, timeout: float = CARRY_TIMEOUT) -> list[str]:
        answer = self._runtime.query({"op": op, "path": str(path)}, timeout, early=True)
        return [EVERYTHING] if answer is None else answer.get("lost") or []

    def split(self, other: Runtime, state: int | None = None) -> Frame | None:
        """Begin another runtime from the present state; what its worker says of itself, None if that failed.

        With `state`, it begins from that snapshot, which stays. Then the worker may be running a block.
        """
        command = f"copy {state}"
        if state is None:
            state = next(numbers)
            command = f"split {state}"
            self.take(state, len(self.states) + 2)
            self.states.discard(state)  # it is not a state to return to
        other.start_from(self._runtime, command)
        frame = other.snapshots.first_words()
        if frame is None:
            other.control.say("kill")
        return frame

    # -- dry runs ------------------------------------------------------------------------------------------------

    @property
    def in_dry_run(self) -> bool:
        return self._suspended is not None

    def suspend_worker(self, state: int, entrance: int) -> bool:
        """Replace the worker by a copy, with one more descriptor. False if that is not possible."""
        runtime = self._runtime
        self._suspended = runtime.worker()
        self.expect_change()
        self.take_soon(state, NO_LIMIT)
        self.states.discard(state)
        runtime.spawn(f"try {state}", more=[entrance])
        try:
            left = self.left_by_change()  # the suspended worker, and what it started
        except BaseException:  # Ctrl-C
            self.end_dry_run(keep=False)
            raise
        if left is None:
            runtime.restore_worker(self._suspended)
            self._suspended = None
        return left is not None

    def end_dry_run(self, keep: bool, namespace: int = 0) -> None:
        """End a dry run. With `keep`, its copy replaces the worker; otherwise the suspended worker continues."""
        suspended, self._suspended = self._suspended, None
        if not keep:
            self._runtime.restore_worker(suspended)
        self.expect_change()
        self._runtime.control.say("settle keep" if keep else f"settle drop {namespace}")
        if self._runtime.is_open:
            while self.changes.get()[0] not in ("settled", "missing"):
                pass  # reports of an abandoned change
