"""What is at each path of a folder: scanned with `stat` as cheaply as Python can, and compared with what was there."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from interpreter.host.files import Folder

Kind = Literal["file", "link", "folder", "other"]
Key = tuple[int, int, int, int, int]
"""What `stat` says: mode, size, mtime and ctime in nanoseconds, inode."""
key_of = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")

_TICK = 20_000_000
_COARSE_TICK = 2_100_000_000
_SECOND = 1_000_000_000


# -- one path ----------------------------------------------------------------------------------------------------


class Item(NamedTuple):
    """What is at a path; `content` is the hash of a file, the target of a link, the type of anything else."""

    kind: Kind
    mode: int
    size: int
    mtime_ns: int
    inode: int
    content: str | None
    """None for a file whose content is not stored."""

    @property
    def restorable(self) -> bool:
        """Whether it can be made again from what is stored."""
        return self.content is not None and (self.kind != "other" or self.content == "fifo")


Pair = tuple[Item | None, Item | None]
"""What was at a path before, and what is there after."""


def item_from(key: Key, content: str | None) -> Item:
    """The item that `stat` describes."""
    mode, size, mtime, _, inode = key
    if stat.S_ISREG(mode):
        return Item("file", stat.S_IMODE(mode), size, mtime, inode, content)
    if stat.S_ISLNK(mode):
        return Item("link", 0o777, 0, mtime, inode, content)
    if stat.S_ISDIR(mode):
        return Item("folder", stat.S_IMODE(mode), 0, 0, inode, "")
    kind = "fifo" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
    return Item("other", stat.S_IMODE(mode), 0, 0, inode, kind)


def item_from_json(fields: list[Any] | None) -> Item | None:
    """The item that JSON has as a list."""
    return Item(*fields) if fields is not None else None


def alike(one: Item | None, other: Item | None) -> bool:
    """Whether they hold the same, whenever they were written."""
    if one is None or other is None:
        return one is other
    if one.kind != other.kind or one.mode != other.mode:
        return False
    if one.content is None or other.content is None:
        return (one.size, one.mtime_ns, one.inode) == (other.size, other.mtime_ns, other.inode)
    return one.content == other.content


def same(one: Item | None, other: Item | None) -> bool:
    """Whether they are alike and have the same time."""
    return alike(one, other) and (one is None or other is None or one.mtime_ns == other.mtime_ns)


def repository_of(path: str) -> str | None:
    """The outermost `.git` folder that a path is in."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(".git") + 1]) if ".git" in parts else None


def item_at(folder: Folder, path: str) -> Item | None:
    """What `stat` says about a path, without its content; None if nothing is there or a link leads there."""
    try:
        return item_from(key_of(folder.stat(path)), None)
    except OSError:
        return None


# -- a whole tree ------------------------------------------------------------------------------------------------


class TooManyEntries(Exception):
    """The tree has more entries than a scan may read."""


@dataclass(slots=True)
class Entries:
    """The entries of a folder, and which of them are folders."""

    key: Key
    fresh: bool
    """It changed so recently that another change may not show in its times."""
    entries: dict[str, Key]
    names: list[bytes]
    keys: list[Key]
    """The entries again, in a form that is quick to compare."""
    subfolders: list[str]
    """Their paths."""


@dataclass(slots=True)
class Scan:
    """Everything under a root: the folders by their paths; the root's own path is empty."""

    folders: dict[str, Entries] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    """Folders that were not read, and why."""
    count: int = 0

    def key(self, path: str) -> Key | None:
        """What `stat` said about a path."""
        if not path:
            return self.folders[""].key if "" in self.folders else None
        parent, _, name = path.rpartition("/")
        folder = self.folders.get(parent)
        return folder.entries.get(name) if folder else None


def is_fresh(key: Key, now: int) -> bool:
    """Whether it changed so recently that another change may not show in its times.

    File systems stamp with the tick of a clock; those without fractions of a second have ticks of up to two seconds.
    """
    changed, touched = key[3], key[2]
    coarse = not (touched % _SECOND or changed % _SECOND)
    since = now - (_COARSE_TICK if coarse else _TICK)
    return changed > since or since < touched <= now  # programs set mtime to any time, also in the future


def scan(
    opened: Callable[[str], AbstractContextManager[int]],
    earlier: Scan,
    skip: frozenset[str] = frozenset(),
    limit: int | None = None,
) -> Scan:
    """Read the tree; folders that have not changed since `earlier` are taken from there. `opened` opens a folder."""
    found = Scan()
    device = None
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            with opened(path) as descriptor:
                facts = os.fstat(descriptor)
                device = facts.st_dev if device is None else device
                if facts.st_dev != device:
                    found.closed[path] = "another file system"
                    continue
                folder = _read_folder(path, descriptor, key_of(facts), earlier.folders.get(path))
        except PermissionError:
            _keep_unreadable(path, earlier, found)
            continue
        except OSError:  # it has just gone
            continue
        if path and (what := installed(path, folder.entries)):
            found.closed[path] = what
            continue
        found.folders[path] = folder
        found.count += len(folder.entries)
        if limit is not None and found.count > limit:
            raise TooManyEntries
        pending += folder.subfolders if not skip else [each for each in folder.subfolders if each not in skip]
    return found


def installed(path: str, entries: Container[str]) -> str | None:
    """What a folder is that an installer filled and can fill again; such folders are too large to copy."""
    if "pyvenv.cfg" in entries:
        return "a virtual environment"
    return "installed packages" if path.rpartition("/")[2] == "node_modules" else None


def differing(old: Scan, new: Scan) -> Iterator[str]:
    """The paths whose `stat` differs between two scans."""
    if old.key("") != new.key(""):
        yield ""
    for path in old.folders.keys() | new.folders.keys():
        before, after = old.folders.get(path), new.folders.get(path)
        if before is after:
            continue
        had, has = before.entries if before else {}, after.entries if after else {}
        start = f"{path}/" if path else ""
        yield from (start + name for name in had.keys() | has.keys() if had.get(name) != has.get(name))


def _read_folder(path: str, descriptor: int, key: Key, earlier: Entries | None) -> Entries:
    fresh = is_fresh(key, time.time_ns())
    entries: dict[str, Key] | None = None
    if earlier is not None and earlier.key == key and not earlier.fresh:
        # The names are the same, so only the entries themselves have to be checked.
        lstat = os.lstat
        try:
            keys = [key_of(lstat(name, dir_fd=descriptor)) for name in earlier.names]
        except OSError:  # something has just gone
            pass
        else:
            if keys == earlier.keys:
                return earlier
            entries = dict(zip(earlier.entries, keys, strict=True))
    if entries is None:
        entries = {}
        with os.scandir(descriptor) as listing:
            for entry in listing:
                try:
                    entries[entry.name] = key_of(entry.stat(follow_symlinks=False))
                except OSError:  # it has just gone
                    continue
    start = f"{path}/" if path else ""
    subfolders = [start + name for name, each in entries.items() if stat.S_ISDIR(each[0])]
    return Entries(key, fresh, entries, list(map(os.fsencode, entries)), list(entries.values()), subfolders)


def _keep_unreadable(path: str, earlier: Scan, found: Scan) -> None:
    """Assume that a folder that cannot be read holds what it held."""
    found.closed[path] = "may not be read"
    pending = [path]
    while pending:
        path = pending.pop()
        folder = earlier.folders.get(path)
        if folder is not None:
            found.folders[path] = folder
            found.count += len(folder.entries)
            pending += folder.subfolders
