"""Snapshots of the session: forked copies of this process that wait, and go on in its place when they are woken.

The parent runs the block, and so keeps its threads and its connections; the child is the snapshot. It waits in a
read on a socket of its own, whose other end is the supervisor's: at the end of that, it ends.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import array
import os
import select
import signal
import sys
import warnings
from _thread import get_ident

from .children import Children
from .descriptors import has_others, let_go
from .native_threads import (
    OpenMP,
    native_threads,
    python_threads,
    remaining_threads,
)
from .splitting import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Collection, List, Optional, Tuple

    from .splitting import Origin

ALL = _signal.valid_signals()  # without the enumeration that `signal` makes of them
PATIENCE = 3000  # milliseconds
WARNS = sys.version_info >= (3, 12)  # of a fork while there are threads


class Woken:
    """What a snapshot has when it goes on: its new descriptors, and what it could not bring along."""

    def __init__(self, fds: List[int], lost: List[str], threads: int) -> None:
        self.data, self.streams = fds[0], fds[1:4]
        self.entrance = fds[4] if len(fds) > 4 else None  # to a view, for a block that is tried out
        self.lost = lost
        self.unknown_threads = threads  # there were some that no fork brings back: libraries would wait for them


class Snapshots:
    """Takes them; each `take` returns None here, and much later may return in the snapshot too."""

    def __init__(self, origin: Origin) -> None:
        self.forking = False  # a fork that happens now is ours
        self._origin = origin
        self._openmp = OpenMP()
        self._children = Children()
        self._children.install()

    def take(self, line: int, ours: Collection[int]) -> Optional[Woken]:
        """Fork a snapshot that waits at this socket; `ours` are descriptors that nobody need hear of."""
        self._children.reap()
        self._openmp.pause()
        lost = ["the thread %s" % name for name in thread_names()]
        pythons, numbers = python_threads(), random_state()
        foreign = native_threads(os.getpid(), pythons) > 0
        # Where it has nothing to let go of, and no threads to count, the block need not wait for it.
        reader, writer = os.pipe() if foreign or has_others({*ours, line}) else (-1, -1)
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ALL)
        try:
            pid = self._fork()
            if pid == 0:
                woken = wait(line, writer, lost, pythons if foreign else -1, {*ours, reader}, self._part)
                writer = -1  # its number may be another's by now
                if woken.entrance is not None:
                    self._leave_parent(line)
                if numbers is not None:
                    sys.modules["random"].setstate(numbers)  # a fork shuffles them
                self._children.hidden.clear()
                return woken
            self._children.hidden.add(pid)
            os.write(line, b"%d" % pid)
            if writer >= 0:
                os.close(writer)
                writer = -1
                if not at_its_end(reader):
                    os.kill(pid, signal.SIGKILL)  # it is caught in what some library does after a fork
        except OSError:
            pass  # no process or no memory to be had: this state cannot be returned to, and the host hears of it
        finally:
            for fd in (reader, writer, line):
                close(fd)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        return None

    def _part(self, line: int, fds: List[int]) -> List[int]:
        """In a snapshot: fork the worker of a session of its own, and be its supervisor."""
        return split(self._fork, self._origin, line, fds)

    def _leave_parent(self, line: int) -> None:
        """The worker goes on beside us: be the supervisor's child instead, which is to hear of our end."""
        reader, writer = os.pipe()
        pid = self._fork()
        if pid:
            os.write(line, b"%d" % pid)
            os._exit(0)
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        os.setpgid(0, 0)

    def _fork(self) -> int:
        self.forking = True
        try:
            if not WARNS:
                return os.fork()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                return os.fork()
        finally:
            self.forking = False


def wait(
    line: int,
    clean: int,
    lost: List[str],
    pythons: int,
    ours: Collection[int],
    part: Callable[[int, List[int]], List[int]],
) -> Woken:
    """In the snapshot: let go of everything, say so, and wait until it is woken or not needed any more."""
    try:
        users = signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setpgid(0, 0)
        lost = lost + let_go({line, clean}, ours)
        threads = remaining_threads(os.getppid(), pythons) if pythons >= 0 else 0
        close(clean)
        word, fds = woken_with(line)
        if word == b"split":
            fds = part(line, fds)
        if fds:
            signal.signal(signal.SIGINT, users or signal.SIG_DFL)
            return Woken(fds, lost, threads)
    finally:
        if sys.exc_info()[0] is not None:
            os._exit(1)  # whatever it is, a snapshot never goes on by itself
    os._exit(0)


def at_its_end(pipe: int) -> bool:
    """Whether the other side lets go of a pipe before long."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(PATIENCE))


def woken_with(line: int) -> Tuple[bytes, List[int]]:
    """How to go on, and with which descriptors; none at the end."""
    numbers = array.array("i")
    socket = _socket.socket(fileno=line)
    socket.setblocking(True)
    word, ancillary, _, _ = socket.recvmsg(64, _socket.CMSG_SPACE(8 * numbers.itemsize))
    socket.detach()
    for level, kind, payload in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
    return word, list(numbers)


def close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # it has been let go of


def thread_names() -> List[str]:
    threading = sys.modules.get("threading")
    if threading is None:
        return []
    return [thread.name for thread in threading.enumerate() if thread.ident != get_ident()]


def random_state() -> Any:
    random = sys.modules.get("random")
    return random.getstate() if random is not None and hasattr(random, "getstate") else None
