"""The first process of a runtime: forks the worker, relays signals, reaps children, and leaves nothing behind.

It runs on Python 3.8 and later and imports next to nothing, so a worker forked from it is a clean interpreter.
Commands come as lines on the control socket. When the socket closes, for any reason, every descendant ends.

    spawn              fork a worker; four descriptors come with it: data, stdin, stdout, stderr
    signal S           send signal S to the worker's process group
    nudge S            send signal S to the worker alone
    sweep TICKS        kill what started at or after TICKS (clock ticks since boot), the worker excepted
    kill               kill the worker
    terminal 1         make the terminal that comes with it the controlling terminal
    terminal 0         give it up
    hold               keep the descriptor that comes with it under a known number (for sandboxes)
    drop               close that descriptor
    folder PATH        delete this folder at the end
    snapshot STATE N   the worker is about to fork a snapshot of this state, which waits at the other end of the
                       socket that comes with it; the oldest go, so that there are at most N
    promote STATE      the snapshot becomes the worker; descriptors as for spawn; the worker that was is killed
    forget STATES      end these snapshots
    split STATE        the snapshot becomes the worker of a separate runtime, whose supervisor gets the control
                       socket that is passed with it; then descriptors as for spawn. It outlives this runtime
    copy STATE         as split, but from a copy of the snapshot, which stays
    try STATE          as promote, with one more descriptor before the others; the worker is suspended, not killed
    settle keep        end the suspended worker
    settle drop PLACE  end the one that replaced it, and everything in this mount namespace

Answers: `spawned PID`, also after promote, `exited PID CODE` (the code negative for a signal), `missing STATE` for a
snapshot that cannot be promoted, `gone STATE` for one that ended, `left PID NAME` for each process that outlives a
promotion and then `promoted STATE`, `settled`, `obeyed` after signal, nudge, terminal, hold.
The controlling terminal belongs to the supervisor: if it were the worker's, the worker's end would hang up on its
background processes.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

TYPE_CHECKING = False  # importing typing would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from interpreter.runtimes.snapshot_store import SnapshotStore

PR_SET_CHILD_SUBREAPER = 36
HELD, KEYBOARD = 60, 61  # numbers of our descriptors, as in launch.py
TIOCSCTTY = 0x540E if sys.platform == "linux" else 0x20007461
TIOCNOTTY = 0x5422 if sys.platform == "linux" else 0x20007471
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)


LATER = "SANDBOX_LATER_"  # before the names of variables that are for our children alone, as in sandbox.py


def inherited() -> dict[str, str]:
    """Return the environment for our children: a sandbox's first process does not load what these variables name."""
    env = dict(os.environ)
    if env.get("PYTHONUSERBASE") == os.devnull:
        del env["PYTHONUSERBASE"]
    for name in [name for name in env if name.startswith(LATER)]:
        env[name[len(LATER) :]] = env.pop(name)
    return env


OURS = os.path.abspath(__file__)
STORE = os.path.join(os.path.dirname(OURS), "snapshot_store.py")


class Supervisor:
    def __init__(self, control_fd: int, worker: list[str], env: dict[str, str]) -> None:
        # Use the lowest free number, because the original one may be HELD or KEYBOARD.
        self.control = _socket.socket(fileno=os.dup(control_fd))
        os.close(control_fd)
        try:
            folder = os.getcwd()
        except OSError:
            folder = os.sep  # the directory was deleted
        self.started_with = sys.executable, OURS, env, folder  # for runtimes that split off
        self.worker = worker  # ["driver", path]; or "exec" or "stdin" (the data socket), program, arguments
        self.pid: int | None = None
        self.suspended: int | None = None  # the worker that a dry run has replaced for now
        self.late = ""  # how that worker ended, if it did
        self.terminal: int | None = None
        self.folder: str | None = None
        self.fds: list[int] = []
        self.pending = b""
        self.poll = select.poll()
        self.kept: SnapshotStore | None = None  # set when the first is taken
        self.origin: int | None = None  # the line to the supervisor that this runtime split off from
        wake, waker = _socket.socketpair()  # sandboxed code could open a pipe in /proc/1/fd and fake signals
        self.wake, self.waker = wake.detach(), waker.detach()
        os.set_blocking(self.wake, False)
        os.set_blocking(self.waker, False)

    def serve(self) -> None:
        """Answer the host until it is gone, then end every descendant."""
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if os.getpid() != 1:  # in a sandbox: without a handler, the kernel drops what code sends
            signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(self.waker)
        self.poll.register(self.control.fileno(), select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)
        self.reap()  # an adopted worker may have ended already
        while True:
            ready = [fd for fd, _ in self.poll.poll()]
            if self.wake in ready and signal.SIGTERM in os.read(self.wake, 4096):
                break
            self.reap()
            if self.kept is not None:
                self.kept.listen(ready)
            if self.control.fileno() in ready and not self.receive():
                break
        while pids := self.descendants(everything=True):
            for pid in pids:
                self.send_signal(pid, signal.SIGKILL)
            for pid in pids:  # parents first: then their children become ours
                self.wait_for(pid)
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break  # none is left, as orphans would be ours
        if self.folder:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)
        if os.getpid() != 1 or not self.apart():
            return
        # The first process of a namespace waits for the runtimes that split off, because they would end with it.
        for state in list(self.snapshots.kept):
            self.snapshots.end(state, announce=False)
        self.say("staying")
        self.poll.unregister(self.control.fileno())
        self.control.close()
        while self.apart():
            ready = [fd for fd, _ in self.poll.poll()]
            if self.wake in ready:
                os.read(self.wake, 4096)
            self.reap()

    @property
    def snapshots(self) -> SnapshotStore:
        self.kept = self.kept or run_file(STORE, "interpreter_snapshot_store")["SnapshotStore"](self)
        return self.kept

    def apart(self) -> list[int]:
        """List the runtimes that split off from this one, which are not ours to end."""
        return self.kept.apart_now() if self.kept is not None else []

    def descendants(self, started_from: int = 0, everything: bool = False) -> list[int]:
        """List the processes of this runtime that started at or after a clock tick.

        The worker and its snapshots are left out unless `everything` is set.
        """
        apart = self.apart()
        ours = [] if everything else [self.pid, *(self.kept.pids() if self.kept is not None else [])]
        table = process_table()
        below_us: list[int] = []
        frontier = [os.getpid()]
        while frontier:
            above = frontier.pop()
            below = [pid for pid, (parent, _) in table.items() if parent == above and pid not in apart]
            frontier += below
            below_us += below
        return [pid for pid in below_us if table[pid][1] >= started_from and pid not in ours]

    def receive(self) -> bool:
        """Carry out the commands that arrived. False when the host is gone."""
        try:
            data, ancillary, _, _ = self.control.recvmsg(65536, _socket.CMSG_SPACE(4 * 8))
        except OSError:
            return False
        for level, kind, payload in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                whole = len(payload) - len(payload) % 4
                self.fds += [int.from_bytes(payload[i : i + 4], sys.byteorder) for i in range(0, whole, 4)]
        if not data:
            return False
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            self.obey(*line.decode().split(" ", 1))
        return True

    def obey(self, command: str, argument: str = "") -> None:
        if command == "spawn":
            self.spawn(self.take_fds(4))
        elif command in ("signal", "nudge"):
            if self.pid:
                self.send_signal(-self.pid if command == "signal" else self.pid, int(argument))
            self.say("obeyed")
        elif command == "sweep":
            is_init = os.getpid() == 1  # of a sandbox: stop the rest, so that none can fork in the meantime
            if is_init:
                self.send_signal(-1, signal.SIGSTOP)
            for pid in self.descendants(started_from=int(argument)):
                self.send_signal(pid, signal.SIGKILL)
            if is_init:
                self.send_signal(-1, signal.SIGCONT)
        elif command == "kill" and self.pid:
            self.send_signal(self.pid, signal.SIGKILL)
        elif command == "terminal":
            import fcntl

            if argument == "1":
                self.terminal = hold(self.fds.pop(0), KEYBOARD)
                fcntl.ioctl(self.terminal, TIOCSCTTY, 0)
                if self.pid:
                    os.tcsetpgrp(self.terminal, self.pid)
            elif self.terminal is not None:
                os.tcsetpgrp(self.terminal, os.getpgrp())  # the foreground group gets a hang-up
                fcntl.ioctl(self.terminal, TIOCNOTTY)
                os.close(self.terminal)
                self.terminal = None
            self.say("obeyed")
        elif command == "hold":
            hold(self.fds.pop(0), HELD)
            self.say("obeyed")
        elif command == "drop":
            os.close(HELD)
        elif command == "folder":
            self.folder = argument
        elif command in ("snapshot", "forget", "promote", "try", "settle", "split", "copy"):
            self.snapshots.obey(command, argument)

    def send_signal(self, pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # already gone, or no longer ours (a set-uid program)

    def take_fds(self, count: int) -> list[int]:
        """Take the next descriptors that came along."""
        taken, self.fds = self.fds[:count], self.fds[count:]
        return taken

    def end_worker(self) -> None:
        worker, self.pid = self.pid, None
        if worker:
            self.send_signal(worker, signal.SIGKILL)
            self.wait_for(worker)  # it may hold a port, and its snapshots only become our children now

    def wait_for(self, pid: int) -> None:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass  # its parent has reaped it; or, in a dry run that has just begun, it is not our child yet

    def spawn(self, fds: list[int]) -> None:
        self.end_worker()
        sys.stdout.flush()
        if self.worker[0] != "driver":
            adopt_orphans()  # a quick program may leave an orphan at once
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # a driver unblocks it when it is ready
        is_warm = self.worker[1] in DEFINED
        pid = LIBRARY[0].fork() if is_warm else os.fork()  # what Python does around a fork writes to a lot of memory
        if pid == 0:
            if is_warm:  # so only the worker does it
                LIBRARY[0].PyOS_BeforeFork()
                LIBRARY[0].PyOS_AfterFork_Child()
            # Release what belongs to the supervisor.
            signal.set_wakeup_fd(-1)
            for number in (*IGNORED, signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            for fd in (self.wake, self.waker, self.control.detach(), self.terminal, self.origin):
                if fd is not None:
                    os.close(fd)
            if self.kept is not None:
                self.kept.close()
            os.setpgid(0, 0)  # no new process session: its leader would take the next terminal it opens as its own
            become_worker(self.worker, fds, self.started_with)  # never returns into the loop
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        self.lead(pid)
        for fd in fds:
            os.close(fd)
        self.pid = pid
        self.say("spawned %d" % pid)
        if self.worker[0] == "driver":
            adopt_orphans()  # only now, because its imports are not for the worker

    def lead(self, pid: int) -> None:
        """Make the worker the leader of a process group, which gets the terminal's keys."""
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # it has done that itself
        if self.terminal is not None:
            os.tcsetpgrp(self.terminal, pid)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            if pid == self.pid:
                self.pid = None
                self.say("exited %d %d" % (pid, code))
            elif pid == self.suspended:
                self.suspended, self.late = None, "exited %d %d" % (pid, code)

    def say(self, line: str) -> None:
        try:
            self.control.sendall(line.encode() + b"\n")
        except OSError:
            pass  # the host is gone: the next poll notices and ends everything


def hold(fd: int, number: int) -> int:
    """Move a descriptor to this number, and return the number."""
    if fd != number:
        os.dup2(fd, number, inheritable=False)
        os.close(fd)
    return number


DEFINED: dict[str, dict[str, Any]] = {}  # by path, the names that a file defined, perhaps in a warm parent
LIBRARY: list[Any] = []  # the C library, once needed


def run_file(path: str, name: str) -> dict[str, Any]:
    """Run a file and return the names that it defines, without a trace in `sys.modules`."""
    if path not in DEFINED:
        with open(path, "rb") as file:
            DEFINED[path] = {"__name__": name, "__file__": path}
            exec(compile(file.read(), path, "exec"), DEFINED[path])
    return DEFINED[path]


def become_worker(worker: list[str], fds: list[int], started_with: tuple[Any, ...]) -> None:
    """Put the descriptors in place and run the driver or the program, in the forked child. Never returns."""
    data, *streams = fds
    env = started_with[2]
    is_late = env != dict(os.environ)
    if is_late:
        os.environ.clear()
        os.environ.update(env)
    if worker[0] == "stdin":
        os.close(streams[0])
        streams[0] = data
    for target, fd in enumerate(streams):
        os.dup2(fd, target, inheritable=True)
        os.close(fd)
    if worker[0] == "driver":
        os.set_inheritable(data, False)
        # Run it as if it had been started as a program.
        sys.argv = [""]
        folder = os.path.dirname(OURS)
        sys.path[:] = [entry for entry in sys.path if entry != folder]  # the user's imports must not find our files
        if is_late and worker[1] not in DEFINED:  # a warm parent has the session's search path already
            find_packages()
        numbers: Any = sys.modules.get("numpy.random")  # imported by a warm parent
        if numbers is not None:
            numbers.seed(int.from_bytes(os.urandom(4), "little"))  # else all sessions would draw the same numbers
        scope = run_file(worker[1], "interpreter_driver")
        status = 0
        try:
            status = scope["main"](data, (*started_with, worker)) or 0
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    pass
            if sys.exc_info()[0] is None:
                os._exit(status)
    if worker[0] == "exec":
        os.set_inheritable(data, True)
    argv = [argument.replace("{data}", str(data)) for argument in worker[1:]]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, ("%s: %s\n" % (argv[0], error.strerror)).encode())
        os._exit(127)


def find_packages() -> None:
    """Set the child's search path as if Python had started with its variables."""
    site: Any = sys.modules.get("site")
    if site is None:
        return
    paths = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[0:0] = [entry for entry in paths if entry not in sys.path]
    site.USER_BASE = site.USER_SITE = None
    if site.ENABLE_USER_SITE and os.path.isdir(site.getusersitepackages()):
        site.addsitedir(site.getusersitepackages())
    if "sitecustomize" not in sys.modules:
        try:
            __import__("sitecustomize")
        except ImportError:
            pass  # there is none
        except Exception as error:  # noqa: BLE001 - Python starts without it, too
            os.write(2, ("Error in sitecustomize: %r\n" % error).encode())


def process_table() -> dict[int, tuple[int, int]]:
    if not os.path.exists("/proc/self/stat"):  # macOS (untested): no times, so a sweep takes every descendant
        rows = [row.split() for row in os.popen("ps -axo pid=,ppid=").read().split("\n") if row.strip()]
        return {int(pid): (int(parent), sys.maxsize) for pid, parent in rows}
    processes: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fd = os.open("/proc/%s/stat" % name, os.O_RDONLY)  # takes a third of the time of a file object
                try:
                    fields = os.read(fd, 4096).rpartition(b")")[2].split()
                finally:
                    os.close(fd)
            except OSError:
                continue  # it has just ended
            processes[int(name)] = int(fields[1]), int(fields[19])
    return processes


def adopt_orphans() -> None:
    """Become the parent of this runtime's orphans, so that none escapes (Linux)."""
    if sys.platform == "linux":
        if not LIBRARY:
            import ctypes

            LIBRARY.append(ctypes.PyDLL(None))
        LIBRARY[0].prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    first, *adopted = sys.argv[1].split(",")
    supervisor = Supervisor(int(first), sys.argv[2:], inherited())
    if adopted:  # start with an existing worker: this runtime split off from another one
        pid, origin = [int(number) for number in adopted]
        supervisor.pid, supervisor.origin = pid, origin
        os.set_inheritable(origin, False)
        supervisor.lead(pid)
        supervisor.say("spawned %d" % pid)
    supervisor.serve()
