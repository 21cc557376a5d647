"""`wtf --record`: the user's shell in a pseudo-terminal whose last output is kept in a file."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from interpreter.errors import UsageError
from interpreter.frontends.wtf import RECORDING
from interpreter.host import processes

MAX_BYTES = 64 * 1024
_PREFIX = "wtf-"
# The new terminal gets the size of ours before the program starts, and then is the program's.
_START = 'stty rows {} cols {}; exec "$@"'


class Recording:
    """The last bytes of a terminal's output, in a file that only its owner can read. It never grows beyond them."""

    def __init__(self) -> None:
        runtime = os.environ.get("XDG_RUNTIME_DIR")  # in memory, where the system has it
        folder = runtime if runtime and os.access(runtime, os.W_OK) else None
        self._file = tempfile.NamedTemporaryFile(prefix=_PREFIX, dir=folder, buffering=0)  # noqa: SIM115 - mode 0600
        self._tail = b""
        self.path, self.close = self._file.name, self._file.close

    def add(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-MAX_BYTES:]
        self._file.seek(0)
        self._file.write(self._tail)


def read_recording(path: str) -> bytes:
    """Read the last bytes, oldest first; none if the file is missing, not ours, or no recording."""
    try:
        is_ours = os.stat(path).st_uid == os.getuid() and os.path.basename(path).startswith(_PREFIX)
        return Path(path).read_bytes()[:MAX_BYTES] if is_ours else b""
    except OSError:
        return b""


def record(command: Sequence[str]) -> int:
    """Run the shell, or another program, until it ends; return its exit code."""
    if os.environ.get(RECORDING):
        raise UsageError("This shell is already being recorded.")
    if sys.platform == "win32" or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--record needs a terminal, on Linux or macOS.")
    import termios

    recording = Recording()
    terminals: list[int] = []

    def read(terminal: int) -> bytes:
        terminals[:] = [terminal]
        output = os.read(terminal, 65536)
        recording.add(output)
        return output

    def resize(number: int, frame: object) -> None:
        for terminal in terminals:
            termios.tcsetwinsize(terminal, termios.tcgetwinsize(sys.stdin))

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)  # the program gets SIGHUP when its terminal closes with us

    signal.signal(signal.SIGWINCH, resize)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
    os.environ[RECORDING] = recording.path
    arguments = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
    try:
        start = _START.format(*termios.tcgetwinsize(sys.stdin))
        return processes.run_in_terminal(["sh", "-c", start, "wtf", *arguments], read)
    finally:
        recording.close()
