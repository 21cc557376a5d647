"""A process's open descriptors, and how a snapshot changes them so that it does not disturb other processes."""

from __future__ import annotations

import _socket
import fcntl
import os
import stat

from .hints import Collection, Iterator

OPEN_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK
A_PATH = getattr(os, "O_PATH", 0)


def release(kept: Collection[int], ours: Collection[int]) -> list[str]:
    """Replace every pipe, socket and terminal but the kept ones. Returns descriptions of those that were not ours.

    Otherwise a pipe that the worker closes would never reach its end, and a port would never be free. Files are opened
    again, so their locks belong to the worker alone, and they keep their present positions.
    """
    null = os.open(os.devnull, os.O_RDWR)
    lost: list[str] = []
    for fd, kind, _ in each_open({*kept, null}):
        try:
            if is_shared(kind, fd):
                if fd not in ours and kind:
                    lost.append(described(kind, fd))
                os.dup2(null, fd, os.get_inheritable(fd))
            elif kind == stat.S_IFREG:
                reopen(fd, null)
        except OSError:
            continue  # a device that cannot be opened again
    os.close(null)
    return lost


def has_others(ours: Collection[int]) -> bool:
    """Check whether a file is open, or anything that two processes cannot share."""
    return any(kind == stat.S_IFREG or is_shared(kind, fd) for fd, kind, _ in each_open(ours))


def each_open(but: Collection[int]) -> Iterator[tuple[int, int, os.stat_result]]:
    """Yield the other open descriptors, with the kind and the stat result of each."""
    for fd in open_descriptors():
        try:
            facts = os.fstat(fd)
        except OSError:
            continue  # the directory listing's own descriptor, already closed
        if fd not in but:
            yield fd, stat.S_IFMT(facts.st_mode), facts


def open_descriptors() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(folder)]
        except OSError:
            continue
    return list(range(256))


def working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


def is_shared(kind: int, fd: int) -> bool:
    """Check whether two processes with this descriptor disturb each other; kind 0 is epoll, eventfd and the like."""
    return kind in (stat.S_IFIFO, stat.S_IFSOCK, 0) or (kind == stat.S_IFCHR and os.isatty(fd))


def reopen(fd: int, null: int) -> None:
    """Give a descriptor a separate open file; a locked file that cannot be opened again is dropped."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if A_PATH and flags & A_PATH:
        return
    try:
        replace(fd, by_number(fd), flags & OPEN_FLAGS)  # O_TMPFILE includes O_DIRECTORY
    except OSError:
        with open("/proc/self/fdinfo/%d" % fd, "rb") as file:
            if b"\nlock:" in file.read():  # a copied descriptor would keep the lock
                os.dup2(null, fd, os.get_inheritable(fd))


def by_number(fd: int) -> str:
    """Return a path to an open file, even if something is mounted over its name."""
    return "/proc/self/fd/%d" % fd


def replace(fd: int, path: str, flags: int) -> None:
    """Open the file of that name in place of a descriptor, at the same position."""
    own = os.open(path, flags & (OPEN_FLAGS | A_PATH | os.O_DIRECTORY) | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(own).st_mode) and not (A_PATH and flags & A_PATH):
            os.lseek(own, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(own, fd, os.get_inheritable(fd))
    finally:
        os.close(own)


def described(kind: int, fd: int) -> str:
    if kind == stat.S_IFIFO:
        return "a pipe"
    if kind != stat.S_IFSOCK:
        return "a terminal"
    copy = _socket.socket(fileno=os.dup(fd))
    try:
        for name, address_of in (("the connection to", copy.getpeername), ("the socket at", copy.getsockname)):
            try:
                bound_to = address_of()
            except OSError:
                continue
            address = "%s:%s" % bound_to[:2] if isinstance(bound_to, tuple) else os.fsdecode(bound_to)
            if address:
                return "%s %s" % (name, address)
    finally:
        copy.close()
    return "a socket"
