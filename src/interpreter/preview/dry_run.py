"""Dry runs: a block runs in a copy of its runtime, which sees the workspace through a copy-on-write overlay.

For Python, the copy is a fork of the worker, and the worker itself is suspended. For the shell, it is a new shell.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interpreter.errors import NotPreviewableError
from interpreter.preview.overlay import TIMEOUT, Overlay
from interpreter.preview.system_calls import Denied, SyscallGate, others_in
from interpreter.questions import Question, Step
from interpreter.runtimes.block import notice
from interpreter.runtimes.calls import DryRunTools
from interpreter.runtimes.live import how_done
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.state import numbers

if TYPE_CHECKING:
    from interpreter.runtimes.python import Python
    from interpreter.runtimes.shell.language import Shell

NO_COPY = "Can't copy the Python session right now, which a dry run needs."


class PythonDryRun:
    """A dry run in a fork of the worker, until one of the two processes is chosen."""

    def __init__(self, language: Python, overlay: Overlay) -> None:
        self.lost: list[str] = []  # what could not be copied: connections, threads, pipes
        self.active = language  # runs the block, so `stop` must act on it
        self._overlay = overlay
        self._done: Frame | None = None
        self._over = False
        self._runtime = runtime = language.start()
        language.check_idle("A Python block is running. Try the preview again when it has finished.")
        language.gate = language.gate or SyscallGate()
        self._gate = language.gate
        if not runtime.alive:
            language.known_cwd, language.known_env = runtime.launch.cwd, {}  # where the first worker started
        runtime.have_worker()
        if runtime.query({"op": "leave_view"}, TIMEOUT, early=True) is None:  # not ready, or cannot be copied
            raise NotPreviewableError(NO_COPY)
        if language.state is not None:  # a snapshot, so that the block can be undone after it was kept
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
            if ready is None:
                raise NotPreviewableError(NO_COPY)
            if ready["unknown_threads"]:
                raise NotPreviewableError(
                    "A library in the Python session has threads that can't be copied, so a dry run is not possible."
                )
        except BaseException:
            self.drop()
            raise
        self.lost = [*ready["lost"], *outside]

    def run(self, code: str) -> Iterator[Step]:
        """Run the block and yield its chunks; an interrupt ends it as usual."""
        language, runtime = self.active, self._runtime
        language.stopped = False
        fields = language.run_fields()
        runtime.calls.tools = DryRunTools()
        runtime.settle(runtime.block)
        block = runtime.begin(code, language.channels(), fields, language.context.timeout)
        if language.was_stopped():
            runtime.interrupt()
        try:
            for event in block.events(runtime.interrupt):
                match event["event"]:
                    case "done":
                        self._done = event
                        yield language.closing(event.get("exit_code"), how_done(event))
                    case "exited" | "detached":
                        end = event.get("how", "it was moved to the background")
                        yield notice(
                            f"The copy of the Python session for this dry run has ended ({end}). The session itself is "
                            "not affected.\n"
                        )
                        ended = "timed_out" if event.get("why") == "timed_out" else "died"
                        yield language.closing(event.get("code"), ended)
                    case _:
                        yield from language.chunks(event)
        finally:
            runtime.leave(block)

    @property
    def died(self) -> bool:
        """Check whether the copy has ended, so that it cannot be kept."""
        return self._over or self._done is None or not self._runtime.alive

    @property
    def denied(self) -> list[Denied]:
        report = (self._done or {}).get("denied") or {}
        hosts = [Denied("network", "python", host) for host in report.get("hosts") or ()]
        paths = [Denied("write", "python", path) for path in report.get("paths") or ()]
        denied = self._gate.denied
        if hosts:  # these name more precisely what Python tried to reach
            denied = [
                each for each in denied if each.what != "network" or each.target or not each.by.startswith("python")
            ]
        return [*denied, *hosts, *paths]

    # -- the choice ----------------------------------------------------------------------------------------------

    def keep(self) -> list[str]:
        """Continue with the copy, in the real file system. Returns what was lost."""
        self._over = True
        self._gate.open(self._overlay.namespace)
        runtime, namespace = self._runtime, self._overlay.namespace
        left = [f"{each}, which stays where it was" for each in others_in(namespace, runtime.pid)]
        answer = runtime.query({"op": "leave_view"}, TIMEOUT, early=True)  # the copy returns to the real files
        if answer is None or not runtime.alive:
            runtime.snapshots.end_dry_run(keep=False, namespace=namespace)
            return ["the variables, which stay as they were before the block"]
        runtime.snapshots.end_dry_run(keep=True)
        self.active.state_before = self.active.leave_state()
        self.active.apply_changes(self._done or {})
        return [*self.lost, *(each for each in answer.get("lost") or () if each not in self.lost), *left]

    def drop(self) -> None:
        """Kill the copy and everything that it started, and leave the runtime as it was."""
        if self._over:
            return
        self._over = True
        self._runtime.settle(self._runtime.block)
        self._runtime.snapshots.end_dry_run(keep=False, namespace=self._overlay.namespace)
        self._gate.open(self._overlay.namespace)


# -- the shell ---------------------------------------------------------------------------------------------------------


class ShellDryRun:
    """A dry run in a new shell, until the live one takes over its state or not."""

    def __init__(self, language: Shell, overlay: Overlay) -> None:
        language.check_idle("A shell block is running. Try the preview again when it has finished.")
        self.lost: list[str] = []
        self._language, self._overlay, self._gate = language, overlay, SyscallGate()
        self._code, self._ended, self._over = "", "", False
        with tempfile.TemporaryDirectory(prefix="interpreter-") as folder, socket.socket(socket.AF_UNIX) as door:
            door.bind(f"{folder}/door")
            door.listen(1)
            door.settimeout(TIMEOUT)
            self.active = language.in_overlay(f"{folder}/door")
            copy = self.active.start()
            self.active.known_cwd, self.active.known_env = None, {}  # its state may be older than both
            overlay.shared.append(str(copy.folder))
            try:
                line, _ = door.accept()
                overlay.enter(line, self._gate)
            except BaseException as error:
                self.drop()
                if isinstance(error, TimeoutError):
                    raise NotPreviewableError("Can't start a shell for the dry run.") from error
                raise

    def run(self, code: str) -> Iterator[Step]:
        self._code = code
        for step in self.active.run(code):
            if not isinstance(step, Question):
                self._ended = step.get("ended", self._ended)
            yield step

    @property
    def died(self) -> bool:
        return self._over or self._ended in ("", "died", "background")

    @property
    def denied(self) -> list[Denied]:
        return self._gate.denied

    def keep(self) -> list[str]:
        """Transfer to the live shell what a state can hold, which excludes background jobs. Returns what was lost."""
        language, copy = self._language, self.active.runtime
        state, context = self.active.saved_state(), self.active.context
        left = others_in(self._overlay.namespace, copy.pid if copy is not None else None)
        self.drop()
        if state is None:
            return ["the shell's variables"]
        language.take_over(state, self._code)
        language.context.cwd = context.cwd
        language.context.exported.update(context.exported)
        language.known_cwd, language.known_env = context.cwd, dict(language.context.exported)
        return [f"{each}, which was stopped" for each in left]

    def drop(self) -> None:
        self._over = True
        self.active.terminate()
        self._gate.open(self._overlay.namespace)


# A copy of a runtime in an overlay: the block runs in the copy, then either the copy or the original is kept.
DryRun = PythonDryRun | ShellDryRun
