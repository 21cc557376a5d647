"""Asked by the kernel whether a process may do what reaches beyond its view: not while it is on trial, then always."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import struct
import threading
from collections import Counter
from typing import NamedTuple

from interpreter.runtimes.trials import calls

RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
QUESTION = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")
GO_ON = 1
KIND_OF_SOCKET = 0xF
# Asked by the C library on its own account, and done without at once.
UNASKED = ("/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/userdb")
ADDRESS = 110  # bytes of the longest local one


class Denied(NamedTuple):
    """Something that a block wanted to do while it was tried out, and could not."""

    what: str  # "network", "signal", "write", "system"
    by: str  # the program
    target: str = ""

    def __str__(self) -> str:
        words = {"network": "the network", "signal": "a signal to", "write": "writing", "system": "the system call"}
        target = f" {self.target}" if self.target else ""
        return f"{self.by}: {words[self.what]}{target}"


class Gate:
    """The doors of one session: each copy of its worker may bring one, and all do as this says."""

    def __init__(self) -> None:
        self._closed: set[int] = set()  # mount namespaces in which somebody is on trial
        self._denied: Counter[Denied] = Counter()
        self._names = calls.known()

    def close(self, place: int) -> None:
        """From now on who is in this place may not reach beyond it."""
        self._denied.clear()
        self._closed.add(place)

    def open(self, place: int) -> list[Denied]:
        """From now on they may; what they were denied."""
        self._closed.discard(place)
        return self.denied

    @property
    def denied(self) -> list[Denied]:
        return list(dict(self._denied))

    def attend(self, listener: int) -> None:
        """Answer at this descriptor until nobody is left who could ask."""
        os.set_inheritable(listener, False)
        threading.Thread(target=self._serve, args=(listener,), name="preview gate", daemon=True).start()

    def _serve(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        try:
            while not any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
                self._answer(listener)
        finally:
            os.close(listener)

    def _answer(self, listener: int) -> None:
        question = bytearray(QUESTION.size)
        try:
            fcntl.ioctl(listener, RECEIVE, question)
        except OSError:
            return  # who asked has gone
        number, pid, _, call, machine, _, *arguments = QUESTION.unpack(question)
        refusal = self._refusal(pid, call, machine, arguments)
        reply = ANSWER.pack(number, 0, -refusal, 0) if refusal else ANSWER.pack(number, 0, 0, GO_ON)
        try:
            fcntl.ioctl(listener, SEND, bytearray(reply))
        except OSError:
            pass  # who asked has gone

    # -- what may be ---------------------------------------------------------------------------------------------

    def _refusal(self, pid: int, call: int, machine: int, arguments: list[int]) -> int:
        """The error number to answer with; 0 lets it pass."""
        if not self._closed or mounts_of(pid) not in self._closed:
            return 0
        name = self._names.get(call) if machine == calls.MACHINES[os.uname().machine][1] else None
        if name is None:
            return self._deny(errno.ENOSYS, "system", pid, "of another kind of machine")
        if name == "socket":
            return self._socket(pid, arguments)
        if name == "connect":
            return self._connect(pid, arguments)
        if name in calls.SIGNALS:
            return self._signal(pid, name, arguments)
        return self._deny(errno.ENOSYS if name == "io_uring_setup" else errno.EPERM, "system", pid, name)

    def _socket(self, pid: int, arguments: list[int]) -> int:
        family, kind = arguments[0], arguments[1] & KIND_OF_SOCKET
        if family == socket.AF_UNIX and kind != socket.SOCK_DGRAM:
            return 0  # it can reach nobody without connect
        if family in (socket.AF_INET, socket.AF_INET6):
            return self._deny(errno.EACCES, "network", pid)
        return errno.EACCES  # the system log, and questions about interfaces

    def _connect(self, pid: int, arguments: list[int]) -> int:
        """To local programs; it is denied whatever the address, which is read for the report alone."""
        address = memory_of(pid, arguments[1], min(arguments[2], ADDRESS))[2:].split(b"\0")
        name = os.fsdecode(address[0] or (b"@" + address[1] if len(address) > 1 else b""))
        if name.startswith(UNASKED):
            return errno.EACCES
        return self._deny(errno.EACCES, "network", pid, name)

    def _signal(self, pid: int, name: str, arguments: list[int]) -> int:
        target = signed(arguments[0])
        if name == "pidfd_send_signal":
            return self._deny(errno.EPERM, "signal", pid, "a process")
        silent = arguments[2 if name in ("tgkill", "rt_tgsigqueueinfo") else 1] == 0
        if target == 0 or silent or mounts_of(abs(target)) in (mounts_of(pid), None):
            return 0 if target != -1 else self._deny(errno.EPERM, "signal", pid, "everybody")
        return self._deny(errno.EPERM, "signal", pid, f"{program_of(abs(target))} ({abs(target)})")

    def _deny(self, error: int, what: str, pid: int, target: str = "") -> int:
        self._denied[Denied(what, program_of(pid), target)] += 1
        return error


def signed(argument: int) -> int:
    """A process number as the kernel takes it from a register."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low


def mounts_of(pid: int) -> int | None:
    """The number of the mount namespace that a process is in; None for one that has ended, 0 for one we may not ask."""
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except PermissionError:
        return 0
    except OSError:
        return None


def program_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "a program"


def memory_of(pid: int, address: int, length: int) -> bytes:
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), length, address)
    except (OSError, OverflowError):
        return b""
