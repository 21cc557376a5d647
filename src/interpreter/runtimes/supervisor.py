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
    hold               keep the descriptor that comes along under a number that is known (for sandboxes)
    drop               and let go of it
    folder PATH        delete this folder at the end
    snapshot STATE N   the worker is about to fork a snapshot of this state, which waits at the other end of the
                       socket that comes along; the oldest go, so that there are at most N
    promote STATE      the snapshot becomes the worker; descriptors as for spawn; the worker that was is killed
    forget STATES      end these snapshots
    split STATE        the snapshot becomes the worker of a session of its own, whose supervisor gets the control
                       socket that comes along; then descriptors as for spawn. It outlives this session
    try STATE          as promote, with one descriptor more before the others, but the worker that was stands aside
    settle keep        end the worker that stands aside
    settle drop PLACE  end the one that took its place, and all that is in this mount namespace

Answers: `spawned PID`, also after promote, `exited PID CODE` (the code negative for a signal), `missing STATE` for a
snapshot that cannot be promoted, `gone STATE` for one that ended, `left PID NAME` for each process that outlives a
promotion and then `promoted STATE`, `split STATE`, `settled`, `obeyed` after signal, nudge, terminal, hold.
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
    from typing import Any

    from interpreter.runtimes.kept_snapshots import Snapshots

PR_SET_CHILD_SUBREAPER = 36
LOADED: dict[str, Beside] = {}  # files beside this one
HELD, KEYBOARD = 60, 61  # numbers of ours for descriptors, as in containment.py
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)


def present_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep  # somebody removed it


# for a session that splits off
ORIGIN = (sys.executable, os.path.abspath(__file__), dict(os.environ), present_folder())


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
        self.kept: Snapshots | None = None
        self.origin: int | None = None  # the line to the supervisor that this session split off from
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
        self.reap()  # an adopted worker may have been quicker
        while True:
            ready = [fd for fd, _ in self.poll.poll()]
            if self.wake in ready and signal.SIGTERM in os.read(self.wake, 4096):
                break
            self.reap()
            if self.kept is not None:
                self.kept.listen(ready)
            if self.control.fileno() in ready and not self.receive():
                break
        self.end_descendants()
        if self.folder:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)
        if os.getpid() == 1 and self.apart():
            self.stay()

    def stay(self) -> None:
        """As the first process of a namespace: with us, the sessions that split off would end."""
        for state in list(self.snapshots.kept):
            self.snapshots.end(state, told=False)
        self.say("staying")
        self.poll.unregister(self.control.fileno())
        self.control.close()
        while self.apart():
            ready = [fd for fd, _ in self.poll.poll()]
            if self.wake in ready:
                os.read(self.wake, 4096)
            self.reap()

    @property
    def snapshots(self) -> Snapshots:
        if self.kept is None:
            beside("promotions")  # while the file is sure to be there
            self.kept = beside("kept_snapshots").Snapshots(self.poll, self.say, self.origin)
        return self.kept

    def apart(self) -> list[int]:
        """Sessions that split off from this one: they are not ours to end."""
        return self.kept.apart_now() if self.kept is not None else []

    def descendants(self, started_from: int = 0) -> list[int]:
        """Every process of this session, but for the worker and its snapshots."""
        ours = [self.pid, *(self.kept.pids() if self.kept is not None else [])]
        found: list[int] = beside("process_table").descendants(self.apart(), started_from)
        return [pid for pid in found if pid not in ours]

    def name_of(self, pid: int) -> str:
        name: str = beside("process_table").name_of(pid)
        return name

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
            self.spawn(self.take_fds(4))
        elif command == "signal":
            if self.pid:
                send_signal(-self.pid, int(argument))
            self.say("obeyed")
        elif command == "nudge":
            if self.pid:
                send_signal(self.pid, int(argument))
            self.say("obeyed")
        elif command == "sweep":
            everybody(signal.SIGSTOP)
            for pid in self.descendants(started_from=int(argument)):
                send_signal(pid, signal.SIGKILL)
            everybody(signal.SIGCONT)
        elif command == "kill" and self.pid:
            send_signal(self.pid, signal.SIGKILL)
        elif command == "terminal":
            self.change_terminal(argument == "1")
            self.say("obeyed")
        elif command == "hold":
            hold(self.fds.pop(0), HELD)
            self.say("obeyed")
        elif command == "drop":
            os.close(HELD)
        elif command == "folder":
            self.folder = argument
        elif command == "snapshot":
            self.snapshots.expect(self.fds.pop(0), *argument.split())
        elif command == "forget":
            for state in argument.split():
                self.snapshots.end(state)
        elif command in ("promote", "try", "settle", "split"):
            beside("promotions").obey(self, command, argument)

    def take_fds(self, count: int) -> list[int]:
        """The next of the descriptors that came along."""
        taken, self.fds = self.fds[:count], self.fds[count:]
        return taken

    def end_descendants(self) -> None:
        while True:
            found = beside("process_table").descendants(self.apart())
            if not found:
                return
            for pid in found:
                send_signal(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def end_worker(self) -> None:
        worker, self.pid = self.pid, None
        if worker:
            send_signal(worker, signal.SIGKILL)
            try:
                os.waitpid(worker, 0)  # it may hold a port, and only now are its snapshots our children
            except ChildProcessError:
                pass  # on trial, and so lately that it is not our child yet

    def adopt(self, worker: int, origin: int) -> None:
        """Begin with a worker that is there already: this session split off from another one."""
        self.pid, self.origin = worker, origin
        os.set_inheritable(origin, False)
        self.lead(worker)
        beside("process_table")
        self.say("spawned %d" % worker)

    def spawn(self, fds: list[int]) -> None:
        self.end_worker()
        sys.stdout.flush()
        if self.worker[0] != "driver":
            adopt_orphans()  # a quick program may leave one at once
        program = beside("worker")
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # a driver takes it when it is ready to
        pid = os.fork()
        if pid == 0:
            self.let_go()
            program.become(self.worker, fds, ORIGIN, run_file)  # never returns into the loop
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        self.lead(pid)
        for fd in fds:
            os.close(fd)
        self.pid = pid
        self.say("spawned %d" % pid)
        if self.worker[0] == "driver":
            adopt_orphans()  # only now: what it imports is not for the worker
        beside("process_table")  # while the file is sure to be there: without it, nothing would be ended

    def lead(self, pid: int) -> None:
        """Make the worker the leader of a process group, the one that the terminal's keys go to."""
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # it has done so itself, and gone on
        if self.terminal is not None:
            os.tcsetpgrp(self.terminal, pid)

    def change_terminal(self, taken: bool) -> None:
        terminals = beside("controlling_terminal")
        if taken:
            self.terminal = hold(self.fds.pop(0), KEYBOARD)
            terminals.take(self.terminal, self.pid)
        elif self.terminal is not None:
            terminals.leave(self.terminal)
            self.terminal = None

    def let_go(self) -> None:
        """In the child: keep nothing of a supervisor's."""
        signal.set_wakeup_fd(-1)
        for number in (*IGNORED, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for fd in (self.wake, self.waker, self.control.detach(), self.terminal, self.origin):
            if fd is not None:
                os.close(fd)
        if self.kept is not None:
            self.kept.close()
        os.setpgid(0, 0)  # no session of its own: a leader would take the next terminal it opens for its own

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


def hold(fd: int, number: int) -> int:
    """The same descriptor under this number."""
    if fd != number:
        os.dup2(fd, number, inheritable=False)
        os.close(fd)
    return number


def run_file(path: str, name: str) -> dict[str, Any]:
    """What a file defines, without a trace in `sys.modules`."""
    scope: dict[str, Any] = {"__name__": name, "__file__": path}
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), scope)
    return scope


class Beside:
    """What a file beside this one defines."""

    def __init__(self, name: str) -> None:
        path = os.path.join(os.path.dirname(ORIGIN[1]), name + ".py")
        self.__dict__.update(run_file(path, "interpreter_" + name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def beside(name: str) -> Beside:
    if name not in LOADED:
        LOADED[name] = Beside(name)
    return LOADED[name]


def everybody(number: int) -> None:
    """In a sandbox, of which this is the first process: all others at once, so that none can fork in the meantime."""
    if os.getpid() == 1:
        send_signal(-1, number)


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone already, or no longer ours (a set-uid program)


def adopt_orphans() -> None:
    """Have the orphans of this session handed to us, so that none escapes (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    first, *adopted = sys.argv[1].split(",")
    supervisor = Supervisor(int(first), sys.argv[2:])
    if adopted:
        supervisor.adopt(*map(int, adopted))
    supervisor.serve()
