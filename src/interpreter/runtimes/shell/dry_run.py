"""A dry run of a shell block: in a new shell in an overlay, which begins with the state of the live one."""

from __future__ import annotations

import dataclasses
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.errors import NotPreviewableError
from interpreter.messages import Chunk
from interpreter.runtimes import python
from interpreter.runtimes.launch import Launch
from interpreter.runtimes.overlay import TIMEOUT, Overlay
from interpreter.runtimes.seccomp_notify import Denied, Gate, others_in
from interpreter.runtimes.shell.language import Shell

if TYPE_CHECKING:
    from interpreter.runtimes.context import SessionContext

STARTER = Path(python.__file__).with_name("driver") / "start_in_view.py"
NO_SHELL = "No shell could be started in which the block could be tried out."


class ShellInOverlay(Shell):
    """A shell that enters an overlay before it starts; the user's keys do not reach it."""

    def __init__(self, context: SessionContext, state: bytes | None, entrance: str) -> None:
        super().__init__()
        self.context = dataclasses.replace(context, keyboard=False, exported=dict(context.exported))
        self._state, self._entrance = state, entrance

    def launch(self) -> Launch:
        launch = super().launch()
        kind, *program = launch.worker
        starter = [sys.executable, "-I", "-S", str(STARTER), self._entrance]
        return dataclasses.replace(launch, worker=[kind, *starter, *program])


class ShellDryRun:
    """From the new shell to the choice whether the live one takes over its state."""

    def __init__(self, language: Shell, overlay: Overlay) -> None:
        language.check_idle("A shell block is running: none can be previewed now.")
        self.lost: list[str] = []
        self._language, self._overlay, self._gate = language, overlay, Gate()
        self._code, self._ended, self._over = "", "", False
        with tempfile.TemporaryDirectory(prefix="interpreter-") as folder, socket.socket(socket.AF_UNIX) as door:
            door.bind(f"{folder}/door")
            door.listen(1)
            door.settimeout(TIMEOUT)
            state = language.saved_state() or language.own_state()
            self.active = ShellInOverlay(language.context, state, f"{folder}/door")
            copy = self.active.start()
            self.active.known_cwd, self.active.known_env = None, {}  # its state may be older than both
            overlay.shared.append(str(copy.folder))
            try:
                line, _ = door.accept()
                overlay.enter(line, self._gate)
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

    def keep(self) -> list[str]:
        """The live shell takes over what a state can hold, which excludes background jobs."""
        language, copy = self._language, self.active.runtime
        state, context = self.active.saved_state(), self.active.context
        left = others_in(self._overlay.place, copy.pid if copy is not None else None)
        self.drop()
        if state is None:
            return ["the shell's variables"]
        language.take_over(state, self._code)
        language.context.cwd = context.cwd
        language.context.exported.update(context.exported)
        language.known_cwd, language.known_env = context.cwd, dict(language.context.exported)
        return [f"{each}, which was ended" for each in left]

    def drop(self) -> None:
        self._over = True
        self.active.terminate()
        self._gate.open(self._overlay.place)
