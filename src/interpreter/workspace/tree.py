"""What stands at a path: a file, a link, a folder, or something else; and whether two of them are the same."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, NamedTuple

Kind = Literal["file", "link", "folder", "other"]
Key = tuple[int, int, int, int, int]
"""What `stat` says: mode, size, mtime and ctime in nanoseconds, inode."""


class Item(NamedTuple):
    """What stands at a path; `content` is the hash of a file, the target of a link, the type of something else."""

    kind: Kind
    mode: int
    size: int
    mtime_ns: int
    inode: int
    content: str | None
    """None for a file whose content is not stored."""

    @property
    def restorable(self) -> bool:
        """Can it be made again from what is stored?"""
        return self.content is not None and (self.kind != "other" or self.content == "fifo")


Pair = tuple[Item | None, Item | None]
"""What stood at a path before, and what stands there after."""


def item_from(key: Key, content: str | None) -> Item:
    """The item with these facts."""
    mode, size, mtime, _, inode = key
    if stat.S_ISREG(mode):
        return Item("file", stat.S_IMODE(mode), size, mtime, inode, content)
    if stat.S_ISLNK(mode):
        return Item("link", 0o777, 0, mtime, inode, content)
    if stat.S_ISDIR(mode):
        return Item("folder", stat.S_IMODE(mode), 0, 0, inode, "")
    return Item("other", stat.S_IMODE(mode), 0, 0, inode, _type_name(mode))


def alike(one: Item | None, other: Item | None) -> bool:
    """Do they hold the same, whenever they were written?"""
    if one is None or other is None:
        return one is other
    if one.kind != other.kind or one.mode != other.mode:
        return False
    if one.content is None or other.content is None:
        return (one.size, one.mtime_ns, one.inode) == (other.size, other.mtime_ns, other.inode)
    return one.content == other.content


def same(one: Item | None, other: Item | None) -> bool:
    """Are they alike, and of the same time?"""
    return alike(one, other) and (one is None or other is None or one.mtime_ns == other.mtime_ns)


def repository_of(path: str) -> str | None:
    """The outermost `.git` folder that a path is in."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(".git") + 1]) if ".git" in parts else None


def packed(item: Item | None) -> list[Any] | None:
    """As JSON has it."""
    return list(item) if item is not None else None


def unpacked(fields: list[Any] | None) -> Item | None:
    return Item(*fields) if fields is not None else None


def _type_name(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "fifo"
    return "socket" if stat.S_ISSOCK(mode) else "device"


_GRAIN = 20_000_000
_COARSE_GRAIN = 2_100_000_000
_SECOND = 1_000_000_000
_LOOKING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

key_of = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")


class TooMany(Exception):
    """There is more in the tree than we want to look at."""


@dataclass(slots=True)
class Folder:
    """The entries of a folder, and which of them are folders."""

    key: Key
    fresh: bool
    """It changed so lately that another change may not show in its times."""
    entries: dict[str, Key]
    names: list[bytes]
    keys: list[Key]
    """The entries again, in a form that is quick to compare."""
    below: list[str]
    """The paths of the folders in it."""


@dataclass(slots=True)
class Scan:
    """Everything under a root: the folders by their paths, the root's own path being empty."""

    folders: dict[str, Folder] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    """Folders that were not looked into, and why."""
    count: int = 0

    def key(self, path: str) -> Key | None:
        """What `stat` said about a path."""
        if not path:
            return self.folders[""].key if "" in self.folders else None
        parent, _, name = path.rpartition("/")
        folder = self.folders.get(parent)
        return folder.entries.get(name) if folder else None


def is_fresh(key: Key, now: int) -> bool:
    """Did it change so lately that another change may not show in its times?

    File systems stamp with the tick of a clock; those without fractions of a second have ticks of up to two seconds.
    """
    changed, touched = key[3], key[2]
    coarse = not (touched % _SECOND or changed % _SECOND)
    since = now - (_COARSE_GRAIN if coarse else _GRAIN)
    return changed > since or since < touched <= now  # programs set that one to any time, also in the future


def scan(root: str, earlier: Scan, skip: frozenset[str] = frozenset(), most: int | None = None) -> Scan:
    """Look at the tree; what has not changed since `earlier` is taken over from there."""
    found = Scan()
    device = None
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            descriptor = os.open(f"{root}/{path}" if path else root, _LOOKING)
        except PermissionError:
            _carry_over(path, earlier, found)
            continue
        except OSError:  # it has just gone
            continue
        try:
            facts = os.fstat(descriptor)
            device = facts.st_dev if device is None else device
            if facts.st_dev != device:
                found.closed[path] = "another file system"
                continue
            folder = _folder(path, descriptor, key_of(facts), earlier.folders.get(path))
        finally:
            os.close(descriptor)
        if path and (what := installed(path, folder.entries)):
            found.closed[path] = what
            continue
        found.folders[path] = folder
        found.count += len(folder.entries)
        if most is not None and found.count > most:
            raise TooMany
        pending += folder.below if not skip else [each for each in folder.below if each not in skip]
    return found


def installed(path: str, entries: Container[str]) -> str | None:
    """What a folder is whose content an installer has put there and would put there again; there is too much in it."""
    if "pyvenv.cfg" in entries:
        return "a virtual environment"
    return "installed packages" if path.rpartition("/")[2] == "node_modules" else None


def differing(old: Scan, new: Scan) -> Iterator[str]:
    """The paths about which the scans say different things."""
    if old.key("") != new.key(""):
        yield ""
    for path, folder in new.folders.items():
        before = old.folders.get(path)
        if before is not None and before.entries is folder.entries:
            continue
        had, has = before.entries if before else {}, folder.entries
        start = f"{path}/" if path else ""
        yield from (start + name for name, key in has.items() if had.get(name) != key)
        yield from (start + name for name in had if name not in has)
    for path in old.folders.keys() - new.folders.keys():
        start = f"{path}/" if path else ""
        yield from (start + name for name in old.folders[path].entries)


def _folder(path: str, descriptor: int, key: Key, earlier: Folder | None) -> Folder:
    fresh = is_fresh(key, time.time_ns())
    if earlier is not None and earlier.key == key and not earlier.fresh:
        # The names are the same, so only the entries themselves need a look.
        lstat = os.lstat
        try:
            keys = [key_of(lstat(name, dir_fd=descriptor)) for name in earlier.names]
        except OSError:  # something has just gone
            pass
        else:
            if keys == earlier.keys:
                return earlier
            return _made(path, key, fresh, dict(zip(earlier.entries, keys, strict=True)))
    return _made(path, key, fresh, _entries(descriptor))


def _made(path: str, key: Key, fresh: bool, entries: dict[str, Key]) -> Folder:
    start = f"{path}/" if path else ""
    below = [start + name for name, each in entries.items() if stat.S_ISDIR(each[0])]
    return Folder(key, fresh, entries, list(map(os.fsencode, entries)), list(entries.values()), below)


def _entries(descriptor: int) -> dict[str, Key]:
    entries = {}
    with os.scandir(descriptor) as listing:
        for entry in listing:
            try:
                entries[entry.name] = key_of(entry.stat(follow_symlinks=False))
            except OSError:  # it has just gone
                continue
    return entries


def _carry_over(path: str, earlier: Scan, found: Scan) -> None:
    """A folder that may not be read holds, as far as we know, what it held."""
    found.closed[path] = "may not be read"
    pending = [path]
    while pending:
        path = pending.pop()
        folder = earlier.folders.get(path)
        if folder is not None:
            found.folders[path] = folder
            found.count += len(folder.entries)
            pending += folder.below


def standing(root: str, path: str, real: set[str]) -> Item | None:
    """What `stat` says about a path, contents aside; None if nothing is there or a link leads there.

    `real` are folders that are known to be reached without a link.
    """
    full = os.path.join(root, path) if path else root
    try:
        facts = os.lstat(full)
    except OSError:
        return None
    if path and not is_real(os.path.dirname(full), real):
        return None
    return item_from(key_of(facts), None)


def is_real(folder: str, real: set[str]) -> bool:
    """Is there no link on the way to a folder?"""
    if folder not in real:
        if os.path.realpath(folder) != folder:
            return False
        real.add(folder)
    return True
