"""`wtf --record`: the user's shell in a pseudo-terminal whose last output is kept in memory."""

from __future__ import annotations

import fcntl
import mmap
import os
import pty
import selectors
import signal
import struct
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from interpreter.errors import UsageError
from interpreter.frontends.terminal.wtf import RECORDING
from interpreter.host import processes

SIZE = 64 * 1024
_COUNT = struct.Struct("<Q")  # how many bytes were written in all


class Ring:
    """The last bytes of a terminal's output, in a file that only its owner can read. It never grows."""

    def __init__(self) -> None:
        runtime = os.environ.get("XDG_RUNTIME_DIR")  # in memory, where the system has it
        folder = runtime if runtime and os.access(runtime, os.W_OK) else None
        descriptor, self.path = tempfile.mkstemp(prefix="wtf-", dir=folder)  # with mode 0600
        with open(descriptor, "r+b") as file:
            file.truncate(_COUNT.size + SIZE)
            self._memory = mmap.mmap(file.fileno(), _COUNT.size + SIZE)
        self._written = 0

    def add(self, data: bytes) -> None:
        """Append bytes, without a system call."""
        self._written += len(data)
        data = data[-SIZE:]
        at = (self._written - len(data)) % SIZE
        start = _COUNT.size + at
        first, rest = data[: SIZE - at], data[SIZE - at :]
        self._memory[start : start + len(first)] = first
        self._memory[_COUNT.size : _COUNT.size + len(rest)] = rest
        _COUNT.pack_into(self._memory, 0, self._written)

    def remove(self) -> None:
        self._memory.close()
        Path(self.path).unlink(missing_ok=True)


def read_ring(path: str) -> bytes:
    """The last bytes, oldest first; nothing if the file is missing, not ours, or no recording."""
    try:
        if os.stat(path).st_uid != os.getuid():
            return b""
        data = Path(path).read_bytes()
    except OSError:
        return b""
    if len(data) != _COUNT.size + SIZE:
        return b""
    (written,) = _COUNT.unpack_from(data)
    ring = data[_COUNT.size :]
    at = written % SIZE
    return ring[:written] if written < SIZE else ring[at:] + ring[:at]


def record(command: Sequence[str]) -> int:
    """Run the shell, or another program, until it ends; its exit code."""
    if os.environ.get(RECORDING):
        raise UsageError("This shell is being recorded already.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--record needs a terminal.")
    arguments = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
    ring = Ring()
    try:
        child, terminal = pty.fork()
        if child == 0:
            try:
                processes.become(arguments, {RECORDING: ring.path})
            except OSError as error:
                os.write(2, f"wtf: {arguments[0]}: {error.strerror}\r\n".encode())
                os._exit(127)
        with _signals() as signals, _raw(sys.stdin.fileno()):
            _copy_size(terminal)
            _relay(terminal, child, signals, ring)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256
    finally:
        ring.remove()


def _relay(terminal: int, child: int, signals: int, ring: Ring) -> None:
    """Copy keys to the program and its output to the screen, until the program ends."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    with selectors.DefaultSelector() as waiting:
        for descriptor in (keys, terminal, signals):
            waiting.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = {event.fd for event, _ in waiting.select()}
            if terminal in ready:
                output = _read(terminal)
                if not output:
                    return
                ring.add(output)
                _write(screen, output)
            if keys in ready:
                typed = _read(keys)
                if not typed:  # the window was closed
                    os.kill(child, signal.SIGHUP)
                    waiting.unregister(keys)
                _write(terminal, typed)
            if signals in ready:
                for number in set(os.read(signals, 100)):
                    if number == signal.SIGWINCH:
                        _copy_size(terminal)
                    else:
                        os.kill(child, signal.SIGHUP)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side of a pseudo-terminal has closed
        return b""


def _write(descriptor: int, data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(descriptor, data) :]


def _copy_size(terminal: int) -> None:
    size = fcntl.ioctl(sys.stdin.fileno(), termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


@contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Every key goes to the program, Ctrl-C too."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _signals() -> Iterator[int]:
    """A descriptor from which the signals that matter can be read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for number in (signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    outer = signal.set_wakeup_fd(writer)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(outer)
        os.close(reader)
        os.close(writer)
