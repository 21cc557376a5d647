"""Which files of a large tree have changed, as the kernel reports it, so that the rest need not be looked at.

Linux only (inotify). Elsewhere, and on network file systems, where other machines make changes that no kernel reports,
a tree is scanned.
"""

from __future__ import annotations

import os
import struct
import sys
from contextlib import suppress
from typing import Any

_HEAD = struct.Struct("iIII")  # watch, what happened, cookie, length of the name
_OPEN, _CLOSED, _FOLDER = 0x20, 0x18, 0x4000_0000
_OVERFLOW, _REMOVED = 0x4000, 0x8000
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200  # written, attributes, closed, moved away, here, made, deleted
_MASK = _CHANGES | _OPEN | _CLOSED | 0x0100_0000  # of folders only
_LOCAL = {
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "tmpfs",
    "f2fs",
    "zfs",
    "bcachefs",
    "overlay",
    "ramfs",
    "jfs",
    "reiserfs",
}


class Watch:
    """Notes what changes in folders; OSError if the system has no watches or no more of them."""

    def __init__(self) -> None:
        self._fd = -1
        self._fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._open: dict[tuple[int, bytes], int] = {}  # memory that is mapped from a file changes it without an event
        self._changes: dict[str, set[str]] = {}
        self._overflowed = False
        self.deleted: set[str] = set()
        """Folders that were deleted; another one may be there now, even with the same inode."""
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as file:
            self._most = int(file.read()) // 2  # other programs need some, too

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def add(self, path: str, descriptor: int) -> bool:
        """Watch an open folder under this path; False if there are no more watches."""
        if path not in self._watches and len(self._watches) >= self._most:
            return False
        try:
            watch = _call("inotify_add_watch", self._fd, b"/proc/self/fd/%d" % descriptor, _MASK)
        except OSError:
            return False
        self._paths[watch], self._watches[path] = path, watch
        return True

    def remove(self, path: str) -> None:
        """The folder is gone, or is another one now."""
        watch = self._watches.pop(path, None)
        if watch is not None and self._paths.get(watch) == path:
            del self._paths[watch]
            with suppress(OSError):
                _call("inotify_rm_watch", self._fd, watch)

    def read(self) -> None:
        """Note what has happened so far; the kernel holds only so much."""
        while True:
            try:
                data = os.read(self._fd, 1 << 18)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                if mask & _OVERFLOW:
                    self._overflowed = True
                elif mask & _REMOVED:
                    path = self._paths.pop(watch, "")
                    if self._watches.get(path) == watch:
                        del self._watches[path]
                        self.deleted.add(path)
                elif length and watch in self._paths:
                    name = data[at - length : at].rstrip(b"\0")
                    if mask & _CHANGES:
                        self._changes.setdefault(self._paths[watch], set()).add(os.fsdecode(name))
                    if mask & _FOLDER:
                        continue
                    if mask & _OPEN:
                        self._open[watch, name] = self._open.get((watch, name), 0) + 1
                    elif mask & _CLOSED and self._open.get((watch, name), 0) > 1:
                        self._open[watch, name] -= 1
                    elif mask & _CLOSED:
                        self._open.pop((watch, name), None)

    def changes(self) -> dict[str, set[str]] | None:
        """The names that have changed since the last time, by folder; None if too much happened to know."""
        self.read()
        changes, overflowed = self._changes, self._overflowed
        self._changes, self._overflowed = {}, False
        if overflowed:
            self._open.clear()
            return None
        for watch, name in self._open:
            if watch in self._paths:
                changes.setdefault(self._paths[watch], set()).add(os.fsdecode(name))
        return changes


def can_watch(device: int) -> bool:
    """Whether everything that changes on this file system is reported."""
    if sys.platform != "linux":
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for fields in map(str.split, file):
            if fields[2] == number:
                return fields[fields.index("-") + 1] in _LOCAL
    return False


def _call(name: str, *arguments: Any) -> int:
    import ctypes

    result: int = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
