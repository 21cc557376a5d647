"""The kernel's calls for a view of the file system that only this process and its children have (Linux)."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
SLAVE, BIND, RECURSIVE = 1 << 19, 1 << 12, 1 << 14
DETACH = 2
HERE, ALL_BELOW = -100, 0x8000
MOUNT_SETATTR = 442  # the same on every machine
READ_ONLY = 1
CAP_SYS_ADMIN = 21
CAPABILITY_VERSION = 0x20080522
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, NEW_LISTENER = 1, 1 << 3

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def mount(source: str, target: str, kind: Optional[str], flags: int, options: Optional[str] = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), "mount " + target)


def unmount(target: str) -> None:
    checked(libc.umount2(os.fsencode(target), DETACH), "unmount " + target)


def set_writable(target: str, writable: bool, below: bool = False) -> None:
    """Close a mount to writing, or open it again."""
    attributes = Attributes(0 if writable else READ_ONLY, READ_ONLY if writable else 0, 0, 0)
    flags, size = ALL_BELOW if below else 0, ctypes.c_size_t(ctypes.sizeof(attributes))
    path = os.fsencode(target)
    checked(libc.syscall(MOUNT_SETATTR, HERE, path, flags, ctypes.byref(attributes), size), "remount " + target)


def own_mounts() -> bool:
    """Have mounts of our own from here on; True if that took a user namespace, which lasts."""
    permitted = capabilities()[1]
    user = not permitted >> CAP_SYS_ADMIN & 1
    uid, gid = os.geteuid(), os.getegid()
    if not user:
        raise_capabilities()
    checked(libc.unshare(NEW_MOUNTS | (NEW_USER if user else 0)), "namespaces")
    if user:
        for name, words in (
            ("setgroups", "deny"),
            ("uid_map", "%d %d 1" % (uid, uid)),
            ("gid_map", "%d %d 1" % (gid, gid)),
        ):
            with open("/proc/self/" + name, "w") as file:
                file.write(words)
    mount("none", "/", None, SLAVE | RECURSIVE)  # what we do is not seen outside; a new disk is seen here
    return user


def install_filter(code: bytes, machine: str) -> Optional[int]:
    """Have these system calls asked about at the descriptor that is given; None if an earlier filter does that."""
    buffer = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    result = libc.syscall(SECCOMP[machine], SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if result < 0 and ctypes.get_errno() == 16:
        return None
    return checked(result, "seccomp")


# -- capabilities -----------------------------------------------------------------------------------------------------


def capabilities() -> Tuple[int, int]:
    """Those in effect, and those that can be put into effect."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    checked(libc.capget(header, data), "capget")
    return data[0] | data[3] << 32, data[1] | data[4] << 32


def set_capabilities(effective: int, permitted: int) -> None:
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    for half in (0, 1):
        data[3 * half] = effective >> 32 * half & 0xFFFFFFFF
        data[3 * half + 1] = permitted >> 32 * half & 0xFFFFFFFF
    checked(libc.capset(header, data), "capset")


def raise_capabilities() -> int:
    """Put into effect all that can be; what was before."""
    effective, permitted = capabilities()
    if effective != permitted:
        set_capabilities(permitted, permitted)
    return effective
