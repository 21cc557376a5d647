"""Python in a live runtime: which Python runs, and how its variables return to earlier states."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.errors import NotRestorableError
from interpreter.leaves import load
from interpreter.messages import Chunk
from interpreter.runtimes import built_in
from interpreter.runtimes.block import notice
from interpreter.runtimes.launch import Launch, RuntimeContext, program_version
from interpreter.runtimes.live import LiveLanguage
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.snapshots import EVERYTHING
from interpreter.runtimes.state import SHOW_TIMEOUT, Restored, Saving, numbers
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.runtimes.base import BaseLanguage

DRIVER = Path(__file__).with_name("driver") / "start.py"
NO_FORK = (
    "This system can't copy a running process, so Python variables can't be restored. Run the blocks again instead."
)
ENDED = "The Python session has ended. Run a block first."
NOT_KEPT = (
    "A Python block is running, and no snapshot of the variables before it was kept: `computer.undo_snapshots` is 0, "
    "or memory was low."
)
GONE = "That state of the Python session is no longer available: it was too old, or memory was low."


class Python(built_in.Python, LiveLanguage):
    """Keeps variables, imports and functions from block to block; uses IPython if it is installed."""

    uses_environment = True
    installer = "pip"
    shared_form = "json"
    has_views = True
    needs_posix = (
        'need Linux or macOS. On Windows, run Open Interpreter inside WSL, or set computer.python = "in-process" to '
        "run Python in your own process."
    )

    gate: Any = None  # handles system calls of copies that were in an overlay, see preview/system_calls.py

    @classmethod
    def variant(cls, context: RuntimeContext) -> type[BaseLanguage]:
        if context.python != "in-process":
            return cls
        implementation: type[BaseLanguage] = load(cls.in_process)
        return implementation

    def version(self) -> str | None:
        environment = self.context.python_environment()
        if environment.supervisor == sys.executable:
            return platform.python_version()
        return program_version(environment.python, self.context.containment)

    def installed(self) -> str | None:
        return f"Python {number}" if (number := self.version()) else None

    def launch(self) -> Launch:
        env, chosen = self.context.environment(), self.context.python_environment()
        worker = ["driver", str(DRIVER), *([chosen.folder] if chosen.is_layer else [])]
        # A warm parent has imported from our own environment, but packages installed above it must come first.
        preload = () if chosen.is_layer and chosen.installed() else tuple(self.context.preload)
        if preload and chosen.stack:
            preload = (chosen.places[1], *preload)
        return Launch(worker, python=chosen.supervisor, env=env, cwd=self.context.cwd, preload=preload)

    def fields(self) -> Frame:
        context = self.context
        fields: Frame = {
            "colors": context.colors,
            "active_lines": context.active_lines,
            "table_rows": context.table_rows,
        }
        fields["names"] = list(context.names)
        return fields if context.skills is None else {**fields, "skills": context.skills()}

    def advice(self, event: Frame) -> Iterator[Chunk]:
        if module := event.get("missing"):
            command = self.context.python_environment().install_command(module)
            what = ""
            if command and self.context.offline:
                what = " Offline mode is on, so it can't be installed now."
            elif command:
                what = f" If it is a package, install it with: {command}"
                self.missing = module
            yield notice(f"There is no module {module!r} in this environment.{what}\n")

    def missing_imports(self, code: str) -> list[str]:
        from interpreter.runtimes.missing_packages import first_imports

        chosen = self.context.python_environment()
        names = [name for name in first_imports(code) if name not in sys.stdlib_module_names]
        paths = [(os.path.join(place, name) for place in (*chosen.places, self.context.cwd)) for name in names]
        names = [
            name
            for name, paths in zip(names, paths, strict=True)
            if not any(os.path.exists(path) or os.path.exists(f"{path}.py") for path in paths)
        ]
        runtime = self.start() if names else None
        if runtime is None or not runtime.alive or runtime.launch.containment is not self.context.containment:
            return []
        answer = runtime.query({"op": "inspect", "modules": names}, SHOW_TIMEOUT, early=True)
        return [name for name in names if answer is not None and name in (answer.get("missing") or ())]

    def installation(self, modules: Sequence[str]) -> tuple[list[str], str, str]:
        from interpreter.runtimes.missing_packages import package_names

        names, installer = package_names("pip", modules), self.context.python_environment().installer
        options = ["--only-binary", ":all:"]  # building from source would run the author's code
        # Retry once, after which pip reports the reason.
        arguments = ["-m", "pip", "install", *options, "--retries", "1", "--no-input", "--progress-bar", "off", *names]
        argv = f"[__import__('sys').executable, *{arguments}]"
        if installer == "uv":
            argv = str(["uv", "pip", "install", *options, *names])
        code = f"raise SystemExit(__import__('subprocess').call({argv}))" if installer and names else ""
        return names, f"pip install {' '.join(names)}", code

    def part_before(self, code: str, line: int, module: str) -> str:
        import ast

        try:
            ends = [node.end_lineno or 0 for node in ast.parse(code).body if node.lineno <= line]
        except (SyntaxError, ValueError):
            ends = []
        return super().part_before(code, max(ends, default=line), module)

    # -- states --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> int | None:
        return self.present if self._can_rewind() else None

    def points(self) -> list[int]:
        return sorted(self.runtime.snapshots.states - {self.present}) if self.runtime is not None else []

    def restore(self, state: int) -> Restored:
        if not self._can_rewind():
            raise NotRestorableError(
                "Variable undo is off (setting `computer.undo_snapshots`)." if hasattr(os, "fork") else NO_FORK
            )
        if state == self.present:
            return Restored()
        runtime = self.runtime
        if runtime is None or state not in runtime.snapshots.states:
            raise NotRestorableError(GONE)
        self.check_idle("A Python block is running, so its session can't be restored now.")
        self._note_place()
        if runtime.alive:
            runtime.snapshots.take(self.present, self.most_snapshots)
        restored = self._promote(runtime, state)
        if restored is None:
            raise NotRestorableError(GONE)
        return restored

    def hand_over(self, other: Python, before: int | None) -> Restored:
        """By fork, also where no snapshots are kept; for another Python program, the variables are carried there."""
        runtime = self.runtime
        if not hasattr(os, "fork"):
            raise NotRestorableError(NO_FORK)
        if runtime is None or (before is None and not runtime.alive):
            raise NotRestorableError(ENDED)
        if before is not None and before not in runtime.snapshots.states:
            raise NotRestorableError(NOT_KEPT)
        launch = other.contained_launch()
        copy = Runtime(runtime.launch, runtime.name)
        try:
            said = runtime.snapshots.split(copy, before)
            if said is None:
                raise NotRestorableError(
                    "Can't copy the Python session: there may not be enough memory, or too many processes."
                )
            lost = list(said["lost"])
            if replace(launch, env=runtime.launch.env, cwd=runtime.launch.cwd) != runtime.launch:
                other.runtime = Runtime(launch, runtime.name)
                lost += copy.snapshots.carry_to(other.runtime, runtime.folder)
            else:
                other.runtime = copy
                lost += copy.snapshots.carry() if said["unknown_threads"] else []
        except BaseException:
            copy.close()
            raise
        return Restored(lost)

    def take_back(self, other: Python) -> Restored:
        """Take over what another runtime has made of these variables; earlier states can still be restored."""
        runtime, theirs = self.runtime, other.runtime
        if runtime is None or theirs is None or not (runtime.alive and theirs.alive):
            raise NotRestorableError(ENDED)
        self._note_place()
        if self._can_rewind():
            runtime.snapshots.take(self.present, self.most_snapshots)
        lost = theirs.snapshots.carry_to(runtime, theirs.folder)
        self._number = other.present
        self.known_cwd, self.known_env = None, {}  # a fresh worker gets both
        return Restored(lost)

    def save(self, most: int, seconds: float) -> Saving | None:
        if self.runtime is None or self.runtime.busy or not self.has_begun():
            return None
        return self.runtime.snapshots.save(most, seconds)

    def load(self, data: bytes) -> Restored:
        self.check_idle("A Python block is running: variables cannot be restored now.")
        with self._order:
            with Hold():
                runtime = self.start()
                runtime.have_worker()
                self._number = next(numbers)  # the state before cannot be restored
                self.known_cwd = None
            lost = [EVERYTHING]
            try:
                lost = runtime.snapshots.load(data)
            finally:
                if lost == [EVERYTHING]:  # Ctrl-C, or no answer: it may still be loading them
                    runtime.control.say("kill")
                    runtime.ended.wait()
        if lost:
            raise NotRestorableError(f"Not restored: {lost[0]}.")
        return Restored()

    def snapshot(self) -> tuple[int, int] | None:
        """Return the state only if the end of the last block left no snapshot of it."""
        if not self._can_rewind() or self.state_before in self.start().snapshots.states:
            return None
        return self.state_before, self.most_snapshots

    def settle(self, event: Frame) -> None:
        """Take the next block's snapshot now. If threads run, only that block knows what to keep."""
        if self._can_rewind() and not event.get("threads") and self.runtime is not None:
            self.runtime.snapshots.take_soon(self.present, self.most_snapshots)

    @property
    def most_snapshots(self) -> int:
        return self.context.snapshots + 1  # one of them is the present state

    def _can_rewind(self) -> bool:
        return self.context.snapshots > 0 and hasattr(os, "fork")

    def _promote(self, runtime: Runtime, state: int) -> Restored | None:
        report = runtime.snapshots.promote(state)
        if report is None:
            return None
        lost = list(report["lost"])
        if report["unknown_threads"]:
            lost += runtime.snapshots.carry()
        self._return_to(state)
        return Restored(lost, report["running"])

    def revive(self, runtime: Runtime) -> Iterator[Chunk]:
        """Continue with the newest snapshot after the worker ended between blocks, by a thread or a signal."""
        ending, present = runtime.how_ended, self.present
        state = present if present in runtime.snapshots.states else max(self.points(), default=0)
        restored = self._promote(runtime, state)
        if restored is None:
            yield from super().revive(runtime)
            return
        then = "that left them" if state == present else "they were some blocks ago, because newer snapshots are gone"
        sentences = f"The Python session ended ({ending}) since the last block. The variables are as {then}. "
        yield notice(f"{sentences}{restored}".rstrip() + "\n")

    def exited(self, event: Frame) -> Iterator[Chunk]:
        """Continue with the newest snapshot after the worker ended during a block, so that only the block is lost."""
        runtime, points, before = self.runtime, self.points(), self.state_before
        state = before if before in points else max(points, default=0)
        restored = self._promote(runtime, state) if runtime is not None and state and not event["startup"] else None
        if restored is None:
            yield from super().exited(event)
            return
        then = "before it" if state == before else "some blocks ago, because newer snapshots are gone"
        sentences = (
            f"The Python session ended ({event['how']}). Only this block is lost: the variables are as they were "
            f"{then}. {restored}"
        )
        yield notice(sentences.rstrip() + "\n")
        yield self.closing(event["code"], "timed_out" if event["why"] == "timed_out" else "died")
