"""Seccomp notifications for a dry run: the kernel asks us about system calls that reach beyond the overlay.

They are refused during the process's dry run, and allowed afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import select
import socket
import struct
import threading
from typing import NamedTuple

from interpreter.sandbox.system_calls import (
    ALLOW,
    AT_LEAST,
    EQUAL,
    KIND_OF_SOCKET,
    LOAD,
    MACHINE,
    MACHINES,
    NUMBER,
    REACHING,
    REFUSED,
    RETURN,
    SOCKET,
    X32,
    instruction,
)

RECEIVE, SEND = 0xC0502100, 0xC0182101
QUESTION = struct.Struct("=QIIiIQ6Q")
ANSWER = struct.Struct("=QqiI")
CONTINUE = 1
# The C library tries these on its own, and works without them.
UNREPORTED = ("/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/userdb")
ADDRESS = 110  # bytes of the longest local address

# Name: number on x86_64, on aarch64.
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
NOT_ASKED = ("request_key", "perf_event_open", "userfaultfd", "open_by_handle_at", "chroot", "open_tree_attr")
CALLS = {
    **SIGNALS,
    **{name: numbers for name, numbers in REFUSED.items() if name not in NOT_ASKED},
    # Network.
    "socket": SOCKET,
    "connect": (42, 203),
    "io_uring_setup": (425, 425),
    # Other processes.
    "ptrace": REACHING["ptrace"][0],
    "process_vm_writev": REACHING["process_vm_writev"][0],
    # The machine itself.
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
}
ASK = 0x7FC00000


def asked_calls() -> dict[int, str]:
    """Map the numbers of the calls above on this machine to their names; empty if the numbers are unknown."""
    if platform.machine() not in MACHINES:
        return {}
    column = list(MACHINES).index(platform.machine())
    return {numbers[column]: name for name, numbers in CALLS.items()}


def filter_program() -> bytes:
    """Build the filter: ask about the calls above and those of other machines (32-bit programs), allow the rest."""
    numbers = sorted(asked_calls())
    ask = len(numbers) + 1  # jumps to the last but one instruction
    lines = [
        instruction(LOAD, MACHINE),
        instruction(EQUAL, MACHINES[platform.machine()], 1, 0),
        instruction(RETURN, ASK),
        instruction(LOAD, NUMBER),
        instruction(AT_LEAST, X32, ask, 0),
    ]
    lines += [instruction(EQUAL, number, ask - 1 - position, 0) for position, number in enumerate(numbers)]
    return b"".join([*lines, instruction(RETURN, ALLOW), instruction(RETURN, ASK)])


class Denied(NamedTuple):
    what: str  # "network", "signal", "write", "system"
    by: str  # the program
    target: str = ""

    def __str__(self) -> str:
        phrases = {"network": "the network", "signal": "a signal to", "write": "writing", "system": "the system call"}
        target = f" {self.target}" if self.target else ""
        return f"{self.by}: {phrases[self.what]}{target}"


class SyscallGate:
    """Answers the notifications of one runtime; each copy of its worker may bring a listener."""

    def __init__(self) -> None:
        self._closed: set[int] = set()  # the mount namespaces of dry runs
        self._denied: dict[Denied, None] = {}
        self._names = asked_calls()

    def close(self, namespace: int) -> None:
        self._denied.clear()
        self._closed.add(namespace)

    def open(self, namespace: int) -> None:
        self._closed.discard(namespace)

    @property
    def denied(self) -> list[Denied]:
        return list(dict(self._denied))

    def attend(self, listener: int) -> None:
        """Answer at this descriptor until no process is left that could ask."""
        os.set_inheritable(listener, False)
        threading.Thread(target=self._serve, args=(listener,), name="preview gate", daemon=True).start()

    def _serve(self, listener: int) -> None:
        import fcntl

        poll = select.poll()
        poll.register(listener, select.POLLIN)
        try:
            while not any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
                question = bytearray(QUESTION.size)
                with contextlib.suppress(OSError):  # the process has ended
                    fcntl.ioctl(listener, RECEIVE, question)
                    number, pid, _, call, machine, _, *arguments = QUESTION.unpack(question)
                    refusal = self._refusal(pid, call, machine, arguments)
                    reply = ANSWER.pack(number, 0, -refusal, 0) if refusal else ANSWER.pack(number, 0, 0, CONTINUE)
                    fcntl.ioctl(listener, SEND, bytearray(reply))
        finally:
            os.close(listener)

    def _refusal(self, pid: int, call: int, machine: int, arguments: list[int]) -> int:
        """Return the error number to answer with; 0 allows the call."""
        if not self._closed or mount_namespace(pid) not in self._closed:
            return 0
        name = self._names.get(call) if machine == MACHINES[platform.machine()] else None
        if name is None:
            return self._deny(errno.ENOSYS, "system", pid, "of another kind of machine")
        if name == "socket":
            family, kind = arguments[0], arguments[1] & KIND_OF_SOCKET
            if family == socket.AF_UNIX and kind != socket.SOCK_DGRAM:
                return 0  # without connect, it can reach nothing
            if family in (socket.AF_INET, socket.AF_INET6):
                return self._deny(errno.EACCES, "network", pid)
            return errno.EACCES  # unreported: the system log, and queries about interfaces
        if name == "connect":
            # To a local program: denied for every address, which is only read for the report.
            address = [b""]
            with contextlib.suppress(OSError, OverflowError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                length = min(arguments[2], ADDRESS)
                address = os.pread(memory.fileno(), length, arguments[1])[2:].split(b"\0")
            path = os.fsdecode(address[0] or (b"@" + address[1] if len(address) > 1 else b""))
            return errno.EACCES if path.startswith(UNREPORTED) else self._deny(errno.EACCES, "network", pid, path)
        if name not in SIGNALS:
            return self._deny(errno.ENOSYS if name == "io_uring_setup" else errno.EPERM, "system", pid, name)
        if name == "pidfd_send_signal":
            return self._deny(errno.EPERM, "signal", pid, "a process")
        target = arguments[0] & 0xFFFFFFFF  # the kernel reads a process number as 32 bits
        target = target - (1 << 32) if target & 0x80000000 else target
        silent = arguments[2 if name in ("tgkill", "rt_tgsigqueueinfo") else 1] == 0
        if target == 0 or silent or mount_namespace(abs(target)) in (mount_namespace(pid), None):
            return 0 if target != -1 else self._deny(errno.EPERM, "signal", pid, "everybody")
        return self._deny(errno.EPERM, "signal", pid, f"{program_of(abs(target))} ({abs(target)})")

    def _deny(self, error: int, what: str, pid: int, target: str = "") -> int:
        self._denied[Denied(what, program_of(pid), target)] = None
        return error


def mount_namespace(pid: int) -> int | None:
    """Return the mount namespace that a process is in; None if it has ended, 0 if we may not know."""
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


def others_in(namespace: int, known: int | None) -> list[str]:
    """List the processes that a block started in this mount namespace and that still run."""
    numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [f"{program_of(pid)} ({pid})" for pid in numbers if pid != known and mount_namespace(pid) == namespace]
