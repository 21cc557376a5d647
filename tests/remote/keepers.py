"""A keeper on this machine, reached without ssh."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from interpreter.errors import RemoteError
from interpreter.remote.keeper import GONE
from interpreter.remote.machine import Machine

PROGRAM = "import sys; from interpreter.remote.keeper import main; sys.exit(main(*sys.argv[1:]))"


class LocalTransport:
    """A transport to a keeper in another process; `cut` breaks the connection, as a network does."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.folder, self.workspace = folder, workspace
        self.process: subprocess.Popen[bytes] | None = None
        self.processes: list[subprocess.Popen[bytes]] = []
        self.names: list[str] = []
        self.is_down = False

    def connect(self, ask: Callable[[str, bool], str | None]) -> None:
        if self.is_down:
            raise RemoteError("The cable is out.")

    def open(self, what: str, name: str, seconds: float) -> socket.socket | None:
        self.names.append(name)
        ours, theirs = socket.socketpair()
        place = str(self.folder / name)
        argv = [sys.executable, "-c", PROGRAM, what, place, str(seconds), str(self.workspace)]
        with theirs:
            self.process = subprocess.Popen(argv, stdin=theirs, stdout=theirs)
            self.processes.append(self.process)
        if not ours.recv(1, socket.MSG_PEEK):
            ours.close()
            if self.process.wait() != GONE:
                raise RemoteError("The connection was cut before it was established.")
            return None
        return ours

    def cut(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def keeper_pid(self) -> int:
        """Return the id of the process that keeps the runtimes."""
        wanted = self.names[-1].encode()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_it = wanted in (place / "cmdline").read_bytes()
                if is_it and "PPid:\t1\n" in (place / "status").read_text():
                    return int(place.name)
        raise AssertionError("no keeper found")

    def kill_keeper(self) -> None:
        os.kill(self.keeper_pid(), signal.SIGKILL)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def local_machine(folder: Path, workspace: Path, keep: float = 60) -> tuple[Machine, LocalTransport]:
    transport = LocalTransport(folder, workspace)
    return Machine("elsewhere", transport, str(workspace), keep), transport
