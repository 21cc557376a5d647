"""Snapshots of the session: forked copies of this process that wait, and go on in its place when they are woken.

The parent runs the block, and so keeps its threads and its connections; the child is the snapshot. It waits in a
read on a socket of its own, whose other end is the supervisor's: at the end of that, it ends.
"""

from __future__ import annotations

import _signal
import _socket
import array
import errno
import os
import select
import signal
import sys
import warnings
from _thread import _count, get_ident
from signal import SIGKILL

from .descriptors import has_others, let_go, open_descriptors
from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Collection, Dict, List, Optional, Set, Tuple


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


ANY = (-1, 0)
waitpid, wait3, wait4 = os.waitpid, os.wait3, os.wait4
waitid: Optional[Callable[..., Any]] = getattr(os, "waitid", None)


class Children:
    """Stands before the functions of `os` that wait for whichever child ends first."""

    def __init__(self) -> None:
        self.hidden: Set[int] = set()

    def install(self) -> None:
        if waitid is None:
            return
        os.wait = lambda: self.waitpid(-1, 0)
        os.waitpid, os.wait4, os.waitid = self.waitpid, self.wait4, self.waitid
        os.wait3 = lambda options: self.wait4(-1, options)

    def reap(self) -> None:
        """Let go of the snapshots that have ended."""
        for pid in list(self.hidden):
            try:
                ended = waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                ended = pid  # it is another process's child, or nobody is told of children's ends
            if ended:
                self.hidden.discard(pid)

    def waitpid(self, pid: int, options: int, /) -> Any:
        """As os.waitpid."""
        if pid not in ANY or not self.hidden:
            return waitpid(pid, options)
        return self._first(options, lambda found: waitpid(found, options | os.WNOHANG), (0, 0))

    def wait4(self, pid: int, options: int) -> Any:
        """As os.wait4."""
        if pid not in ANY or not self.hidden:
            return wait4(pid, options)
        nothing = wait4(next(iter(self.hidden)), os.WNOHANG)
        return self._first(options, lambda found: wait4(found, options | os.WNOHANG), (0, 0, nothing[2]))

    def waitid(self, kind: Any, pid: int, options: int, /) -> Any:
        """As os.waitid."""
        assert waitid is not None
        if kind != os.P_ALL or not self.hidden:
            return waitid(kind, pid, options)
        return self._first(options, lambda found: waitid(os.P_PID, found, options | os.WNOHANG), None)

    def _first(self, options: int, take: Callable[[int], Any], nothing: Any) -> Any:
        assert waitid is not None
        looking = os.WEXITED | os.WNOWAIT
        looking |= options & (os.WNOHANG | os.WCONTINUED)
        looking |= os.WSTOPPED if options & os.WUNTRACED else 0
        while True:
            self.reap()
            others = own_children()
            if others is not None and not set(others) - self.hidden:
                raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
            found = waitid(os.P_ALL, 0, looking)
            if found is None:
                return nothing
            if found.si_pid not in self.hidden:
                taken = take(found.si_pid)
                if taken and (not isinstance(taken, tuple) or taken[0]):  # else another thread was faster
                    return taken


def own_children() -> Optional[List[int]]:
    """The processes that this one could wait for; None where that cannot be known."""
    found: List[int] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it ended while we looked
            if parent == os.getpid():
                found.append(int(name))
    return found


GNU, OTHERS = "libgomp", ("libomp", "libiomp5")  # the others end all pools, those of other threads too
PAUSE_HARD = 2
COME_BACK = (b"jemalloc_bg_thd",)  # its library starts it anew
LOOKS = 20  # at a thread that is on its way out


def python_threads() -> int:
    """How many threads Python has started that still run."""
    return _count()


class OpenMP:
    """The OpenMP libraries of this process, whose pools end when asked to and come again on need."""

    def __init__(self) -> None:
        self._libraries: Dict[str, Any] = {}
        self._seen = 0

    def pause(self) -> None:
        """Without this, the GNU one waits in a forked child for threads that are not there."""
        threads = native_threads(os.getpid(), python_threads())
        if threads <= 0:
            return
        if threads != self._seen:
            self._seen = threads
            self._find()
        for name, pause in self._libraries.items():
            if name.startswith(GNU) or not python_threads():
                pause(PAUSE_HARD)

    def _find(self) -> None:
        for path in loaded_files():
            name = os.path.basename(path)
            if name.startswith((GNU, *OTHERS)) and name not in self._libraries:
                library = trusted_import("ctypes").CDLL(path)
                pause = getattr(library, "omp_pause_resource_all", None)  # GNU's has it from version 9 on
                if pause is not None:
                    self._libraries[name] = pause


def loaded_files() -> List[str]:
    """The files that are mapped into this process."""
    try:
        with open("/proc/self/maps") as file:
            return sorted({line[line.index("/") :].rstrip("\n") for line in file if "/" in line})
    except OSError:
        return []


def native_threads(pid: int, pythons: int) -> int:
    """How many threads of a process are neither the main one nor Python's, nor know what to do after a fork."""
    folder = "/proc/%d/task/" % pid
    try:
        tasks = os.listdir(folder)
    except OSError:
        return 0
    if len(tasks) - 1 - pythons <= 0:
        return 0
    return sum(name_of(folder + task) not in COME_BACK for task in tasks) - 1 - pythons


def name_of(task: str) -> bytes:
    try:
        with open(task + "/comm", "rb") as file:
            return file.read().rstrip()
    except OSError:
        return b""  # it ended just now; if not, it is counted once more


def remaining_threads(pid: int, pythons: int) -> int:
    """The same of a process that stands still, after those that were ending have ended."""
    for _ in range(LOOKS):
        count = native_threads(pid, pythons)
        if count <= 0:
            return 0
        os.sched_yield()
    return count


if TYPE_CHECKING:
    from typing import Callable, Dict, List, Tuple

    # the supervisor's Python, its file, the environment and the folder that it began with, what its worker is
    Origin = Tuple[str, str, Dict[str, str], str, List[str]]

PR_SET_CHILD_SUBREAPER = 36


def split(fork: Callable[[], int], origin: Origin, line: int, fds: List[int]) -> List[int]:
    """Returns in the worker only, with its descriptors."""
    control, *rest = fds
    reader, writer = os.pipe()
    worker = fork()
    if worker == 0:
        os.close(writer)
        os.close(control)
        os.setpgid(0, 0)
        os.read(reader, 1)  # until it has a supervisor: what it starts must not get lost
        os.close(reader)
        return rest
    for fd in (*rest, reader):
        os.close(fd)
    try:
        become_supervisor(origin, control, line, worker)
    finally:
        os.kill(worker, SIGKILL)  # there is no such program any more, or no memory for it
    return []


def become_supervisor(origin: Origin, control: int, line: int, worker: int) -> None:
    """The same program as that of the session that was, with nothing of the user's; the line shows that it lives."""
    python, file, environ, folder, kind = origin
    adopt_orphans()
    for fd in open_descriptors():
        if fd > 2:
            try:
                os.set_inheritable(fd, fd in (control, line))
            except OSError:
                pass  # the folder's own
    for number in _signal.valid_signals():
        if _signal.getsignal(number) == _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
    try:
        os.chdir(folder)
    except OSError:
        pass  # somebody removed it
    os.execve(python, [python, file, "%d,%d,%d" % (control, worker, line), *kind], environ)


def adopt_orphans() -> None:
    """As the supervisor does it, which keeps this when it takes over."""
    if sys.platform == "linux":
        from .imports import trusted_import

        trusted_import("ctypes").CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
