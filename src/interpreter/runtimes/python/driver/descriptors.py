"""What a snapshot does with the descriptors it inherited, so that nobody notices that it is there."""

from __future__ import annotations

import _socket
import fcntl
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, List, Optional

OPEN_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK
A_PATH = getattr(os, "O_PATH", 0)
FOLDERS = ("/proc/self/fd", "/dev/fd")


def let_go(kept: Collection[int], ours: Collection[int]) -> List[str]:
    """Replace every pipe, socket and terminal but the kept ones; what of it was not ours, in words.

    Else a pipe that the worker closes would never reach its end, and a port never be free. Files are opened anew:
    so their locks are the worker's alone, and their positions are those of now.
    """
    null = os.open(os.devnull, os.O_RDWR)
    lost: List[str] = []
    for fd in open_descriptors():
        if fd in kept or fd == null:
            continue
        try:
            kind = stat.S_IFMT(os.fstat(fd).st_mode)
            if is_shared(kind, fd):
                if fd not in ours and kind:
                    lost.append(described(kind, fd))
                os.dup2(null, fd, os.get_inheritable(fd))
            elif kind == stat.S_IFREG:
                open_anew(fd, null)
        except OSError:
            continue  # the folder's own, gone by now; or a device that does not like to be asked
    os.close(null)
    return lost


def has_others(ours: Collection[int]) -> bool:
    """Whether anything is open that two processes cannot well share, or a file."""
    for fd in open_descriptors():
        if fd not in ours:
            try:
                kind = stat.S_IFMT(os.fstat(fd).st_mode)
            except OSError:
                continue
            if kind == stat.S_IFREG or is_shared(kind, fd):
                return True
    return False


def open_descriptors() -> List[int]:
    for folder in FOLDERS:
        try:
            return [int(name) for name in os.listdir(folder)]
        except OSError:
            continue
    return list(range(256))


def is_shared(kind: int, fd: int) -> bool:
    """Whether two processes that have it get in each other's way; kind 0 is the likes of epoll and eventfd."""
    return kind in (stat.S_IFIFO, stat.S_IFSOCK, 0) or (kind == stat.S_IFCHR and os.isatty(fd))


def open_anew(fd: int, null: int) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if A_PATH and flags & A_PATH:
        return
    inheritable, position = os.get_inheritable(fd), os.lseek(fd, 0, os.SEEK_CUR)
    try:
        own = os.open("/proc/self/fd/%d" % fd, flags & OPEN_FLAGS | os.O_CLOEXEC)
    except OSError:
        if is_locked(fd):
            os.dup2(null, fd, inheritable)
        return
    os.lseek(own, position, os.SEEK_SET)
    os.dup2(own, fd, inheritable)
    os.close(own)


def is_locked(fd: int) -> bool:
    """Whether the open file holds a lock, which would last as long as any copy of it."""
    try:
        with open("/proc/self/fdinfo/%d" % fd, "rb") as file:
            return b"\nlock:" in file.read()
    except OSError:
        return False


def described(kind: int, fd: int) -> str:
    if kind == stat.S_IFIFO:
        return "a pipe"
    if kind != stat.S_IFSOCK:
        return "a terminal"
    copy = _socket.socket(fileno=os.dup(fd))
    here, there = address(copy, "getsockname"), address(copy, "getpeername")
    copy.close()
    if there:
        return "the connection to %s" % there
    return "the socket at %s" % here if here else "a socket"


def address(connection: _socket.socket, which: str) -> Optional[str]:
    try:
        found = getattr(connection, which)()
    except OSError:
        return None
    if isinstance(found, tuple):
        return "%s:%s" % found[:2]
    return os.fsdecode(found) or None
