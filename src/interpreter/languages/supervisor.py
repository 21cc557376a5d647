"""The first process of a live session: forks the worker, relays signals, reaps, and leaves nothing behind.

It runs on Python 3.8 and later and imports next to nothing, so that a worker forked from it is a clean interpreter.
Commands come as lines on the control socket; its closing, whatever ended the host, ends every descendant.

    spawn              fork a worker; four descriptors come along: data, stdin, stdout, stderr
    signal S           send signal S to the worker's process group
    nudge S            send signal S to the worker alone
    sweep TICKS        kill what started at or after TICKS (clock ticks since boot), the worker excepted
    kill               kill the worker
    terminal 1         make the terminal that comes along the controlling one of the session
    terminal 0         have none again
    folder PATH        delete this folder at the end
    snapshot STATE N   the worker is about to fork a snapshot of this state, which waits at the other end of the
                       socket that comes along; the oldest go, so that there are at most N
    promote STATE      the snapshot becomes the worker; descriptors as for spawn; the worker that was is killed
    forget STATES      end these snapshots
    try STATE          as promote, with a fifth descriptor, but the worker that was stands aside
    settle keep        end the worker that stands aside
    settle drop PLACE  end the one that took its place, and all that is in this mount namespace

Answers: `spawned PID`, also after promote, `exited PID CODE` (the code negative for a signal), `missing STATE` for a
snapshot that cannot be promoted, `gone STATE` for one that ended, `left PID NAME` for each process that outlives a
promotion and then `promoted STATE`, `obeyed` after signal, nudge, terminal.
The controlling terminal is ours, not the worker's: or its end would hang up on what it leaves in the background.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

TYPE_CHECKING = False  # importing typing would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any, Callable

PR_SET_CHILD_SUBREAPER = 36
TIOCSCTTY = 0x540E if sys.platform == "linux" else 0x20007461
TIOCNOTTY = 0x5422 if sys.platform == "linux" else 0x20007471
PRESSURE = b"some 200000 2000000\0"  # programs waited for memory for 0.2 s within 2 s
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)


class Supervisor:
    def __init__(self, control_fd: int, worker: list[str]) -> None:
        self.control = _socket.socket(fileno=control_fd)
        self.worker = worker  # ["driver", path]; or "exec" or "stdin" (there is the data socket), program, arguments
        self.pid: int | None = None
        self.aside: int | None = None  # the worker whose place another one has taken on trial
        self.late = ""  # how that one ended, if it did
        self.terminal: int | None = None
        self.folder: str | None = None
        self.fds: list[int] = []
        self.pending = b""
        self.poll = select.poll()
        self.snapshots = Snapshots(self.poll, self.say)
        self.wake, self.waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self.waker, False)
        os.set_inheritable(control_fd, False)

    def serve(self) -> None:
        """Answer the host until it is gone, then end every descendant."""
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(self.waker)
        self.poll.register(self.control.fileno(), select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)
        while True:
            ready = [fd for fd, _ in self.poll.poll()]
            if self.wake in ready and signal.SIGTERM in os.read(self.wake, 4096):
                break
            self.reap()
            self.snapshots.listen(ready)
            if self.control.fileno() in ready and not self.receive():
                break
        end_descendants()
        if self.folder:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self) -> bool:
        """Carry out the commands that arrived; False when the host is gone."""
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
            fds, self.fds = self.fds[:4], self.fds[4:]
            self.spawn(fds)
        elif command == "signal":
            if self.pid:
                send_signal(-self.pid, int(argument))
            self.say("obeyed")
        elif command == "nudge":
            if self.pid:
                send_signal(self.pid, int(argument))
            self.say("obeyed")
        elif command == "sweep":
            spared = [self.pid, *self.snapshots.pids()]
            for pid in descendants(started_from=int(argument)):
                if pid not in spared:
                    send_signal(pid, signal.SIGKILL)
        elif command == "kill" and self.pid:
            send_signal(self.pid, signal.SIGKILL)
        elif command == "terminal":
            self.take_terminal() if argument == "1" else self.leave_terminal()
            self.say("obeyed")
        elif command == "folder":
            self.folder = argument
        elif command == "snapshot":
            self.snapshots.expect(self.fds.pop(0), *argument.split())
        elif command == "promote":
            fds, self.fds = self.fds[:4], self.fds[4:]
            self.promote(argument, fds)
        elif command == "try":
            fds, self.fds = self.fds[:5], self.fds[5:]
            self.aside, self.pid, self.late = self.pid, None, ""
            self.promote(argument, fds)
            if self.pid is None:
                self.aside, self.pid = None, self.aside
        elif command == "settle":
            word, *place = argument.split()
            self.settle(word, *map(int, place))
        elif command == "forget":
            for state in argument.split():
                self.snapshots.end(state)

    def end_worker(self) -> None:
        worker, self.pid = self.pid, None
        if worker:
            send_signal(worker, signal.SIGKILL)
            try:
                os.waitpid(worker, 0)  # it may hold a port, and only now are its snapshots our children
            except ChildProcessError:
                pass  # on trial, and so lately that it is not our child yet

    def settle(self, word: str, place: int = 0) -> None:
        """The trial is over: one of the two workers goes, and with the new one all that is where it was."""
        if word == "keep":
            self.aside, self.pid = self.pid, self.aside
        self.end_worker()
        while place and (there := [pid for pid in descendants() if mounts_of(pid) == place]):
            for pid in there:
                send_signal(pid, signal.SIGKILL)
            self.reap()
        worker, self.aside = self.aside, None
        self.pid = worker
        if worker:
            self.lead(worker)
        elif self.late:
            self.say(self.late)
        self.say("settled")

    def promote(self, state: str, fds: list[int]) -> None:
        pid = None
        if self.snapshots.has(state):
            self.end_worker()
            pid = self.snapshots.wake(state, fds)
        for fd in fds:
            os.close(fd)
        if pid is None:
            self.say("missing %s" % state)
            return
        self.pid = pid
        self.lead(pid)
        self.say("spawned %d" % pid)
        for other in descendants():
            if other not in (pid, *self.snapshots.pids()):
                self.say("left %d %s" % (other, name_of(other)))
        self.say("promoted %s" % state)

    def spawn(self, fds: list[int]) -> None:
        self.end_worker()
        sys.stdout.flush()
        if self.worker[0] != "driver":
            adopt_orphans()  # a quick program may leave one at once
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # a driver takes it when it is ready to
        pid = os.fork()
        if pid == 0:
            self.become_worker(fds)  # never returns into the loop
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        self.lead(pid)
        for fd in fds:
            os.close(fd)
        self.pid = pid
        self.say("spawned %d" % pid)
        if self.worker[0] == "driver":
            adopt_orphans()  # only now: what it imports is not for the worker

    def lead(self, pid: int) -> None:
        """Make the worker the leader of a process group, the one that the terminal's keys go to."""
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # it has done so itself, and gone on
        if self.terminal is not None:
            os.tcsetpgrp(self.terminal, pid)

    def take_terminal(self) -> None:
        import fcntl

        self.terminal = self.fds.pop(0)
        fcntl.ioctl(self.terminal, TIOCSCTTY, 0)
        if self.pid:
            os.tcsetpgrp(self.terminal, self.pid)

    def leave_terminal(self) -> None:
        import fcntl

        if self.terminal is not None:
            os.tcsetpgrp(self.terminal, os.getpgrp())  # the group in front is hung up on
            fcntl.ioctl(self.terminal, TIOCNOTTY)
            os.close(self.terminal)
            self.terminal = None

    def become_worker(self, fds: list[int]) -> None:
        """In the child: put the descriptors in place and run the driver or the program."""
        signal.set_wakeup_fd(-1)
        for number in (*IGNORED, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for fd in (self.wake, self.waker, self.control.detach(), *([self.terminal] if self.terminal else [])):
            os.close(fd)
        self.snapshots.close()
        os.setpgid(0, 0)  # no session of its own: a leader would take the next terminal it opens for its own
        data, *streams = fds
        if self.worker[0] == "stdin":
            os.close(streams[0])
            streams[0] = data
        for target, fd in enumerate(streams):
            os.dup2(fd, target, inheritable=True)
            os.close(fd)
        if self.worker[0] == "driver":
            os.set_inheritable(data, False)
            run_driver(self.worker[1], data)
        if self.worker[0] == "exec":
            os.set_inheritable(data, True)
        argv = [word.replace("{data}", str(data)) for word in self.worker[1:]]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        try:
            os.execvp(argv[0], argv)
        except OSError as error:
            os.write(2, ("%s: %s\n" % (argv[0], error.strerror)).encode())
            os._exit(127)

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
            elif pid == self.aside:
                self.aside, self.late = None, "exited %d %d" % (pid, code)

    def say(self, line: str) -> None:
        try:
            self.control.sendall(line.encode() + b"\n")
        except OSError:
            pass  # the host is gone: the next poll sees it and ends everything


class Snapshot:
    """A copy of the worker that waits."""

    def __init__(self, fd: int) -> None:
        self.socket = _socket.socket(fileno=fd)
        self.pid: int | None = None  # known as soon as it waits

    def listen(self, flags: int = 0) -> bool:
        """Hear what it says of itself; False if it is gone."""
        try:
            said = self.socket.recv(64, flags)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if said:
            self.pid = int(said)
        return bool(said)

    def end(self) -> None:
        if self.pid:
            send_signal(self.pid, signal.SIGKILL)
        self.socket.close()  # at which it ends by itself


class Snapshots:
    """The states that the session can go back to, the oldest first."""

    def __init__(self, poll: select.poll, say: Callable[[str], None]) -> None:
        self.poll, self.say = poll, say
        self.kept: dict[str, Snapshot] = {}
        self.pressure: int | None = None  # tells when memory is short; -1 where nothing does

    def expect(self, fd: int, state: str, most: str) -> None:
        """A snapshot is about to be there, in the place of one of the same state."""
        self.end(state, told=False)
        if self.kept:  # when memory runs out, the newest should live: it is needed then
            prefer_to_kill(next(reversed(list(self.kept.values()))).pid)
        self.kept[state] = Snapshot(fd)
        self.poll.register(fd, select.POLLIN)
        self.watch_pressure()
        while len(self.kept) > max(1, int(most)):
            self.end(next(iter(self.kept)))
        if memory_is_short():
            self.end_oldest()

    def listen(self, ready: list[int]) -> None:
        for state, snapshot in list(self.kept.items()):
            if snapshot.socket.fileno() in ready and not snapshot.listen(_socket.MSG_DONTWAIT):
                self.end(state)
        if self.pressure is not None and self.pressure in ready:
            self.end_oldest()

    def has(self, state: str) -> bool:
        snapshot = self.kept.get(state)
        if snapshot is not None and not snapshot.listen(_socket.MSG_DONTWAIT):
            self.end(state)
        return state in self.kept

    def wake(self, state: str, fds: list[int]) -> int | None:
        """Let a snapshot go on with these descriptors; its number, or None if there is none."""
        snapshot = self.kept.pop(state, None)
        if snapshot is None:
            return None
        self.poll.unregister(snapshot.socket.fileno())
        if snapshot.pid or (snapshot.listen() and snapshot.pid):
            prefer_to_kill(snapshot.pid, SCORE)
            rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
            try:
                snapshot.socket.sendmsg([b"go on"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
                if len(fds) > 4 and not snapshot.listen():  # on trial, it is a child of ours and has a new number
                    raise OSError
                snapshot.socket.close()
                return snapshot.pid
            except OSError:
                pass  # somebody killed it
        snapshot.end()
        return None

    def end_oldest(self) -> None:
        """Memory is short: half of them go."""
        for state in list(self.kept)[: len(self.kept) // 2]:
            self.end(state)

    def end(self, state: str, told: bool = True) -> None:
        snapshot = self.kept.pop(state, None)
        if snapshot is not None:
            self.poll.unregister(snapshot.socket.fileno())
            snapshot.end()
            if told:
                self.say("gone %s" % state)

    def pids(self) -> list[int]:
        for snapshot in self.kept.values():
            snapshot.listen(_socket.MSG_DONTWAIT)  # its first word came before the block began
        return [snapshot.pid for snapshot in self.kept.values() if snapshot.pid]

    def close(self) -> None:
        """In a worker: these are not its own."""
        for snapshot in self.kept.values():
            snapshot.socket.close()
        if self.pressure is not None and self.pressure >= 0:
            os.close(self.pressure)

    def watch_pressure(self) -> None:
        """Have the kernel tell when programs wait for memory."""
        if self.pressure is not None:
            return
        self.pressure = -1
        try:
            fd = os.open("/proc/pressure/memory", os.O_RDWR | os.O_NONBLOCK)
        except OSError:
            return  # not Linux, or switched off
        try:
            os.write(fd, PRESSURE)
        except OSError:
            os.close(fd)
            return
        self.pressure = fd
        self.poll.register(fd, select.POLLPRI)


def prefer_to_kill(pid: int | None, score: bytes = b"1000") -> None:
    """Tell the kernel which of us to kill when there is no memory left."""
    try:
        with open("/proc/%d/oom_score_adj" % (pid or 0), "wb") as file:
            file.write(score)
    except OSError:
        pass  # gone, or not Linux


def memory_is_short() -> bool:
    """Whether less than a tenth of the machine's memory is to be had."""
    try:
        with open("/proc/meminfo", "rb") as file:
            total, _, available = [int(line.split()[1]) for line in file.read(256).splitlines()[:3]]
    except (OSError, ValueError):
        return False
    return available * 10 < total


def own_score() -> bytes:
    try:
        with open("/proc/self/oom_score_adj", "rb") as file:
            return file.read()
    except OSError:
        return b"0"


def run_driver(path: str, data_fd: int) -> None:
    """Run a Python driver in this very process, as if it had been started by itself."""
    sys.argv = [""]
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != folder]  # the user's imports must not find our files
    scope: dict[str, Any] = {"__name__": "interpreter_driver", "__file__": path}
    with open(path, "rb") as file:
        source = file.read()
    status = 0
    try:
        exec(compile(source, path, "exec"), scope)
        status = scope["main"](data_fd) or 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        if sys.exc_info()[0] is None:
            os._exit(status)


def adopt_orphans() -> None:
    """Have the orphans of this session handed to us, so that none escapes (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(started_from: int = 0) -> list[int]:
    """Every process below this one that started at or after the given clock tick."""
    parents, started = process_table()
    found: list[int] = []
    frontier = [os.getpid()]
    while frontier:
        above = frontier.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        frontier += below
        found += below
    return [pid for pid in found if started.get(pid, started_from) >= started_from]


def name_of(pid: int) -> str:
    try:
        with open("/proc/%d/comm" % pid) as file:
            return file.read().strip()
    except OSError:
        return "process"


def mounts_of(pid: int) -> int | None:
    """The number of the mount namespace that a process is in."""
    try:
        return os.stat("/proc/%d/ns/mnt" % pid).st_ino
    except OSError:
        return None


def process_table() -> tuple[dict[int, int], dict[int, int]]:
    if not os.path.exists("/proc/self/stat"):
        return process_table_by_ps()
    parents: dict[int, int] = {}
    started: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended while we looked
            parents[int(name)], started[int(name)] = int(fields[1]), int(fields[19])
    return parents, started


def process_table_by_ps() -> tuple[dict[int, int], dict[int, int]]:
    """Without /proc (macOS; untested): parents only, so a sweep takes every descendant."""
    rows = os.popen("ps -axo pid=,ppid=").read().split("\n")
    pairs = [row.split() for row in rows if row.strip()]
    return {int(pid): int(parent) for pid, parent in pairs}, {}


def end_descendants() -> None:
    while True:
        for pid in descendants():
            send_signal(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone already, or no longer ours (a set-uid program)


SCORE = own_score()

if __name__ == "__main__":
    Supervisor(int(sys.argv[1]), sys.argv[2:]).serve()
