"""`wtf --record`: the user's shell in a pseudo-terminal whose last output is kept in memory."""

from __future__ import annotations

import fcntl
import os
import pty
import selectors
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from interpreter.errors import UsageError
from interpreter.frontends.terminal.shell_hook.ring import Ring

VARIABLE = "WTF_RECORD"
_PIECE = 65536


def record(command: Sequence[str]) -> int:
    """Run the shell, or another program, until it ends; its exit code."""
    if os.environ.get(VARIABLE):
        raise UsageError("This shell is being recorded already.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--record needs a terminal.")
    arguments = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
    ring = Ring()
    try:
        child, terminal = pty.fork()
        if child == 0:
            _become(arguments, ring.path)
        with _signals() as signals, _raw(sys.stdin.fileno()):
            _copy_size(terminal)
            _relay(terminal, child, signals, ring)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256
    finally:
        ring.remove()


def _become(arguments: list[str], path: str) -> None:
    try:
        os.execvpe(arguments[0], arguments, {**os.environ, VARIABLE: path})
    except OSError as error:
        os.write(2, f"wtf: {arguments[0]}: {error.strerror}\r\n".encode())
        os._exit(127)


def _relay(terminal: int, child: int, signals: int, ring: Ring) -> None:
    """Carry keys one way and output the other, until the program is gone."""
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
                _obey(os.read(signals, 100), terminal, child)


def _obey(numbers: bytes, terminal: int, child: int) -> None:
    for number in set(numbers):
        if number == signal.SIGWINCH:
            _copy_size(terminal)
        else:
            os.kill(child, signal.SIGHUP)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except OSError:  # the other side of a pseudo-terminal has closed
        return b""


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except OSError:
            return


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
