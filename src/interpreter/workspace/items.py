"""What stands at a path: a file, a link, a folder, or something else; and whether two of them are the same."""

from __future__ import annotations

import stat
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
