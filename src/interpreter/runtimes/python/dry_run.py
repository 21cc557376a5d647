"""Two workers of one session for a while: a copy has taken the place of the other, which stands aside."""

from __future__ import annotations

import contextlib
import queue
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interpreter.errors import BusyError, NotPreviewableError
from interpreter.messages import Chunk
from interpreter.runtimes.block import notice
from interpreter.runtimes.calls import OnlyTried
from interpreter.runtimes.live import how_done, how_it_ended
from interpreter.runtimes.overlay import View, take_in
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.seccomp_notify import Denied, Gate, others_in
from interpreter.runtimes.state import numbers

if TYPE_CHECKING:
    from interpreter.runtimes.python.language import Python


NO_LIMIT = 1000  # snapshots: the copy pushes none out


class Aside:
    """The worker that stands aside, and the way back to it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._worker = runtime.lines()

    def replace(self, state: int, entrance: int) -> bool:
        """Have a copy of the worker in its place, with one more descriptor; False if that cannot be."""
        runtime, snapshots = self._runtime, self._runtime.snapshots
        snapshots.expect_change()
        snapshots.take_soon(state, NO_LIMIT)
        snapshots.states.discard(state)
        runtime.spawn(f"try {state}", more=[entrance])
        try:
            left = snapshots.left_by_change()  # the worker that stands aside, and what it started
        except BaseException:  # Ctrl-C
            self.settle(keep=False)
            raise
        if left is None:
            self._return()
        return left is not None

    def wait_ready(self, patience: float) -> Frame | None:
        """What the copy says of itself; None if it ended, or says nothing."""
        with contextlib.suppress(queue.Empty):
            return self._runtime.snapshots._woken.get(timeout=patience) or None
        return None

    def leave_view(self, patience: float) -> list[str] | None:
        """Have the copy come back to the real files; what it could not bring along, None if it did not come."""
        runtime = self._runtime
        answer = runtime.questions.put_early({"op": "leave_view"}, patience)
        return list(answer["lost"]) if answer is not None and runtime.alive else None

    def settle(self, keep: bool, place: int = 0) -> None:
        """Let one of the two go: this one, or the copy and all that is in its mount namespace."""
        runtime = self._runtime
        if not keep:
            self._return()
        runtime.snapshots.expect_change()
        runtime.control.say("settle keep" if keep else f"settle drop {place}")
        if runtime._process is not None:
            runtime.snapshots.wait_settled()

    def _return(self) -> None:
        self._runtime.take_back(self._worker)


def answers(runtime: Runtime, patience: float) -> bool:
    """Whether the worker is ready before long, and can be copied."""
    return runtime.questions.put_early({"op": "leave_view"}, patience) is not None


PATIENCE = 60.0  # seconds
NO_COPY = "The Python session cannot be copied now, so that a block could be tried out in the copy."
THREADS = "A library in the Python session has threads that cannot be copied, so no block can be tried out in it."


class PythonTrial:
    """From the fork to the choice between the two processes."""

    def __init__(self, language: Python, view: View) -> None:
        self.lost: list[str] = []
        self._language, self._view = language, view
        self.active = language
        self._runtime = runtime = language.start()
        if runtime.block is not None and not runtime.block.finished:
            raise BusyError("A Python block is running: none can be previewed now.")
        self._done: Frame | None = None
        self._over = False
        if language.gate is None:
            language.gate = Gate()
        self._gate = language.gate
        if not runtime.alive:
            language._cwd, language._env = runtime.launch.cwd, {}
        runtime.have_worker()
        if not answers(runtime, PATIENCE):
            raise NotPreviewableError(NO_COPY)
        self._keep_state()
        ours, theirs = socket.socketpair()
        with theirs:
            self._aside = Aside(runtime)
            replaced = self._aside.replace(next(numbers), theirs.fileno())
        if not replaced:
            ours.close()
            raise NotPreviewableError(NO_COPY)
        self._begin(ours)

    def _keep_state(self) -> None:
        """Have a snapshot of now, so that the block can be taken back after it was kept."""
        kept = self._language.snapshot_of_now()
        if kept is not None:
            self._runtime.snapshots.take(*kept)

    def _begin(self, line: socket.socket) -> None:
        try:
            outside = take_in(self._view, line, self._gate)
            ready = self._aside.wait_ready(PATIENCE)
            if ready is None:
                raise NotPreviewableError(NO_COPY)
            if ready["unknown_threads"]:
                raise NotPreviewableError(THREADS)
        except BaseException:
            self.drop()
            raise
        self.lost = [*ready["lost"], *outside]

    # -- the block -----------------------------------------------------------------------------------------------

    def run(self, code: str) -> Iterator[Chunk]:
        language, shared = self._language, self._language.context
        language._stopped = False
        news = shared.news_for(language._env, language._cwd)
        fields = {**news, **language.fields()}
        self._runtime.calls.tools = OnlyTried()
        for event in self._runtime.run(code, language.channels(), fields, shared.timeout, language._was_stopped):
            match event["event"]:
                case "done":
                    self._done = event
                    yield language.closing(event.get("exit_code"), how_done(event))
                case "exited" | "detached":
                    yield from self._ended(event)
                case _:
                    yield from language._chunks(event)

    def _ended(self, event: Frame) -> Iterator[Chunk]:
        how = how_it_ended(event["code"]) if event["event"] == "exited" else "it was moved to the background"
        told = f"The copy of the Python session in which this ran has ended ({how}). The session itself goes on.\n"
        yield notice(told)
        ended = "timed_out" if event.get("why") == "timed_out" else "died"
        yield self._language.closing(event.get("code"), ended)

    @property
    def died(self) -> bool:
        return self._over or self._done is None or not self._runtime.alive

    @property
    def denied(self) -> list[Denied]:
        said = (self._done or {}).get("denied", {"paths": [], "hosts": []})
        named = [Denied("network", "python", host) for host in said["hosts"]]
        paths = [Denied("write", "python", path) for path in said["paths"]]
        found = [each for each in self._gate.denied if not (named and is_nameless_network(each))]
        return [*found, *named, *paths]

    # -- the choice ----------------------------------------------------------------------------------------------

    def keep(self) -> list[str]:
        self._over = True
        self._gate.open(self._view.place)
        left = [f"{each}, which goes on where it was" for each in others_in(self._view.place, self._runtime.pid)]
        lost = self._aside.leave_view(PATIENCE)
        if lost is None:
            self._aside.settle(keep=False, place=self._view.place)
            return ["the variables, which are as they were before the block"]
        self._aside.settle(keep=True)
        language = self._language
        language._before = language.leave_state()
        language._take_news(self._done or {})
        return [*self.lost, *(each for each in lost if each not in self.lost), *left]

    def drop(self) -> None:
        if self._over:
            return
        self._over = True
        if self._runtime.block is not None:
            self._runtime.settle(self._runtime.block)
        self._aside.settle(keep=False, place=self._view.place)
        self._gate.open(self._view.place)


def is_nameless_network(denied: Denied) -> bool:
    """Whether it is what a host's name says better."""
    return denied.what == "network" and not denied.target and denied.by.startswith("python")
