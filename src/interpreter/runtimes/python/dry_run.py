"""A dry run of a Python block: a forked copy of the worker enters an overlay, and the worker itself is suspended."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interpreter.errors import NotPreviewableError
from interpreter.messages import Chunk
from interpreter.runtimes.block import notice
from interpreter.runtimes.calls import DryRunTools
from interpreter.runtimes.live import how_done, how_it_ended
from interpreter.runtimes.overlay import TIMEOUT, Overlay
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.seccomp_notify import Denied, Gate, others_in
from interpreter.runtimes.state import numbers

if TYPE_CHECKING:
    from interpreter.runtimes.python import Python

NO_COPY = "The Python session cannot be copied now, so that a block could be tried out in the copy."
THREADS = "A library in the Python session has threads that cannot be copied, so no block can be tried out in it."


class PythonDryRun:
    """From the fork to the choice between the two processes."""

    def __init__(self, language: Python, overlay: Overlay) -> None:
        self.lost: list[str] = []
        self.active = language
        self._overlay = overlay
        self._done: Frame | None = None
        self._over = False
        self._runtime = runtime = language.start()
        language.check_idle("A Python block is running: none can be previewed now.")
        if language.gate is None:
            language.gate = Gate()
        self._gate = language.gate
        if not runtime.alive:
            language.expect_fresh_worker(runtime)
        runtime.have_worker()
        if runtime.query({"op": "leave_view"}, TIMEOUT, early=True) is None:  # it is not ready, or cannot be copied
            raise NotPreviewableError(NO_COPY)
        if language.state is not None:  # a snapshot of now, so that the block can be undone after it was kept
            runtime.snapshots.take(language.present, language.most_snapshots)
        ours, theirs = socket.socketpair()
        with theirs:
            replaced = runtime.snapshots.suspend_worker(next(numbers), theirs.fileno())
        if not replaced:
            ours.close()
            raise NotPreviewableError(NO_COPY)
        try:
            outside = overlay.enter(ours, self._gate)
            ready = runtime.snapshots.first_words()
            if ready is None or ready["unknown_threads"]:
                raise NotPreviewableError(NO_COPY if ready is None else THREADS)
        except BaseException:
            self.drop()
            raise
        self.lost = [*ready["lost"], *outside]

    def run(self, code: str) -> Iterator[Chunk]:
        language, runtime = self.active, self._runtime
        language.stopped = False
        fields = language.run_fields()
        runtime.calls.tools = DryRunTools()
        runtime.settle(runtime.block)
        block = runtime.begin(code, language.channels(), fields, language.context.timeout)
        if language.was_stopped():
            runtime.interrupt()
        try:
            for event in runtime.events(block):
                match event["event"]:
                    case "done":
                        self._done = event
                        yield language.closing(event.get("exit_code"), how_done(event))
                    case "exited" | "detached":
                        yield from self._ended(event)
                    case _:
                        yield from language.chunks(event)
        finally:
            runtime.leave(block)

    def _ended(self, event: Frame) -> Iterator[Chunk]:
        how = how_it_ended(event["code"]) if event["event"] == "exited" else "it was moved to the background"
        told = f"The copy of the Python session in which this ran has ended ({how}). The session itself goes on.\n"
        yield notice(told)
        ended = "timed_out" if event.get("why") == "timed_out" else "died"
        yield self.active.closing(event.get("code"), ended)

    @property
    def died(self) -> bool:
        return self._over or self._done is None or not self._runtime.alive

    @property
    def denied(self) -> list[Denied]:
        said = (self._done or {}).get("denied", {"paths": [], "hosts": []})
        hosts = [Denied("network", "python", host) for host in said["hosts"]]
        paths = [Denied("write", "python", path) for path in said["paths"]]
        found = self._gate.denied
        if hosts:  # which say better what Python tried to reach
            nameless = [each for each in found if each.what == "network" and not each.target]
            found = [each for each in found if each not in nameless or not each.by.startswith("python")]
        return [*found, *hosts, *paths]

    # -- the choice ----------------------------------------------------------------------------------------------

    def keep(self) -> list[str]:
        self._over = True
        self._gate.open(self._overlay.place)
        runtime, place = self._runtime, self._overlay.place
        left = [f"{each}, which goes on where it was" for each in others_in(place, runtime.pid)]
        answer = runtime.query({"op": "leave_view"}, TIMEOUT, early=True)  # the copy returns to the real files
        if answer is None or not runtime.alive:
            runtime.snapshots.end_dry_run(keep=False, place=place)
            return ["the variables, which are as they were before the block"]
        runtime.snapshots.end_dry_run(keep=True)
        self.active.state_before = self.active.leave_state()
        self.active.apply_changes(self._done or {})
        return [*self.lost, *(each for each in answer["lost"] if each not in self.lost), *left]

    def drop(self) -> None:
        if self._over:
            return
        self._over = True
        self._runtime.settle(self._runtime.block)
        self._runtime.snapshots.end_dry_run(keep=False, place=self._overlay.place)
        self._gate.open(self._overlay.place)
