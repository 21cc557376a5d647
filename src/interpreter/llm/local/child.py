"""A program of ours that ends with us, however we end."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

# Run by its path and not imported: it is a program, the one that also keeps live sessions in order.
SUPERVISOR = Path(__file__).parents[2] / "runtimes" / "supervisor.py"
_LOG_KEPT = 4000
_LONGEST_END = 5.0


class Child:
    """Runs `argv` under a supervisor that kills it, and all it started, when our end of a socket closes.

    `{data}` in `argv` becomes the number of a socket whose other end is `data`; what the program writes to
    standard output and error goes to a file without a name, or to a pipe if `log` is one.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None = None, log: int | None = None) -> None:
        self.data, data = socket.socketpair()
        self._control, control = socket.socketpair()
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        with data, control:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), str(control.fileno()), "exec", *argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[control.fileno()],
                env=dict(os.environ if env is None else env),
                start_new_session=True,
            )
            null = os.open(os.devnull, os.O_RDWR)
            output = self._log.fileno() if log is None else log
            try:
                socket.send_fds(self._control, [b"spawn\n"], [data.fileno(), null, output, output])
            finally:
                os.close(null)

    @property
    def pid(self) -> int:
        """Of the supervisor, which is there as long as the program may be."""
        return self._process.pid

    def last_words(self) -> str:
        """The end of what the program wrote."""
        if self._log.closed:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_KEPT))
        return self._log.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the program and everything it started."""
        for ours in (self.data, self._control):
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            ours.close()
        try:
            self._process.wait(_LONGEST_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
