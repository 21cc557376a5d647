"""Which Python a session runs: the one asked for, else the active virtual environment's, else our own."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.errors import BusyError, NotRestorableError, SessionStartError
from interpreter.messages import Chunk
from interpreter.runtimes.block import notice
from interpreter.runtimes.launch import Launch, program_version
from interpreter.runtimes.live import LiveLanguage, how_it_ended
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.state import Restored

if TYPE_CHECKING:
    from interpreter.runtimes.base import BaseLanguage
    from interpreter.runtimes.context import SessionContext
    from interpreter.runtimes.overlay import Trial, View
    from interpreter.runtimes.seccomp_notify import Gate


def which_python(asked: str | None, env: Mapping[str, str]) -> str:
    """The program to run; `asked` may be a program, a path, or the folder of a virtual environment."""
    if asked:
        return asked_for(asked, env)
    active = env.get("VIRTUAL_ENV")
    if active and (found := python_in(Path(active))):
        return found
    return sys.executable


def asked_for(asked: str, env: Mapping[str, str]) -> str:
    path = Path(asked).expanduser()
    if path.is_dir():
        found = python_in(path)
    else:
        found = shutil.which(str(path), path=env.get("PATH"))
    if found is None:
        raise SessionStartError("Python", f"no Python at {asked!r}; see the setting `computer.python`")
    return os.path.abspath(found)


def has_package(python: str, name: str) -> bool:
    """Whether a Python has this package, as far as its folders tell."""
    prefix = Path(python).absolute().parent.parent
    places = [*prefix.glob("lib/python3*/site-packages"), prefix / "Lib" / "site-packages"]
    return any((place / name).is_dir() for place in places)


def python_in(environment: Path) -> str | None:
    """The Python of a virtual environment."""
    for name in ("bin/python", "bin/python3", "Scripts/python.exe"):
        if os.access(environment / name, os.X_OK):
            return str(environment / name)
    return None


DRIVER = Path(__file__).with_name("driver") / "start.py"
OFF = "Undo of variables is off (setting `computer.undo_snapshots`)."
NO_FORK = "This system cannot copy a running process, so Python's variables cannot be rewound: run the blocks again."
NO_COPY = "The Python session could not be copied: there may not be enough memory, or no room for more processes."
ENDED = "The Python session has ended: run a block first."
GONE = "That state of the Python session is not kept any more: it is too old, or memory was short."


class Python(LiveLanguage):
    """Variables, imports and functions stay from block to block; IPython is used where it is installed."""

    name = "Python"
    aliases = ("py", "python3", "ipython")
    file_extension = "py"
    definitions = r"^(?:(?:async\s+)?def\s+|class\s+)([A-Za-z_]\w*)|^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=(?!=)"
    quotes_paths = True
    analysis = "interpreter.policy.analysis.python:analyze"
    scanners = ("interpreter.policy.scanners.tools:BANDIT", "interpreter.policy.scanners.tools:SEMGREP")
    scan_parts = "interpreter.policy.scanners.scanner:python_parts"
    cell_magic = ""
    script = "interpreter.export.script.steps:add_python"
    order = 1

    gate: Gate | None = None  # what is asked about by copies of the session that were in a view

    @classmethod
    def variant(cls, context: SessionContext) -> type[BaseLanguage]:
        if context.python != "in-process":
            return cls
        from interpreter.runtimes.python.in_process import InProcessPython

        return InProcessPython

    def version(self) -> str | None:
        python = which_python(self.context.python, self.context.own_environment())
        ours = python == sys.executable
        return platform.python_version() if ours else program_version(python, self.context.containment)

    def launch(self) -> Launch:
        env = self.context.environment()
        python = which_python(self.context.python, self.context.own_environment())
        return Launch(["driver", str(DRIVER)], python=python, env=env, cwd=self.context.cwd)

    def fields(self) -> Frame:
        skills = {"skills": self.context.skills()} if self.context.skills is not None else {}
        return {"colors": self.context.colors, "active_lines": self.context.active_lines, **skills}

    # -- states --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> int | None:
        return self.present if self._can_rewind() else None

    def points(self) -> list[int]:
        return sorted(self.runtime.snapshots.states - {self.present}) if self.runtime is not None else []

    def restore(self, state: int) -> Restored:
        if not self._can_rewind():
            raise NotRestorableError(OFF if hasattr(os, "fork") else NO_FORK)
        if state == self.present:
            return Restored()
        runtime = self.runtime
        if runtime is None or state not in runtime.snapshots.states:
            raise NotRestorableError(GONE)
        if runtime.block is not None and not runtime.block.finished:
            raise BusyError("A Python block is running: its session cannot be rewound now.")
        self._note_place()
        if runtime.alive:
            runtime.snapshots.take(self.present, self._most())
        restored = self._promote(runtime, state)
        if restored is None:
            raise NotRestorableError(GONE)
        return restored

    def hand_over(self, other: Python) -> Restored:
        """By fork, also where no snapshots are kept; what another Python is to run is carried there."""
        runtime = self.runtime
        if not hasattr(os, "fork"):
            raise NotRestorableError(NO_FORK)
        if runtime is None or not runtime.alive:
            raise NotRestorableError(ENDED)
        launch = other.contained_launch()
        copy = Runtime(runtime.launch, runtime.name)
        said = runtime.snapshots.split(copy)
        if said is None:
            copy.close()
            raise NotRestorableError(NO_COPY)
        lost = list(said["lost"])
        if replace(launch, env=runtime.launch.env, cwd=runtime.launch.cwd) != runtime.launch:
            other.runtime = Runtime(launch, runtime.name)
            lost += copy.snapshots.carry_to(other.runtime, runtime.folder)
        else:
            other.runtime = copy
            lost += copy.snapshots.carry() if said["unknown_threads"] else []
        return Restored(lost)

    def take_back(self, other: Python) -> Restored:
        """Have what another session has made of these variables; the states of before can still be returned to."""
        runtime, theirs = self.runtime, other.runtime
        if runtime is None or theirs is None or not (runtime.alive and theirs.alive):
            raise NotRestorableError(ENDED)
        self._note_place()
        if self._can_rewind():
            runtime.snapshots.take(self.present, self._most())
        lost = theirs.snapshots.carry_to(runtime, theirs.folder)
        self._number = other.present
        self._cwd, self._env = None, {}  # a fresh worker is told where it is
        return Restored(lost)

    def snapshot(self) -> tuple[int, int] | None:
        """As a rule there is one from the end of the last block."""
        runtime = self.start()
        if not self._can_rewind() or self._before in runtime.snapshots.states:
            return None
        return self._before, self._most()

    def settle(self, event: Frame) -> None:
        """Take the next block's snapshot now; where threads go on, only that block knows what there is to keep."""
        if self._can_rewind() and not event["threads"] and self.runtime is not None:
            self.runtime.snapshots.take_soon(self.present, self._most())

    def _most(self) -> int:
        return self.context.snapshots + 1  # the present state is one, and no return

    def snapshot_of_now(self) -> tuple[int, int] | None:
        """What a snapshot of the present state is called, and how many to keep; None for no snapshot."""
        return (self.present, self.context.snapshots + 1) if self._can_rewind() else None

    def trial(self, view: View) -> Trial:
        from interpreter.runtimes.python.dry_run import PythonTrial

        return PythonTrial(self, view)

    def _can_rewind(self) -> bool:
        return self.context.snapshots > 0 and hasattr(os, "fork")

    def _promote(self, runtime: Runtime, state: int) -> Restored | None:
        said = runtime.snapshots.promote(state)
        if said is None:
            return None
        lost = list(said["lost"])
        if said["unknown_threads"]:
            lost += runtime.snapshots.carry()
        self._return_to(state)
        return Restored(lost, said["running"])

    def revive(self, runtime: Runtime) -> Iterator[Chunk]:
        """The worker ended between blocks, by a thread or by somebody's hand: the newest snapshot goes on."""
        code, present = runtime.exit_code or 0, self.present
        state = present if present in runtime.snapshots.states else max(self.points(), default=0)
        restored = self._promote(runtime, state)
        if restored is None:
            yield from super().revive(runtime)
            return
        then = "that left them" if state == present else "they were some blocks ago: newer snapshots are gone"
        told = f"The Python session ended ({how_it_ended(code)}) since the last block. The variables are as {then}. "
        yield notice(f"{told}{restored}".rstrip() + "\n")

    def exited(self, event: Frame) -> Iterator[Chunk]:
        """The worker ended during a block: the newest snapshot goes on, and the block alone is lost."""
        runtime = self.runtime
        points = self.points()
        state = self._before if self._before in points else max(points, default=0)
        restored = self._promote(runtime, state) if runtime is not None and state and not event["startup"] else None
        if restored is None:
            yield from super().exited(event)
            return
        then = "before it" if state == self._before else "some blocks ago: newer snapshots are gone"
        told = f"The Python session ended ({how_it_ended(event['code'])}). Only this block is lost: "
        told += f"the variables are as they were {then}. {restored}"
        yield notice(told.rstrip() + "\n")
        yield self.closing(event["code"], "timed_out" if event["why"] == "timed_out" else "died")
