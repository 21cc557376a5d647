"""What is at each path of a folder: scanned with `stat` as cheaply as Python can, or watched if the folder is large."""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections import Counter, deque
from collections.abc import Callable, Container
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from interpreter.host.files import Folder

Kind = Literal["file", "link", "folder", "other"]
# The `stat` fields mode, size, mtime and ctime in nanoseconds, inode, and number of names.
Key = tuple[int, int, int, int, int, int]
key_of = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")

WATCH_FROM = 2_000  # entries from which a tree is watched; scanning fewer costs next to nothing
_TICK = 20_000_000
_COARSE_TICK = 2_100_000_000
_SECOND = 1_000_000_000
_HEAD = struct.Struct("iIII")  # watch, event mask, cookie, length of the name
_OPEN, _CLOSED, _FOLDER = 0x20, 0x18, 0x4000_0000
_OVERFLOW, _REMOVED = 0x4000, 0x8000
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200  # written, attributes, closed, moved away, here, made, deleted
_MASK = _CHANGES | _OPEN | _CLOSED | 0x0100_0000  # folders only
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


# -- one path ----------------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """What is at a path; `content` is the hash of a file, the target of a link, or the type of anything else."""

    kind: Kind
    mode: int
    size: int
    mtime_ns: int
    inode: int
    content: str | None  # None for a file whose content is not stored

    @property
    def restorable(self) -> bool:
        return self.content is not None and (self.kind != "other" or self.content == "fifo")


Pair = tuple[Item | None, Item | None]  # what a path held before and after


def item_from(key: Key, content: str | None) -> Item:
    mode, size, mtime, _, inode, _ = key
    if stat.S_ISREG(mode):
        return Item("file", stat.S_IMODE(mode), size, mtime, inode, content)
    if stat.S_ISLNK(mode):
        return Item("link", 0o777, 0, mtime, inode, content)
    if stat.S_ISDIR(mode):
        return Item("folder", stat.S_IMODE(mode), 0, 0, inode, "")
    kind = "fifo" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
    return Item("other", stat.S_IMODE(mode), 0, 0, inode, kind)


def item_from_json(fields: list[Any] | None) -> Item | None:
    return Item(*fields) if fields is not None else None


def alike(one: Item | None, other: Item | None) -> bool:
    """Compare two items, ignoring timestamps."""
    if one is None or other is None:
        return one is other
    if one.kind != other.kind or one.mode != other.mode:
        return False
    if one.content is None or other.content is None:
        return (one.size, one.mtime_ns, one.inode) == (other.size, other.mtime_ns, other.inode)
    return one.content == other.content


def same(one: Item | None, other: Item | None) -> bool:
    """Compare two items, including their timestamps."""
    return alike(one, other) and (one is None or other is None or one.mtime_ns == other.mtime_ns)


def repository_of(path: str) -> str | None:
    """Return the outermost `.git` folder that a path is in."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(".git") + 1]) if ".git" in parts else None


def unchanged(present: Item | None, known: Item | None) -> bool:
    """Check whether an item is still the same file, judging by its `stat` result."""
    if present is None or known is None:
        return present is known
    return (present.kind, present.inode, *present[2:4]) == (known.kind, known.inode, *known[2:4])


def item_at(folder: Folder, path: str) -> Item | None:
    """Return what `stat` says about a path, without its content; None if it can't be reached without links."""
    try:
        return item_from(key_of(folder.stat(path)), None)
    except OSError:
        return None


# -- a whole tree ------------------------------------------------------------------------------------------------


class FileTree:
    """The `stat` results of everything under a root, as last seen. The root's own path is empty.

    `opened` opens a folder. `closes` says why a folder is left out, given its path and the names in it. A large tree is
    watched, and only what has changed is scanned again.
    """

    def __init__(
        self, opened: Callable[[str], AbstractContextManager[int]], closes: Callable[[str, Container[str]], str | None]
    ) -> None:
        self._opened, self._closes = opened, closes
        self.skip: frozenset[str] = frozenset()  # folders that are left out and not reported
        self.root: Key | None = None
        self.folders: dict[str, dict[str, Key]] = {}
        self.closed: dict[str, str] = {}  # folders that are not read, and why
        self.count = 0
        # The changed paths, with what was there before, until the user of the tree clears them.
        self.changed: dict[str, Key | None] = {}
        self._device = 0
        self._watch: Watch | None = None
        self._may_watch = True
        self._unwatched: set[str] = set()
        self._uncertain = True  # whether everything has to be scanned

    def key(self, path: str) -> Key | None:
        if not path:
            return self.root
        parent, _, name = path.rpartition("/")
        return self.folders.get(parent, {}).get(name)

    def refresh(self, limit: int) -> None:
        """Scan for changes. If there are more entries than the limit, the deepest folders are left out."""
        changes = self._watch.changes() if self._watch is not None else None
        root = self.root
        try:
            with self._opened("") as descriptor:
                facts = os.fstat(descriptor)
                self.root, self._device = key_of(facts), facts.st_dev
        except PermissionError:
            pass
        except OSError:
            self.root = None
        if self.root != root:
            self.changed.setdefault("", root)
        is_same = root is not None and self.root is not None and root[4] == self.root[4]
        uncertain, self._uncertain = self._uncertain, True  # until this scan has succeeded
        if uncertain or changes is None or not is_same:  # no watch reports a replaced root
            pending = deque(["", *self.folders, *self.closed])
        else:
            pending = deque(self._unwatched)
            while self._watch is not None and self._watch.deleted:
                path = self._watch.deleted.pop()
                self._drop(path)
                pending.append(path)
            for path, names in changes.items():
                self._check(path, names, pending)
            # A file that has changed under one name has changed under its others, for which there are no events.
            keys = map(self.key, self.changed)
            inodes = {key[4] for key in keys if key is not None and stat.S_ISREG(key[0]) and key[5] > 1}
            for path, folder in list(self.folders.items()) if inodes else ():
                if names := {name for name, key in folder.items() if key[4] in inodes}:
                    self._check(path, names, pending)
        done = set()
        while pending:
            path = pending.popleft()
            if path not in done:
                done.add(path)
                self._read(path, pending, limit)
                if len(done) % 1000 == 0:
                    self.drain()
            if self._may_watch and self.count >= WATCH_FROM:
                self._may_watch = False
                with suppress(OSError):
                    self._watch = Watch() if can_watch(self._device) else None
                    pending.extendleft(done)  # changes made before the folder was watched would be missed
                    done = set()
        self._uncertain = False

    def leave_out(self, path: str) -> None:
        """Leave a folder out, and don't report it."""
        self.skip |= {path}
        self._drop(path)

    def drain(self) -> None:
        """Take pending events from the kernel, which only holds so many, while many files are being read."""
        if self._watch is not None:
            self._watch.read()

    def _check(self, path: str, names: set[str], pending: deque[str]) -> None:
        """Update some names in a folder."""
        folder = self.folders.get(path)
        if folder is None:
            return
        try:
            with self._opened(path) as descriptor:
                for name in names:
                    try:
                        key = key_of(os.lstat(name, dir_fd=descriptor))
                    except OSError:
                        key = None
                    self._set(path, folder, name, key, pending)
        except OSError:
            pending.append(path)

    def _read(self, path: str, pending: deque[str], limit: int) -> None:
        """Update everything in a folder."""
        folder = self.folders.get(path)
        try:
            if folder is None and self.count >= limit:
                self._close(path, "there are too many files")
                return
            with self._opened(path) as descriptor:
                if os.fstat(descriptor).st_dev != self._device:
                    self._close(path, "another file system")
                    return
                if self._watch is not None and self._watch.add(path, descriptor):
                    self._unwatched.discard(path)
                else:
                    self._unwatched.add(path)
                entries: dict[str, Key] = {}
                with os.scandir(descriptor) as listing:
                    for entry in listing:
                        if len(entries) >= limit:
                            self._close(path, "there are too many files")
                            return
                        try:
                            entries[entry.name] = key_of(entry.stat(follow_symlinks=False))
                        except OSError:  # just deleted
                            continue
        except PermissionError:
            self.closed[path] = "may not be read"  # its contents are assumed unchanged
            return
        except OSError:
            self._drop(path)  # just deleted
            return
        if path and (why := self._closes(path, entries)):
            self._close(path, why)
            return
        self.closed.pop(path, None)
        folder = self.folders.setdefault(path, {})
        if folder != entries:
            for name in [name for name in folder.keys() | entries.keys() if folder.get(name) != entries.get(name)]:
                self._set(path, folder, name, entries.get(name), pending)

    def _set(self, path: str, folder: dict[str, Key], name: str, key: Key | None, pending: deque[str]) -> None:
        """Record the present entry of a name in a folder; None if it is gone."""
        old = folder.get(name)
        if old == key:
            return
        inside = f"{path}/{name}" if path else name
        self.changed.setdefault(inside, old)
        if key is None:
            del folder[name]
        else:
            folder[name] = key
        self.count += (old is None) - (key is None)
        is_folder = key is not None and stat.S_ISDIR(key[0])
        if old is not None and stat.S_ISDIR(old[0]) and not (key is not None and is_folder and key[4] == old[4]):
            self._drop(inside)
        mode = old[0] if old is not None else None
        if key is not None and is_folder and inside not in self.skip and (key[0] != mode or inside not in self.folders):
            pending.append(inside)

    def _close(self, path: str, why: str) -> None:
        self._drop(path)
        self.closed[path] = why

    def _drop(self, path: str) -> None:
        pending = [path]
        while pending:
            path = pending.pop()
            self.closed.pop(path, None)
            self._unwatched.discard(path)
            if self._watch is not None:
                self._watch.remove(path)
            folder = self.folders.pop(path, {})
            self.count -= len(folder)
            for name, key in folder.items():
                inside = f"{path}/{name}" if path else name
                self.changed.setdefault(inside, key)
                if stat.S_ISDIR(key[0]):
                    pending.append(inside)


def is_fresh(key: Key, now: int) -> bool:
    """Check whether a file changed so recently that another change may not show in its times.

    File systems stamp with the tick of a clock; those without fractions of a second have ticks of up to two seconds.
    """
    changed, touched = key[3], key[2]
    coarse = not (touched % _SECOND or changed % _SECOND)
    since = now - (_COARSE_TICK if coarse else _TICK)
    return changed > since or since < touched <= now  # programs can set mtime to any time, even in the future


def installed(path: str, names: Container[str]) -> str | None:
    """Say what kind of folder an installer filled and can fill again; None for others.

    Such folders are too large to copy.
    """
    if "pyvenv.cfg" in names:
        return "a virtual environment"
    return "installed packages" if path.rpartition("/")[2] == "node_modules" else None


# -- watching ----------------------------------------------------------------------------------------------------

# The kernel (Linux only, inotify) reports which files of a large tree have changed, so that the rest need not be
# scanned. Elsewhere, and on network file systems, where other machines make changes that no kernel reports, a tree is
# scanned.


class Watch:
    """Notes what changes in folders. Raises OSError if the system has no watches or no more of them."""

    def __init__(self) -> None:
        self._fd = -1
        self._fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._open = Counter[tuple[int, bytes]]()  # files mapped into memory change without an event
        self._changes: dict[str, set[str]] = {}
        self._overflowed = False
        # Deleted folders. A new one may be at the same path now, even with the same inode.
        self.deleted: set[str] = set()
        with open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as file:
            self._most = int(file.read()) // 2  # leave some for other programs

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def add(self, path: str, descriptor: int) -> bool:
        """Watch an open folder under this path. False if there are no more watches."""
        if path not in self._watches and len(self._watches) >= self._most:
            return False
        try:
            watch = _call("inotify_add_watch", self._fd, b"/proc/self/fd/%d" % descriptor, _MASK)
        except OSError:
            return False
        self._paths[watch], self._watches[path] = path, watch
        return True

    def remove(self, path: str) -> None:
        """Stop watching a path whose folder is gone or has been replaced."""
        watch = self._watches.pop(path, None)
        if watch is not None and self._paths.get(watch) == path:
            del self._paths[watch]
            with suppress(OSError):
                _call("inotify_rm_watch", self._fd, watch)

    def read(self) -> None:
        """Read pending events; the kernel only holds so many."""
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
                        self._open[watch, name] += 1
                    elif mask & _CLOSED:  # opened before it was watched, perhaps
                        self._open[watch, name] = max(0, self._open[watch, name] - 1)

    def changes(self) -> dict[str, set[str]] | None:
        """Return and clear the names that have changed, by folder; None if events were lost."""
        self.read()
        changes, overflowed = self._changes, self._overflowed
        self._changes, self._overflowed = {}, False
        if overflowed:
            self._open.clear()
            return None
        self._open = +self._open  # drops closed files
        for watch, name in self._open:
            if watch in self._paths:
                changes.setdefault(self._paths[watch], set()).add(os.fsdecode(name))
        return changes


def can_watch(device: int) -> bool:
    """Check whether the kernel reports every change on this file system."""
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
