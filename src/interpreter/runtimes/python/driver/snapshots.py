"""Snapshots of the worker: forked copies of this process that wait, and resume in its place when they are woken.

The parent runs the block, and so keeps its threads and its connections; the child is the snapshot. It waits on a socket
whose other end is the supervisor's, and ends when that closes. A snapshot can also start another runtime: it forks
that runtime's worker and becomes its supervisor.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import errno
import os
import select
import signal
import sys
import time
import warnings
from _thread import _count as python_threads
from _thread import get_ident
from functools import partial

from .channel import DESCRIPTOR_SPACE, received_descriptors
from .descriptors import has_others, open_descriptors, release
from .hints import Any, Callable, Collection, Origin, Woken
from .imports import trusted_import
from .interrupts import stands_in

ALL_SIGNALS = _signal.valid_signals()  # without the enumeration that `signal` builds
FORK_TIMEOUT = 3000  # milliseconds
FORK_WARNS = sys.version_info >= (3, 12)  # Python warns if there are threads
PR_SET_CHILD_SUBREAPER = 36
ANY_CHILD = (-1, 0)
GNU, OTHERS = "libgomp", ("libomp", "libiomp5")  # the latter end all pools, including those of other threads
PAUSE_HARD = 2
LIBRARY_THREADS = ("tqdm_monitor",)  # which start again when they are needed
MAX_ATTEMPTS = 20  # to see a thread end
INTERRUPT_MOMENT = 0.2  # seconds
waitpid, wait4 = os.waitpid, os.wait4
waitid: Any = getattr(os, "waitid", None)


class SnapshotTaker:
    """Takes snapshots; each `take` returns None here, and may return again, much later, in the snapshot."""

    def __init__(self, origin: Origin, raise_deferred: Callable[[], None]) -> None:
        self.forking = False  # the current fork is ours, not the user's
        self.origin = origin
        self._openmp = OpenMP()
        self._children = Children(raise_deferred)

    def take(self, line: int, ours: Collection[int]) -> Woken | None:
        """Fork a snapshot that waits at this socket; the loss of the descriptors in `ours` is not reported.

        When the snapshot resumes, the result is: its new descriptors (the host's, three streams, and for a dry run the
        entrance to a view), what could not be kept, and the number of threads that libraries would wait for, since a
        fork does not copy threads.
        """
        self._children.reap()
        self._openmp.pause()
        threading, random = sys.modules.get("threading"), sys.modules.get("random")
        threads = threading.enumerate() if threading is not None else []
        others = [thread.name for thread in threads if thread.ident != get_ident()]
        lost = ["the thread %s" % name for name in others if name not in LIBRARY_THREADS]
        numbers = random.getstate() if random is not None and hasattr(random, "getstate") else None
        pythons = python_threads()
        foreign = native_threads(os.getpid(), pythons) > 0
        # Without descriptors to release and threads to count, the block need not wait for the snapshot.
        reader, writer = os.pipe() if foreign or has_others({*ours, line}) else (-1, -1)
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ALL_SIGNALS)
        try:
            pid = self._fork()
            if pid == 0:
                woken = self._wait(line, writer, lost, pythons if foreign else -1, {*ours, reader})
                writer = -1  # its number may be reused by now
                if len(woken[0]) > 4:  # a dry run
                    self._leave_parent(line)
                if numbers is not None:
                    sys.modules["random"].setstate(numbers)  # the fork reseeded it
                self._children.hidden.clear()
                return woken
            self._children.hidden.add(pid)
            os.write(line, b"%d" % pid)
            if writer >= 0:
                os.close(writer)
                writer = -1
                poll = select.poll()
                poll.register(reader, select.POLLIN)
                if not poll.poll(FORK_TIMEOUT):
                    os.kill(pid, signal.SIGKILL)  # stuck in a library's fork handler
        except OSError:
            pass  # no process or no memory: the host learns that this state cannot be restored
        finally:
            for fd in (reader, writer, line):
                close(fd)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        return None

    def run_apart(self, line: int, seconds: float, work: Callable[[], bytes]) -> None:
        """Run `work` in a forked copy for at most `seconds`, and write its result to the file descriptor `line`."""
        self._children.reap()
        self._openmp.pause()
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ALL_SIGNALS)
        try:
            pid = self._fork()
            if pid == 0:
                try:
                    os.setpgid(0, 0)
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.setitimer(signal.ITIMER_REAL, seconds)
                    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
                    release({line}, ())
                    name_as_saving()
                    os.write(line, work())
                finally:
                    os._exit(0)
            self._children.hidden.add(pid)
        except OSError:
            pass  # no process or no memory: the host receives nothing
        finally:
            close(line)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def _wait(self, line: int, clean: int, lost: list[str], pythons: int, ours: Collection[int]) -> Woken:
        """Release the descriptors in the snapshot, close `clean` as a signal, and wait to be woken or ended."""
        try:
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.setpgid(0, 0)
            lost = lost + release({line, clean}, ours)
            threads = native_threads(os.getppid(), pythons) if pythons >= 0 else 0
            for _ in range(MAX_ATTEMPTS):  # the process stands still, but threads may be about to end
                if threads > 0:
                    os.sched_yield()
                    threads = native_threads(os.getppid(), pythons)
            close(clean)
            socket = _socket.socket(fileno=line)
            socket.setblocking(True)
            word, fds = b"copy", [-1]
            while word == b"copy":
                word, ancillary, _, _ = socket.recvmsg(64, DESCRIPTOR_SPACE)
                fds = received_descriptors(ancillary)
                if word == b"copy" and self._copy(line, fds):
                    word, fds = b"split", fds[1:]
            socket.detach()
            if word == b"split":
                fds = self._split(line, fds)
            if fds:
                signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
                return fds, lost, max(0, threads)
        finally:
            if sys.exc_info()[0] is not None:
                os._exit(1)  # a snapshot never continues after an error
        os._exit(0)

    def _copy(self, line: int, fds: list[int]) -> bool:
        """Fork a copy of this snapshot, which waits on; True in the copy, whose own line is the first of `fds`."""
        try:
            child = self._fork()
        except OSError:
            child = -1  # no process or no memory available: the supervisor sees that the line closes
        if child == 0:
            os.dup2(fds[0], line, inheritable=False)
            os.close(fds[0])
            self._leave_parent(line)
            return True
        for fd in fds:
            os.close(fd)
        if child > 0:
            try:
                waitpid(child, 0)
            except ChildProcessError:
                pass  # the user's code ignores SIGCHLD
            if signal.SIGCHLD in _signal.sigpending():
                _signal.sigwait((signal.SIGCHLD,))  # or a handler of the user's would get it when this resumes
        return False

    def _leave_parent(self, line: int) -> None:
        """Become a child of the supervisor, which must notice our end; the worker keeps running beside us."""
        reader, writer = os.pipe()
        pid = self._fork()
        if pid:
            os.write(line, b"%d" % pid)
            os._exit(0)
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        os.setpgid(0, 0)

    def _split(self, line: int, fds: list[int]) -> list[int]:
        """Fork the worker of another runtime and become its supervisor. Returns its descriptors, in the worker only."""
        control, *rest = fds
        reader, writer = os.pipe()
        worker = self._fork()
        if worker == 0:
            os.close(writer)
            os.close(control)
            os.setpgid(0, 0)
            os.read(reader, 1)  # wait for a supervisor, which must not miss processes that this one starts
            os.close(reader)
            return rest
        for fd in (*rest, reader):
            os.close(fd)
        try:
            self._become_supervisor(control, line, worker)
        finally:
            os.kill(worker, signal.SIGKILL)  # the program no longer exists, or there is no memory for it
        return []

    def _become_supervisor(self, control: int, line: int, worker: int) -> None:
        """Run the supervisor's program, with nothing of the user's in it; `line` shows that it is alive."""
        python, file, environ, folder, kind = self.origin
        if sys.platform == "linux":  # as the supervisor does, which keeps this setting
            trusted_import("ctypes").CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for fd in open_descriptors():
            if fd > 2:
                try:
                    os.set_inheritable(fd, fd in (control, line))
                except OSError:
                    pass  # the directory listing's own descriptor
        for number in ALL_SIGNALS:
            if _signal.getsignal(number) == _signal.SIG_IGN:
                _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
        try:
            os.chdir(folder)
        except OSError:
            pass  # it was removed
        os.execve(python, [python, file, "%d,%d,%d" % (control, worker, line), *kind], environ)

    def _fork(self) -> int:
        self.forking = True
        try:
            if not FORK_WARNS:
                return os.fork()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                return os.fork()
        finally:
            self.forking = False


def name_as_saving() -> None:
    """Let the supervisor tell this process from those that code has started; snapshot_store.py has the same name."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write("oi-saving")
    except OSError:
        pass  # not Linux


def close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # it was released


class Children:
    """Hides the snapshots from the functions of `os` that wait for any child, and replaces these functions."""

    def __init__(self, raise_deferred: Callable[[], None]) -> None:
        self.hidden: set[int] = set()
        self._raise_deferred = raise_deferred
        if waitid is not None:
            os.wait, os.waitpid, os.waitid = self.wait, self.waitpid, self.waitid
            os.wait3, os.wait4 = self.wait3, self.wait4

    @stands_in
    def wait(self) -> Any:
        return self.waitpid(-1, 0)

    @stands_in
    def wait3(self, options: int) -> Any:
        return self.wait4(-1, options)

    @stands_in
    def reap(self) -> None:
        for pid in list(self.hidden):
            try:
                ended = waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                ended = pid  # it is another process's child, or SIGCHLD is ignored
            if ended:
                self.hidden.discard(pid)

    @stands_in
    def waitpid(self, pid: int, options: int, /) -> Any:
        if pid not in ANY_CHILD or not self.hidden:
            return self._let_interrupt_in(waitpid(pid, options), options)
        return self._let_interrupt_in(self._first(options, waitpid, (0, 0)), options)

    @stands_in
    def wait4(self, pid: int, options: int) -> Any:
        if pid not in ANY_CHILD or not self.hidden:
            return self._let_interrupt_in(wait4(pid, options), options)
        nothing = wait4(next(iter(self.hidden)), os.WNOHANG)
        return self._let_interrupt_in(self._first(options, wait4, (0, 0, nothing[2])), options)

    @stands_in
    def waitid(self, kind: Any, pid: int, options: int, /) -> Any:
        if kind != os.P_ALL or not self.hidden:
            return waitid(kind, pid, options)
        return self._first(options, partial(waitid, os.P_PID), None)

    @stands_in
    def _let_interrupt_in(self, waited: Any, options: int) -> Any:
        """Give an interrupt that ended a child a moment to reach us, so that the code does not continue."""
        if waited[1] == signal.SIGINT and not options & os.WNOHANG:
            time.sleep(INTERRUPT_MOMENT)
        self._raise_deferred()
        return waited

    @stands_in
    def _first(self, options: int, take: Callable[[int, int], Any], nothing: Any) -> Any:
        """Wait for the first child that is not hidden, and reap it."""
        watched = os.WEXITED | os.WNOWAIT | options & (os.WNOHANG | os.WCONTINUED)
        watched |= os.WSTOPPED if options & os.WUNTRACED else 0
        while True:
            self.reap()
            others = own_children()
            if others is not None and not others - self.hidden:
                raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
            self._raise_deferred()  # an interrupt may have come in between
            child = waitid(os.P_ALL, 0, watched)
            if child is None:
                return nothing
            if child.si_pid not in self.hidden:
                taken = take(child.si_pid, options | os.WNOHANG)
                if taken and (not isinstance(taken, tuple) or taken[0]):  # else another thread was faster
                    return taken


@stands_in
def own_children() -> set[int] | None:
    """Return the processes that this one could wait for; None if that is unknown."""
    children: set[int] = set()
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
                continue  # it has just ended
            if parent == os.getpid():
                children.add(int(name))
    return children


class OpenMP:
    """The OpenMP libraries of this process. Their thread pools end on request, and start again when needed."""

    def __init__(self) -> None:
        self._libraries: dict[str, Any] = {}
        self._seen = 0

    def pause(self) -> None:
        """End the pools: otherwise the GNU library waits in a forked child for threads that do not exist there."""
        threads = native_threads(os.getpid(), python_threads())
        if threads <= 0:
            return
        if threads != self._seen:
            self._seen = threads
            try:  # find the libraries among the files that are mapped into this process
                with open("/proc/self/maps") as file:
                    paths = sorted({line[line.index("/") :].rstrip("\n") for line in file if "/" in line})
            except OSError:
                paths = []
            for path in paths:
                name = os.path.basename(path)
                if name.startswith((GNU, *OTHERS)) and name not in self._libraries:
                    # The GNU library has it from version 9 on.
                    pause = getattr(trusted_import("ctypes").CDLL(path), "omp_pause_resource_all", None)
                    if pause is not None:
                        self._libraries[name] = pause
        for name, pause in self._libraries.items():
            if name.startswith(GNU) or not python_threads():
                pause(PAUSE_HARD)


def native_threads(pid: int, pythons: int) -> int:
    """Count the threads of a process that are neither the main one, nor Python's, nor restarted after a fork."""
    folder = "/proc/%d/task/" % pid
    try:
        tasks = os.listdir(folder)
    except OSError:
        return 0
    count = len(tasks) - 1 - pythons
    if count <= 0:
        return 0
    for task in tasks:
        try:
            with open(folder + task + "/comm", "rb") as file:
                count -= file.read().rstrip() == b"jemalloc_bg_thd"  # its library restarts it
        except OSError:
            continue  # it has just ended; the caller counts again
    return count
