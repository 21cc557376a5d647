"""A shell block on trial: in a new shell, in a view, which begins with the state that the live one has."""

from __future__ import annotations

import dataclasses
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.errors import BusyError, NotPreviewableError
from interpreter.messages import Chunk
from interpreter.runtimes import python
from interpreter.runtimes.block import Block, Spool, outputs_folder
from interpreter.runtimes.launch import Launch
from interpreter.runtimes.overlay import View, take_in
from interpreter.runtimes.seccomp_notify import Denied, Gate, others_in
from interpreter.runtimes.shell.dialect import read_file, state_file
from interpreter.runtimes.shell.language import FAREWELL, Shell
from interpreter.runtimes.state import SAVING

if TYPE_CHECKING:
    from interpreter.runtimes.context import SessionContext

STARTER = Path(python.__file__).with_name("driver") / "start_in_view.py"
PATIENCE = 60.0  # seconds
NO_SHELL = "No shell could be started in which the block could be tried out."


class ShellInView(Shell):
    """A shell that goes into a view before it is one; nobody's keys reach it."""

    def __init__(self, context: SessionContext, state: bytes | None, entrance: str) -> None:
        super().__init__()
        self.context = dataclasses.replace(context, keyboard=False, exported=dict(context.exported))
        self._state, self._entrance = state, entrance

    def launch(self) -> Launch:
        launch = super().launch()
        kind, *program = launch.worker
        starter = [sys.executable, "-I", "-S", str(STARTER), self._entrance]
        return dataclasses.replace(launch, worker=[kind, *starter, *program])

    def saved(self) -> bytes | None:
        """The state that the last block left, if it got to save it."""
        return last_state(self)


class ShellTrial:
    """From the new shell to the choice whether the live one takes over its state."""

    def __init__(self, language: Shell, view: View) -> None:
        runtime = language.runtime
        if runtime is not None and runtime.block is not None and not runtime.block.finished:
            raise BusyError("A shell block is running: none can be previewed now.")
        self.lost: list[str] = []
        self._language, self._view, self._gate = language, view, Gate()
        self._code, self._ended, self._over = "", "", False
        with tempfile.TemporaryDirectory(prefix="interpreter-") as folder, socket.socket(socket.AF_UNIX) as door:
            door.bind(f"{folder}/door")
            door.listen(1)
            door.settimeout(PATIENCE)
            state = last_state(language) or language._own_state()
            self.active = ShellInView(language.context, state, f"{folder}/door")
            self._begin(door)

    def _begin(self, door: socket.socket) -> None:
        copy = self.active.start()
        self.active._cwd, self.active._env = None, {}  # it is told both: its state may be older than they are
        self._view.shared.append(str(copy.folder))
        try:
            line, _ = door.accept()
            take_in(self._view, line, self._gate)
        except TimeoutError as error:
            self.drop()
            raise NotPreviewableError(NO_SHELL) from error
        except BaseException:
            self.drop()
            raise

    def run(self, code: str) -> Iterator[Chunk]:
        self._code = code
        for chunk in self.active.run(code):
            self._ended = chunk.get("ended", self._ended)
            yield chunk

    @property
    def died(self) -> bool:
        return self._over or self._ended in ("", "died", "background")

    @property
    def denied(self) -> list[Denied]:
        return self._gate.denied

    # -- the choice ----------------------------------------------------------------------------------------------

    def keep(self) -> list[str]:
        """The live shell takes over what a state can hold; what runs in the background is not in it."""
        state, shared = self.active.saved(), self.active.context
        copy = self.active.runtime
        left = others_in(self._view.place, copy.pid if copy is not None else None)
        self.drop()
        if state is None:
            return ["the shell's variables"]
        take_over(self._language, state, self._code)
        self._language.context.cwd = shared.cwd
        self._language.context.exported.update(shared.exported)
        self._language._cwd, self._language._env = shared.cwd, dict(self._language.context.exported)
        return [f"{each}, which was ended" for each in left]

    def drop(self) -> None:
        self._over = True
        self.active.terminate()
        self._gate.open(self._view.place)


def last_state(shell: Shell) -> bytes | None:
    """What a new shell needs to go on where this one is."""
    runtime = shell.runtime
    if runtime is None or runtime.block is None:
        return None
    if runtime.alive:
        shell._asked(runtime, {"op": "inspect"}, SAVING)  # from here on the state of the last block is saved
    state = shell._dialect.last_state(runtime.folder)
    return read_file(state) if state is not None else None


def take_over(shell: Shell, state: bytes, code: str) -> None:
    """Have the live shell go on with a state as if a block of its own had left it."""
    runtime = shell.start()
    if runtime.alive:
        runtime.retire(FAREWELL)
    shell._dialect.settle(runtime.folder)
    number = runtime.block.number + 1 if runtime.block else 1
    shell._before = shell.leave_state()
    block = Block(number, code, Spool(outputs_folder))
    block.finished = True
    block.let_go()
    runtime.block = runtime._blocks[number] = block
    shell._dialect._block = number
    state_file(runtime.folder, number).write_bytes(state)
