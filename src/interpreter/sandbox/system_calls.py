"""Linux: the seccomp filter of a sandbox, and the numbers of system calls."""

from __future__ import annotations

import errno
import platform
import struct

from interpreter.errors import SandboxUnavailableError

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, AT_LEAST, HAS_BITS, RETURN, AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
X32 = 0x40000000  # numbers from here on are aliases of the same system calls
# A Unix socket reaches any program on the host whose socket file is visible, even on a read-only mount, and the filter
# cannot see which one. So only socket pairs are allowed, but none of datagrams, which can be sent to any address.
UNIX, FAMILIES = 1, (2, 10, 16)  # IPv4, IPv6, netlink
STREAMS, KIND_OF_SOCKET = (1, 5), 0xF  # stream and seqpacket; the other bits of the argument are flags
INTO_TERMINALS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
FIRST = 1  # the number of the first process
OWNERS_RIGHTS = 0o6000  # set-user-ID and set-group-ID
CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE


# System call numbers on x86_64 and on aarch64; None where a call does not exist.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # the kernel's constants, in that order
SOCKET, SOCKETPAIR, IOCTL = (41, 198), (53, 199), (16, 29)
REFUSED = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_by_handle_at": (304, 265),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "chroot": (161, 51),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "pidfd_getfd": (438, 438),
    "open_tree_attr": (467, 467),
}
# Pretend that the kernel is older: the filter can't see the arguments of io_uring and openat2. Same on every machine.
MISSING = (425, 426, 427, 437)
# Calls with a mode: their numbers, the index of the mode, and the index of the flags that make it count.
MODES: dict[str, tuple[tuple[int | None, int | None], int, int | None]] = {
    "chmod": ((90, None), 1, None),
    "fchmod": ((91, 52), 1, None),
    "mknod": ((133, None), 1, None),
    "creat": ((85, None), 1, None),
    "fchmodat": ((268, 53), 2, None),
    "fchmodat2": ((452, 452), 2, None),
    "mknodat": ((259, 33), 2, None),
    "open": ((2, None), 2, 1),
    "openat": ((257, 56), 3, 2),
}
# Calls that act on another process: their numbers, and the index of the argument that names it.
REACHING = {
    "ptrace": ((101, 117), 1),
    "process_vm_readv": ((310, 270), 0),
    "process_vm_writev": ((311, 271), 0),
    "prlimit64": ((302, 261), 0),
}

NUMBER, MACHINE, ARGUMENTS = 0, 4, 16  # offsets in the data that the filter sees


def seccomp_filter(unix_sockets: bool = False) -> bytes | None:
    """Build the filter for this machine. None if there is no filter for it and Unix sockets are allowed anyway."""
    if platform.machine() not in MACHINES:
        if not unix_sockets:
            raise SandboxUnavailableError(
                f"The sandbox can't block Unix sockets on this processor ({platform.machine()}), so code could reach "
                f"other programs on this machine. To accept that, set sandbox_unix_sockets: true."
            )
        return None
    column = list(MACHINES).index(platform.machine())
    lines = [
        instruction(LOAD, MACHINE),
        instruction(EQUAL, MACHINES[platform.machine()], 1, 0),
        instruction(RETURN, ERRNO | errno.ENOSYS),
        instruction(LOAD, NUMBER),
    ]
    lines += [instruction(AT_LEAST, X32, 0, 1), instruction(RETURN, ERRNO | errno.ENOSYS)]
    for number in MISSING:
        lines += [instruction(EQUAL, number, 0, 1), instruction(RETURN, ERRNO | errno.ENOSYS)]
    for numbers in REFUSED.values():
        lines += [instruction(EQUAL, numbers[column], 0, 1), instruction(RETURN, ERRNO | errno.EPERM)]
    lines += only(SOCKET[column], ARGUMENTS, (UNIX, *FAMILIES) if unix_sockets else FAMILIES)
    if not unix_sockets:
        lines += only(SOCKETPAIR[column], ARGUMENTS + 8, STREAMS, KIND_OF_SOCKET)
    for found, mode, flags in MODES.values():
        if (call := found[column]) is not None:
            lines += without_rights(call, mode, flags)
    for numbers, process in REACHING.values():
        lines += none_of(numbers[column], ARGUMENTS + 8 * process, (FIRST,))
    lines += none_of(IOCTL[column], ARGUMENTS + 8, INTO_TERMINALS)
    return b"".join([*lines, instruction(RETURN, ALLOW)])


def only(number: int, argument: int, values: tuple[int, ...], mask: int = 0xFFFFFFFF) -> list[bytes]:
    """Allow the call only if an argument, under the mask, has one of these values."""
    tests = [instruction(EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    inside = [instruction(LOAD, argument), instruction(AND, mask), *tests]
    inside += [instruction(RETURN, ERRNO | errno.EAFNOSUPPORT), instruction(LOAD, NUMBER)]
    return [instruction(EQUAL, number, 0, len(inside)), *inside]


def none_of(number: int, argument: int, values: tuple[int, ...]) -> list[bytes]:
    """Allow the call unless an argument has one of these values."""
    tests = [
        line for value in values for line in (instruction(EQUAL, value, 0, 1), instruction(RETURN, ERRNO | errno.EPERM))
    ]
    inside = [instruction(LOAD, argument), *tests, instruction(LOAD, NUMBER)]
    return [instruction(EQUAL, number, 0, len(inside)), *inside]


def without_rights(number: int, mode: int, flags: int | None) -> list[bytes]:
    """Allow the call unless its mode has one of the set-ID bits and its flags make the mode count."""
    inside = [
        instruction(LOAD, ARGUMENTS + 8 * mode),
        instruction(HAS_BITS, OWNERS_RIGHTS, 0, 1),
        instruction(RETURN, ERRNO | errno.EPERM),
    ]
    if flags is not None:
        inside = [instruction(LOAD, ARGUMENTS + 8 * flags), instruction(HAS_BITS, CREATES, 0, len(inside)), *inside]
    inside.append(instruction(LOAD, NUMBER))
    return [instruction(EQUAL, number, 0, len(inside)), *inside]


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Encode one instruction of the filter; a test skips `if_true` or `if_false` instructions."""
    return struct.pack("HBBI", code, if_true, if_false, value)
