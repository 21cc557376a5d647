"""The workspace as it was last seen, with a stored copy of every content within the limits: what undo covers."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from interpreter.host.files import Folder
from interpreter.workspace.store import ContentStore, hash_of
from interpreter.workspace.tree import (
    Item,
    Key,
    Pair,
    Scan,
    TooManyEntries,
    differing,
    is_fresh,
    item_from,
    key_of,
    scan,
)

MEGABYTE = 1024 * 1024
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL}  # something else is there now


# -- what is covered ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """How much is copied at most. What exceeds a limit is not covered, and the user is told."""

    file_bytes: int = 64 * MEGABYTE
    """A larger file is not covered."""
    total_bytes: int = 512 * MEGABYTE
    """With more than this at the start, file undo is off; later files that do not fit are not covered."""
    files: int = 50_000
    """With more than this at the start, file undo is off."""
    blocks: int = 1000
    """So many blocks can be undone; older ones are forgotten."""

    @property
    def stored_bytes(self) -> int:
        """With more copies than this, the oldest blocks are forgotten."""
        return 2 * self.total_bytes

    @property
    def scanned(self) -> int:
        """So many entries are scanned after the first time: a block that made many should still be undoable."""
        return 10 * self.files


class NotCovered(NamedTuple):
    """Something that cannot be restored, and why."""

    path: str
    why: str
    bytes: int | None = None

    def __str__(self) -> str:
        name = os.fsencode(self.path).decode("utf-8", "replace")
        return f"{name} ({size_in_words(self.bytes)})" if self.bytes is not None else f"{name} ({self.why})"


@dataclass(frozen=True)
class Coverage:
    """What undoing the next block would restore."""

    off: str | None = None
    """Why nothing is covered, if that is so."""
    off_is_news: bool = False
    files: int = 0
    bytes: int = 0
    """What is covered in all."""
    copied_files: int = 0
    copied_bytes: int = 0
    seconds: float = 0.0
    """What it cost this time."""
    not_covered: tuple[NotCovered, ...] = ()
    news: tuple[NotCovered, ...] = ()
    """Those of them that were not named before."""
    trouble: str | None = None
    """Why this may not survive a restart, if that is so."""

    @property
    def sentences(self) -> list[str]:
        """What the user should know before the block runs; empty if nothing is new."""
        sentences = []
        if self.off and self.off_is_news:
            sentences.append(f"File undo is off: {self.off}")
        if self.news:
            more = f" and {len(self.news) - 5} more" if len(self.news) > 5 else ""
            sentences.append("not covered: " + ", ".join(map(str, self.news[:5])) + more)
        if self.trouble:
            sentences.append(f"File undo will not outlive this session: {self.trouble}")
        return sentences

    def with_cost_of(self, earlier: Coverage) -> Coverage:
        """The same, with the cost of an earlier refresh added."""
        files, size = self.copied_files + earlier.copied_files, self.copied_bytes + earlier.copied_bytes
        return replace(self, copied_files=files, copied_bytes=size, seconds=self.seconds + earlier.seconds)

    @property
    def cost(self) -> str:
        """What was copied, in words."""
        size = size_in_words(self.copied_bytes)
        return f"{self.copied_files:,} files, {size} copied for undo in {self.seconds:.1f} s"


def refusal(workspace: Path) -> str | None:
    """Why file undo does not work in this folder, if that is so, whatever its size."""
    home = Path(os.path.expanduser("~")).resolve()
    if workspace == Path(workspace.anchor):
        what = "is the whole disk"
    elif workspace == home:
        what = "is your home folder"
    elif workspace in home.parents:
        what = "has your home folder in it"
    else:
        return None
    return f"the workspace {what}. Name a smaller folder as the workspace."


def size_in_words(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


# -- the snapshot ------------------------------------------------------------------------------------------------


class OverLimit(Exception):
    """The workspace has more in it than the limits allow."""


class Snapshot:
    """What is at each path of the workspace, brought up to date by `refresh`."""

    def __init__(
        self,
        root: Path,
        store: ContentStore,
        limits: Limits,
        skip: Iterable[Path] = (),
        interruption_point: Callable[[], None] = lambda: None,
    ) -> None:
        self.root = str(root)
        self._store, self._limits = store, limits
        self._interruption_point = interruption_point  # called where a refresh may be broken off; may raise
        self._skip: frozenset[str] = frozenset()
        for folder in skip:
            self.skip(folder)
        self._scan = Scan()
        self._fresh: set[str] = set()  # paths that have to be read again
        self._full = False
        self._by_inode: dict[int, list[str]] | None = None
        self._folder: Folder | None = None
        self.items: dict[str, Item] = {}
        self.not_covered: dict[str, NotCovered] = {}
        self.files = self.bytes = 0
        self.copied_files = self.copied_bytes = 0

    @property
    def folder(self) -> Folder:
        """The workspace, open."""
        if self._folder is None:
            self._folder = Folder(self.root)
        return self._folder

    @property
    def is_taken(self) -> bool:
        return bool(self._scan.folders)

    def skip(self, folder: Path) -> None:
        """Leave out this folder."""
        if folder.resolve().is_relative_to(self.root):
            self._skip |= {folder.resolve().relative_to(self.root).as_posix()}

    def limit(self, limits: Limits) -> None:
        """Use these limits from now on."""
        self._limits = limits
        self._fresh |= self.not_covered.keys()

    def start_from(self, items: dict[str, Item]) -> None:
        """Begin with the tree as it was once seen; the next refresh finds the differences."""
        for path, item in items.items():
            self._set(path, item)
        self._fresh = set(items)

    def refresh(self) -> dict[str, Pair]:
        """What has changed since the last time; afterwards all contents that can be stored are stored."""
        self._folder = None  # the workspace may be another folder now
        first = not self._scan.folders
        limit = self._limits.files if first else self._limits.scanned
        try:
            found = scan(lambda path: self.folder.opened(path), self._scan, self._skip, limit)
        except TooManyEntries:
            raise OverLimit(f"there are more than {limit:,} files in {self.root}.") from None
        if first:
            self._check_size(found)
        paths = (set(differing(self._scan, found)) | self._fresh) - self._skip
        # Files whose folder was renamed need not be read again.
        gone = (path for path in paths - self._fresh if found.key(path) is None and _covered(self.items.get(path)))
        moved = {key: self.items[path] for path in gone if (key := self._scan.key(path)) is not None}
        before = self._scan, self._fresh
        self._scan, self._fresh, self._full, self._by_inode = found, set(), False, None
        self.copied_files = self.copied_bytes = 0
        self.not_covered = {path: each for path, each in self.not_covered.items() if not path.endswith("/")}
        for path, why in found.closed.items():
            self._not_covered(f"{path}/", why)
        pairs: dict[str, Pair] = {}
        try:
            for path in sorted(paths):
                self._interruption_point()
                old, new = self.items.get(path), self._read(path, moved)
                if old != new:
                    pairs[path] = (old, new)
                    self._set(path, new)
        except BaseException:  # Ctrl-C: the next refresh must find all of it again
            self._scan, self._fresh = before
            for path, (old, _) in pairs.items():
                self._set(path, old)
            raise
        return pairs

    def now(self, path: str) -> Item | None:
        """What is at a path at this moment."""
        try:
            key: Key = key_of(self.folder.stat(path))
            found = item_from(key, self.folder.readlink(path) if stat.S_ISLNK(key[0]) else None)
        except OSError:
            return None
        if found.kind != "file":
            return found
        known = self.items.get(path)
        unchanged = known is not None and known[:5] == found[:5] and path not in self._fresh
        if unchanged and key == self._scan.key(path):
            return known
        if found.size > self._limits.file_bytes:
            return found
        try:
            return found._replace(content=hash_of(self.folder, path))
        except OSError:
            is_same = known is not None and known[2:5] == found[2:5]
            return found._replace(content=known.content) if known is not None and is_same else found

    def hard_link(self, want: Item, changing: Container[str]) -> str | None:
        """Another name of the very file that is wanted, which is not going to change."""
        if self._by_inode is None:
            self._by_inode = {}
            for path, item in self.items.items():
                self._by_inode.setdefault(item.inode, []).append(path)
        names = (path for path in self._by_inode.get(want.inode, ()) if path not in changing)
        return next((path for path in names if self.items[path] == want and self.now(path) == want), None)

    # -- one path ------------------------------------------------------------------------------------------------

    def _read(self, path: str, moved: dict[Key, Item]) -> Item | None:
        """What is at a path as the scan has it; its content is stored."""
        key = self._scan.key(path)
        self.not_covered.pop(path, None)
        if key is None:
            return None
        if is_fresh(key, time.time_ns()) and not stat.S_ISDIR(key[0]):
            self._fresh.add(path)
        try:
            if stat.S_ISREG(key[0]):
                return moved.get(key) or self._store_file(path, key)
            item = item_from(key, self.folder.readlink(path) if stat.S_ISLNK(key[0]) else None)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            self._fresh.add(path)
            return None
        if not item.restorable:
            self._not_covered(path, f"a {item.content}")
        return item

    def _store_file(self, path: str, key: Key) -> Item:
        old, size, most = self.items.get(path), key[1], self._limits.file_bytes
        old = old if _covered(old) else None
        if size > most:
            self._not_covered(path, f"larger than {size_in_words(most)}", size)
        elif size > self._limits.total_bytes - self.bytes + (old.size if old is not None else 0):
            self._not_covered(path, "more than may be stored in all", size)
        elif self._full:
            self._fresh.add(path)
            self._not_covered(path, "no room for a copy")
        else:
            reading = True
            try:
                with self.folder.open(path, buffering=0) as file:
                    reading = False
                    taken = self._store.take(file)
            except OSError as error:
                if reading and error.errno in _GONE:
                    raise
                if error.errno in _NO_ROOM or (not reading and error.filename is not None):
                    self._full = True
                    self._fresh.add(path)
                    self._not_covered(path, f"no copy could be stored: {error.strerror}")
                elif old is not None and (old.size, old.mtime_ns, old.inode) == (size, key[2], key[4]):
                    return item_from(key, old.content)  # it may not be read now, but was not written
                else:
                    self._not_covered(path, "may not be read")
            else:
                if taken.stored:
                    self.copied_files += 1
                    self.copied_bytes += taken.stored
                return item_from(taken.key, taken.content)
        return item_from(key, None)

    def _not_covered(self, path: str, why: str, size: int | None = None) -> None:
        self.not_covered[path] = NotCovered(path, why, size)

    def _set(self, path: str, item: Item | None) -> None:
        old = self.items.pop(path, None)
        for sign, each in ((-1, old), (1, item)):
            if _covered(each) and each is not None:
                self.files += sign
                self.bytes += sign * each.size
        if item is not None:
            self.items[path] = item

    def _check_size(self, found: Scan) -> None:
        keys = (key for folder in found.folders.values() for key in folder.entries.values() if stat.S_ISREG(key[0]))
        size = sum(key[1] for key in keys if key[1] <= self._limits.file_bytes)
        if size > self._limits.total_bytes:
            most = size_in_words(self._limits.total_bytes)
            raise OverLimit(f"there are {size_in_words(size)} in {self.root}, more than {most}.")


def _covered(item: Item | None) -> bool:
    return item is not None and item.kind == "file" and item.content is not None
