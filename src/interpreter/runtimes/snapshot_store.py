"""A supervisor's snapshots: which exist, which are ended when memory is short, and how one becomes the worker.

The supervisor runs this file when the first snapshot is taken. Like the supervisor, it needs only Python 3.8.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interpreter.runtimes.supervisor import Supervisor

PRESSURE = b"some 200000 2000000\0"  # programs waited for memory for 0.2 s within 2 s
FORK_TIMEOUT = 30_000  # milliseconds for a forked process to report
SPARE = 10  # memory is short when less than one part in ten is left
ENOUGH = 4  # under pressure: with one part in four left, only a small control group is short of memory
SAVING = "oi-saving"  # what a process that saves variables calls itself
GROUPS = "/sys/fs/cgroup"
OLD_GROUP = ("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file")
NEW_GROUP = ("memory.max", "memory.current", b"inactive_file")


class Snapshot:
    """A waiting copy of the worker."""

    def __init__(self, fd: int) -> None:
        self.socket = _socket.socket(fileno=fd)
        self.pid: int | None = None  # known once it waits
        self.is_ranked = False  # whether the kernel knows when to kill it

    def listen(self, flags: int = 0) -> bool:
        """Receive its pid. False if it is gone."""
        try:
            report = self.socket.recv(64, flags)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if report:
            self.pid = int(report)
        return bool(report)

    def wait(self) -> bool:
        """Wait for its pid, for a limited time: the worker may have died, and a child may hold the socket open."""
        poll = select.poll()
        poll.register(self.socket.fileno(), select.POLLIN)
        return bool(poll.poll(FORK_TIMEOUT)) and self.listen()

    def wake(self, word: bytes, fds: list[int]) -> bool:
        if not self.pid and not (self.wait() and self.pid):
            return False
        prefer_to_kill(self.pid, SCORE)
        rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
        try:
            self.socket.sendmsg([word], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        except OSError:
            return False  # it was killed
        return True

    def end(self) -> None:
        try:
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended
        self.socket.close()  # which also ends it


class SnapshotStore:
    """The states that the runtime can return to, oldest first."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor, self.poll = supervisor, supervisor.poll
        self.origin = _socket.socket(fileno=supervisor.origin) if supervisor.origin is not None else None
        self.kept: dict[str, Snapshot] = {}
        self.apart: list[Snapshot] = []  # runtimes that split off; their sockets close when they end
        self.ending: list[int] = []  # killed, but perhaps not ended yet
        self.score = 1000  # for the next snapshot that is no longer the newest
        self.pressure: int | None = None
        try:  # have the kernel report when programs wait for memory
            self.pressure = os.open("/proc/pressure/memory", os.O_RDWR | os.O_NONBLOCK)
            os.write(self.pressure, PRESSURE)
            self.poll.register(self.pressure, select.POLLPRI)
        except OSError:
            pass  # not Linux, or disabled

    def expect(self, fd: int, state: str, most: str) -> None:
        """Prepare for a snapshot that is about to be taken and replaces one of the same state."""
        self.end(state, announce=False)
        self.kept[state] = Snapshot(fd)
        self.poll.register(fd, select.POLLIN)
        while len(self.kept) > max(1, int(most)):
            self.end(next(iter(self.kept)))
        self.rank()
        if memory_is_short(LIMITING):
            self.end_oldest()

    def rank(self) -> None:
        """Tell the kernel what to kill first when memory runs out: older ones sooner, the newest after the worker."""
        *older, _ = self.kept.values()
        step = max(1, 450 // max(20, len(older)))
        unranked = [snapshot for snapshot in older if not snapshot.is_ranked]
        if self.score - step * len(unranked) < 100:  # no score is left below the others
            self.score, unranked = 1000, older
        for snapshot in unranked:
            if not snapshot.pid:
                snapshot.listen(_socket.MSG_DONTWAIT)
            if snapshot.pid:
                prefer_to_kill(snapshot.pid, b"%d" % self.score)
                snapshot.is_ranked = True
                self.score -= step

    def listen(self, ready: list[int]) -> None:
        for state, snapshot in list(self.kept.items()):
            if snapshot.socket.fileno() in ready and not snapshot.listen(_socket.MSG_DONTWAIT):
                self.end(state)
        for snapshot in list(self.apart):
            if snapshot.socket.fileno() in ready:
                self.hear(snapshot)
        if self.pressure is not None and self.pressure in ready and memory_is_short(LIMITING, ENOUGH):
            self.end_oldest()

    def has(self, state: str) -> bool:
        snapshot = self.kept.get(state)
        if snapshot is not None and not snapshot.listen(_socket.MSG_DONTWAIT):
            self.end(state)
        return state in self.kept

    def wake(self, state: str, word: bytes, fds: list[int]) -> Snapshot | None:
        """Resume a snapshot, which is no longer kept then. None if that is not possible."""
        snapshot = self.take_out(state)
        if snapshot is None or snapshot.wake(word, fds):
            return snapshot
        snapshot.end()
        return None

    def leave_alone(self, runtime: Snapshot) -> None:
        """Track a runtime that has split off.

        It lives as long as its socket, and so do those that split off from it.
        """
        self.apart.append(runtime)
        self.poll.register(runtime.socket.fileno(), select.POLLIN)
        if self.origin is not None:  # when we end, it belongs to the runtime that we split off from
            rights = runtime.socket.fileno().to_bytes(4, sys.byteorder)
            try:
                self.origin.sendmsg([b"%d" % (runtime.pid or 0)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
            except OSError:
                pass  # that runtime has ended

    def hear(self, runtime: Snapshot) -> bool:
        """Handle the end of a runtime that split off, or a further split. False if there is no news."""
        try:
            report, ancillary, _, _ = runtime.socket.recvmsg(16, _socket.CMSG_SPACE(4), _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            report = b""
        if report:
            other = Snapshot(int.from_bytes(ancillary[0][2][:4], sys.byteorder))
            other.pid = int(report)
            self.leave_alone(other)
            return True
        self.poll.unregister(runtime.socket.fileno())
        runtime.socket.close()  # no SIGKILL: its pid may be another's by now
        self.apart.remove(runtime)
        return False

    def apart_now(self) -> list[int]:
        """List the runtimes that have split off by now."""
        for runtime in list(self.apart):
            while self.hear(runtime):
                pass
        return [runtime.pid for runtime in self.apart if runtime.pid]

    def take_out(self, state: str) -> Snapshot | None:
        snapshot = self.kept.pop(state, None)
        if snapshot is not None:
            self.poll.unregister(snapshot.socket.fileno())
        return snapshot

    def end_oldest(self) -> None:
        """End half of the snapshots, because memory is short."""
        for state in list(self.kept)[: len(self.kept) // 2]:
            self.end(state)

    def end(self, state: str, announce: bool = True) -> None:
        snapshot = self.take_out(state)
        if snapshot is not None:
            snapshot.end()
            self.ending = [pid for pid in self.ending if os.path.exists("/proc/%d" % pid)] + [snapshot.pid or 0]
            if announce:
                self.supervisor.say("gone %s" % state)

    def pids(self) -> list[int]:
        """List the processes that are snapshots, or were until just now."""
        for snapshot in self.kept.values():
            snapshot.listen(_socket.MSG_DONTWAIT)  # its pid was sent before the block began
        return self.ending + [snapshot.pid for snapshot in self.kept.values() if snapshot.pid]

    def close(self) -> None:
        """Close what belongs to the supervisor, in a worker."""
        for snapshot in [*self.kept.values(), *self.apart]:
            snapshot.socket.close()
        if self.origin is not None:
            self.origin.detach()
        if self.pressure is not None:
            os.close(self.pressure)

    # -- commands ----------------------------------------------------------------------------------------------

    def obey(self, command: str, argument: str) -> None:
        supervisor = self.supervisor
        if command == "snapshot":
            self.expect(supervisor.fds.pop(0), *argument.split())
        elif command == "forget":
            for state in argument.split():
                self.end(state, announce=False)  # the host knows, and may have announced a new snapshot of this state
        elif command == "promote":
            self.promote(argument, supervisor.take_fds(4))
        elif command == "try":
            entrance = supervisor.take_fds(1)
            supervisor.suspended, supervisor.pid, supervisor.late = supervisor.pid, None, ""
            self.promote(argument, supervisor.take_fds(4) + entrance)
            if supervisor.pid is None:
                supervisor.suspended, supervisor.pid = None, supervisor.suspended
        elif command == "settle":
            word, *namespace = argument.split()
            self.settle(word == "keep", int(namespace[0]) if namespace else 0)
        elif command in ("split", "copy"):
            fds = supervisor.take_fds(5)
            snapshot = None
            if self.has(argument):
                snapshot = self.wake(argument, b"split", fds) if command == "split" else self.copy(argument, fds)
            if snapshot is not None:
                self.leave_alone(snapshot)
            for fd in fds:
                os.close(fd)  # if that failed, the host sees that its connections close

    def copy(self, state: str, fds: list[int]) -> Snapshot | None:
        """Have a snapshot fork another one, which becomes a separate runtime; None if that is not possible."""
        snapshot = self.kept[state]
        ours, theirs = _socket.socketpair()
        copy = Snapshot(ours.detach())
        is_woken = snapshot.wake(b"copy", [theirs.fileno(), *fds])
        snapshot.is_ranked = False
        theirs.close()
        if is_woken and copy.wait():  # no command may come before its pid is known: it is not ours to end
            return copy
        copy.socket.close()
        return None

    def promote(self, state: str, fds: list[int]) -> None:
        """Replace the worker by a snapshot: for good, or in a dry run."""
        supervisor, pid = self.supervisor, None
        if self.has(state):
            supervisor.end_worker()
            snapshot = self.wake(state, b"go on", fds)
            if snapshot is not None:
                alive = len(fds) <= 4 or snapshot.wait()  # in a dry run it becomes our child, and has a new pid
                snapshot.socket.close()
                pid = snapshot.pid if alive else None
        for fd in fds:
            os.close(fd)
        if pid is None:
            supervisor.say("missing %s" % state)
            return
        supervisor.pid = pid
        supervisor.lead(pid)
        supervisor.say("spawned %d" % pid)
        for other in supervisor.descendants():
            try:
                name = content("/proc/%d/comm" % other).decode("utf-8", "replace").strip()
            except OSError:
                name = "process"
            if name != SAVING:  # ours, and it ends without our help
                supervisor.say("left %d %s" % (other, name))
        supervisor.say("promoted %s" % state)

    def settle(self, keep: bool, namespace: int) -> None:
        """End a dry run. With `keep`, its copy replaces the worker; otherwise end all in the copy's mount namespace."""
        supervisor = self.supervisor
        if keep:
            supervisor.suspended, supervisor.pid = supervisor.pid, supervisor.suspended
        supervisor.end_worker()
        while namespace and (there := [pid for pid in supervisor.descendants() if mount_namespace(pid) == namespace]):
            for pid in there:
                supervisor.send_signal(pid, signal.SIGKILL)
            supervisor.reap()
        worker, supervisor.suspended = supervisor.suspended, None
        supervisor.pid = worker
        if worker:
            supervisor.lead(worker)
        elif supervisor.late:
            supervisor.say(supervisor.late)
        supervisor.say("settled")


def mount_namespace(pid: int) -> int | None:
    try:
        return os.stat("/proc/%d/ns/mnt" % pid).st_ino
    except OSError:
        return None


# -- memory ------------------------------------------------------------------------------------------------------------


def prefer_to_kill(pid: int | None, score: bytes) -> None:
    """Tell the kernel how soon to kill a process when memory runs out."""
    try:
        with open("/proc/%d/oom_score_adj" % (pid or 0), "wb") as file:
            file.write(score)
    except OSError:
        pass  # gone, or not Linux


def memory_is_short(groups: list[tuple[str, str, str, bytes]], parts: int = SPARE) -> bool:
    """Check whether less than one part in `parts` is left of the machine's memory, or of a control group's."""
    try:
        total, _, available = [int(line.split()[1]) for line in content("/proc/meminfo").splitlines()[:3]]
    except (OSError, ValueError):
        total = available = 0
    return available * parts < total or any(is_short_in(each, total, parts) for each in groups)


def is_short_in(files: tuple[str, str, str, bytes], machine: int, parts: int) -> bool:
    """Check a control group with a limit; cached files do not count, since they are dropped when memory is needed."""
    folder, most, used, cached = files
    try:
        total = int(content(folder + most))
        left = total - int(content(folder + used))
        if (machine and total > machine * 1024) or left * parts >= total:
            return False
        stat = dict(line.split() for line in content(folder + "memory.stat").splitlines())
        return (left + int(stat.get(cached, b"0"))) * parts < total
    except (OSError, ValueError):
        return False  # there is no limit


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def memory_groups() -> list[tuple[str, str, str, bytes]]:
    """List the control groups that limit the memory of this process, and those above them; version 1 and 2."""
    try:
        rows = content("/proc/self/cgroup").decode().splitlines()
    except OSError:
        return []
    groups = []
    for row in rows:
        _, kinds, path = row.split(":", 2)
        new = not kinds
        if new or "memory" in kinds.split(","):
            root = GROUPS + ("" if new else "/memory")
            names = NEW_GROUP if new else OLD_GROUP
            while path.strip("/"):
                groups.append((root + path + "/", *names))
                path = path.rpartition("/")[0]
            groups.append((root + "/", *names))  # a container sees its own group there
    return [each for each in groups if os.path.exists(each[0] + each[1])]


LIMITING = memory_groups()
try:
    SCORE = content("/proc/self/oom_score_adj")  # ours
except OSError:
    SCORE = b"0"
