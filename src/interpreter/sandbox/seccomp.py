"""System calls that nothing in a sandbox needs and that namespaces do not cover, refused by a filter in the kernel.

What it adds to the namespaces: sockets of families that know none (AF_VSOCK reaches the hypervisor), the session's
keyring, io_uring, BPF, performance counters, pushing characters into a terminal, and leaving behind a program that
runs with the rights of its owner, which would be root's if root runs the sandbox; and everything that would get hold
of the first process, which is our supervisor.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
X32 = 0x40000000  # calls of this number and above are another way to the same ones
FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink
INTO_TERMINALS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
FIRST = 1  # the number of the first process
OWNERS_RIGHTS = 0o6000  # set-user-ID and set-group-ID
CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE


@dataclass(frozen=True)
class Machine:
    """The numbers of the calls of one kind of processor."""

    name: int  # the kernel's own for it
    socket: int
    ioctl: int
    refused: tuple[int, ...]
    missing: tuple[int, ...]  # as if the kernel were older: io_uring, and openat2, whose arguments cannot be seen
    modes: dict[int, tuple[int, int | None]]  # calls with a mode: its argument, and that of flags that make it count
    reaching: dict[int, int]  # calls that change another process, and the argument that says which


# Refused are, in this order: keyrings, bpf, perf, userfaultfd, modules, kexec, mounts, namespaces, file handles, swap,
# reboot, chroot, accounting, quotas, taking another's descriptors. Reaching are ptrace, process_vm_readv,
# process_vm_writev and prlimit64.
MACHINES = {
    "x86_64": Machine(
        name=0xC000003E,
        socket=41,
        ioctl=16,
        refused=(
            *(248, 249, 250, 321, 298, 323, 175, 176, 313, 246, 320, 165, 166, 155, 428, 429, 430, 431, 432, 433, 442),
            *(308, 272, 304, 167, 168, 169, 161, 163, 179, 438),
        ),
        missing=(425, 426, 427, 437),
        modes={
            **dict.fromkeys((90, 91, 133, 85), (1, None)),  # chmod, fchmod, mknod, creat
            **dict.fromkeys((268, 452, 259), (2, None)),  # fchmodat, fchmodat2, mknodat
            2: (2, 1),
            257: (3, 2),  # open, openat
        },
        reaching={101: 1, 310: 0, 311: 0, 302: 0},
    ),
    "aarch64": Machine(
        name=0xC00000B7,
        socket=198,
        ioctl=29,
        refused=(
            *(217, 218, 219, 280, 241, 282, 105, 106, 273, 104, 294, 40, 39, 41, 428, 429, 430, 431, 432, 433, 442),
            *(268, 97, 265, 224, 225, 142, 51, 89, 60, 438),
        ),
        missing=(425, 426, 427, 437),
        modes={52: (1, None), **dict.fromkeys((53, 452, 33), (2, None)), 56: (3, 2)},
        reaching={117: 1, 270: 0, 271: 0, 261: 0},
    ),
}

NUMBER, MACHINE, ARGUMENTS = 0, 4, 16  # where the filter finds them


def program() -> bytes | None:
    """The filter for this machine, for the kernel to run at each call; None where we have none."""
    known = MACHINES.get(platform.machine())
    if known is None:
        return None
    lines = [load(MACHINE), jump(EQUAL, known.name, 1, 0), give(ERRNO | errno.ENOSYS), load(NUMBER)]
    lines += [jump(AT_LEAST, X32, 0, 1), give(ERRNO | errno.ENOSYS)]
    for number in known.missing:
        lines += [jump(EQUAL, number, 0, 1), give(ERRNO | errno.ENOSYS)]
    for number in known.refused:
        lines += [jump(EQUAL, number, 0, 1), give(ERRNO | errno.EPERM)]
    lines += only(known.socket, ARGUMENTS, FAMILIES)
    for number, (mode, flags) in known.modes.items():
        lines += without_rights(number, mode, flags)
    for number, process in known.reaching.items():
        lines += none_of(number, ARGUMENTS + 8 * process, (FIRST,))
    lines += none_of(known.ioctl, ARGUMENTS + 8, INTO_TERMINALS)
    return b"".join([*lines, give(ALLOW)])


def only(number: int, argument: int, values: tuple[int, ...]) -> list[bytes]:
    """The call goes on with these values of an argument alone."""
    tests = [jump(EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    inside = [load(argument), *tests, give(ERRNO | errno.EAFNOSUPPORT), load(NUMBER)]
    return [jump(EQUAL, number, 0, len(inside)), *inside]


def none_of(number: int, argument: int, values: tuple[int, ...]) -> list[bytes]:
    """The call goes on unless an argument has one of these values."""
    tests = [line for value in values for line in (jump(EQUAL, value, 0, 1), give(ERRNO | errno.EPERM))]
    inside = [load(argument), *tests, load(NUMBER)]
    return [jump(EQUAL, number, 0, len(inside)), *inside]


def without_rights(number: int, mode: int, flags: int | None) -> list[bytes]:
    """The call goes on unless its mode has one of these bits, and the flags say that the mode counts."""
    inside = [load(ARGUMENTS + 8 * mode), jump(HAS_BITS, OWNERS_RIGHTS, 0, 1), give(ERRNO | errno.EPERM)]
    if flags is not None:
        inside = [load(ARGUMENTS + 8 * flags), jump(HAS_BITS, CREATES, 0, len(inside)), *inside]
    inside.append(load(NUMBER))
    return [jump(EQUAL, number, 0, len(inside)), *inside]


def load(offset: int) -> bytes:
    return struct.pack("HBBI", LOAD, 0, 0, offset)


def give(verdict: int) -> bytes:
    return struct.pack("HBBI", RETURN, 0, 0, verdict)


def jump(test: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("HBBI", test, if_true, if_false, value)
