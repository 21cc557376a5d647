"""A supervisor's snapshots: which there are, which go when memory is short, and how one is woken.

The supervisor runs this file when the first one is taken; like that one it needs nothing but Python 3.8.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import _socket
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

PRESSURE = b"some 200000 2000000\0"  # programs waited for memory for 0.2 s within 2 s
WAITING = 30_000  # milliseconds for a process that has been forked to say so
SPARE = 10  # of so many parts of the memory, one should be left
ENOUGH = 4  # while there is one of so many parts, those who wait for memory are in a group that has little of it
GROUPS = "/sys/fs/cgroup"
OLD_GROUP = ("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file")
NEW_GROUP = ("memory.max", "memory.current", b"inactive_file")


class Snapshot:
    """A copy of the worker that waits."""

    def __init__(self, fd: int) -> None:
        self.socket = _socket.socket(fileno=fd)
        self.pid: int | None = None  # known as soon as it waits
        self.is_ranked = False  # the kernel knows when to kill it

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

    def wait(self) -> bool:
        """The same of one that is about to speak: its worker may have died before that, and a child hold its line."""
        poll = select.poll()
        poll.register(self.socket.fileno(), select.POLLIN)
        return bool(poll.poll(WAITING)) and self.listen()

    def wake(self, word: bytes, fds: list[int]) -> bool:
        """Let it go on with these descriptors."""
        if not self.pid and not (self.wait() and self.pid):
            return False
        prefer_to_kill(self.pid, SCORE)
        rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
        try:
            self.socket.sendmsg([word], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        except OSError:
            return False  # somebody killed it
        return True

    def end(self) -> None:
        try:
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended just now
        self.socket.close()  # at which it ends by itself


class Snapshots:
    """The states that the session can go back to, the oldest first."""

    def __init__(self, poll: select.poll, say: Callable[[str], None], origin: int | None) -> None:
        self.poll, self.say = poll, say
        self.origin = _socket.socket(fileno=origin) if origin is not None else None
        self.kept: dict[str, Snapshot] = {}
        self.apart: list[Snapshot] = []  # sessions of their own, known by their line for as long as they live
        self.ending: list[int] = []  # killed, and maybe not gone yet
        self.groups = memory_groups()
        self.score = 1000  # of the next one that is not the newest any more
        self.pressure: int | None = None  # tells when memory is short; -1 where nothing does

    def expect(self, fd: int, state: str, most: str) -> None:
        """A snapshot is about to be there, in the place of one of the same state."""
        self.end(state, told=False)
        self.kept[state] = Snapshot(fd)
        self.poll.register(fd, select.POLLIN)
        self.watch_pressure()
        while len(self.kept) > max(1, int(most)):
            self.end(next(iter(self.kept)))
        self.rank()
        if memory_is_short(self.groups):
            self.end_oldest()

    def rank(self) -> None:
        """Tell the kernel whom to kill when memory runs out: the older the sooner, the newest not before the worker."""
        *older, _ = self.kept.values()
        step = max(1, 450 // max(20, len(older)))
        unranked = [snapshot for snapshot in older if not snapshot.is_ranked]
        if self.score - step * len(unranked) < 100:  # there is no number left below the others'
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
        if self.pressure is not None and self.pressure in ready and memory_is_short(self.groups, ENOUGH):
            self.end_oldest()

    def has(self, state: str) -> bool:
        snapshot = self.kept.get(state)
        if snapshot is not None and not snapshot.listen(_socket.MSG_DONTWAIT):
            self.end(state)
        return state in self.kept

    def wake(self, state: str, fds: list[int]) -> int | None:
        """Have a snapshot become the worker; its number, or None if there is none."""
        snapshot = self.take_out(state)
        if snapshot is not None and snapshot.wake(b"go on", fds):
            alive = len(fds) <= 4 or snapshot.wait()  # on trial, it is the supervisor's child and has a new number
            snapshot.socket.close()
            return snapshot.pid if alive else None
        if snapshot is not None:
            snapshot.end()
        return None

    def split(self, state: str, fds: list[int]) -> bool:
        """Have a snapshot become a session of its own, which is none of ours from then on."""
        snapshot = self.take_out(state)
        if snapshot is not None and snapshot.wake(b"split", fds):
            self.leave_alone(snapshot)
            return True
        if snapshot is not None:
            snapshot.end()
        return False

    def leave_alone(self, session: Snapshot) -> None:
        """A session has split off: it lives for as long as its line does, and so do those that split off from it."""
        self.apart.append(session)
        self.poll.register(session.socket.fileno(), select.POLLIN)
        if self.origin is not None:  # when we are gone, it is below the one that we split off from
            rights = session.socket.fileno().to_bytes(4, sys.byteorder)
            try:
                self.origin.sendmsg([b"%d" % (session.pid or 0)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
            except OSError:
                pass  # that is gone

    def hear(self, session: Snapshot) -> bool:
        """One that split off has ended, or another one from it has; False if there is nothing to hear."""
        try:
            said, ancillary, _, _ = session.socket.recvmsg(16, _socket.CMSG_SPACE(4), _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            said = b""
        if said:
            other = Snapshot(int.from_bytes(ancillary[0][2][:4], sys.byteorder))
            other.pid = int(said)
            self.leave_alone(other)
            return True
        self.poll.unregister(session.socket.fileno())
        session.socket.close()  # no SIGKILL: its number may be another's by now
        self.apart.remove(session)
        return False

    def apart_now(self) -> list[int]:
        """The sessions that split off, as of this moment."""
        for session in list(self.apart):
            while self.hear(session):
                pass
        return [session.pid for session in self.apart if session.pid]

    def take_out(self, state: str) -> Snapshot | None:
        snapshot = self.kept.pop(state, None)
        if snapshot is not None:
            self.poll.unregister(snapshot.socket.fileno())
        return snapshot

    def end_oldest(self) -> None:
        """Memory is short: half of them go."""
        for state in list(self.kept)[: len(self.kept) // 2]:
            self.end(state)

    def end(self, state: str, told: bool = True) -> None:
        snapshot = self.take_out(state)
        if snapshot is not None:
            snapshot.end()
            self.ending = [pid for pid in self.ending if is_there(pid)] + [snapshot.pid or 0]
            if told:
                self.say("gone %s" % state)

    def pids(self) -> list[int]:
        """The processes that are snapshots, or were until just now."""
        for snapshot in self.kept.values():
            snapshot.listen(_socket.MSG_DONTWAIT)  # its first word came before the block began
        return self.ending + [snapshot.pid for snapshot in self.kept.values() if snapshot.pid]

    def close(self) -> None:
        """In a worker: these are not its own."""
        for snapshot in [*self.kept.values(), *self.apart]:
            snapshot.socket.close()
        if self.origin is not None:
            self.origin.detach()
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


def is_there(pid: int) -> bool:
    return os.path.exists("/proc/%d" % pid)


def prefer_to_kill(pid: int | None, score: bytes) -> None:
    """Tell the kernel which of us to kill when there is no memory left."""
    try:
        with open("/proc/%d/oom_score_adj" % (pid or 0), "wb") as file:
            file.write(score)
    except OSError:
        pass  # gone, or not Linux


def memory_is_short(groups: list[tuple[str, str, str, bytes]], parts: int = SPARE) -> bool:
    """Whether less than such a part is to be had of the machine's memory, or of what a group of processes may use."""
    total, available = machine()
    return available * parts < total or any(is_short_in(each, total, parts) for each in groups)


def machine() -> tuple[int, int]:
    try:
        with open("/proc/meminfo", "rb") as file:
            total, _, available = [int(line.split()[1]) for line in file.read(256).splitlines()[:3]]
    except (OSError, ValueError):
        return 0, 0
    return total, available


def is_short_in(files: tuple[str, str, str, bytes], machine: int, parts: int) -> bool:
    """The same of what a control group may use, if that is not all; files in memory go when it is needed."""
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
    """The control groups that limit the memory of this process: those above it too, old style and new."""
    try:
        rows = content("/proc/self/cgroup").decode().splitlines()
    except OSError:
        return []
    found = []
    for row in rows:
        _, kinds, path = row.split(":", 2)
        new = not kinds
        if new or "memory" in kinds.split(","):
            root = GROUPS + ("" if new else "/memory")
            names = NEW_GROUP if new else OLD_GROUP
            while path.strip("/"):
                found.append((root + path + "/", *names))
                path = path.rpartition("/")[0]
            found.append((root + "/", *names))  # a container sees its own there
    return [each for each in found if os.path.exists(each[0] + each[1])]


def own_score() -> bytes:
    try:
        with open("/proc/self/oom_score_adj", "rb") as file:
            return file.read()
    except OSError:
        return b"0"


SCORE = own_score()
