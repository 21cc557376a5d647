"""The workspace as last seen, with a copy of every file within the limits; undo covers these."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from interpreter.host.files import Folder
from interpreter.workspace.store import ContentStore, hash_of
from interpreter.workspace.tree import (
    FileTree,
    Item,
    Key,
    Pair,
    installed,
    is_fresh,
    item_from,
    key_of,
)

MEGABYTE = 1024 * 1024
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_SMALL_FILE = 64 * 1024
_TEXTS = (
    ".c .cfg .conf .cpp .css .csv .go .h .html .ini .ipynb .java .js .json .jsonl .md .org .php .py .r .rb .rs .rst "
    ".sh .sql .tex .toml .ts .tsv .txt .xml .yaml .yml"
).split()
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL}  # the path has changed since


# -- what is covered ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SnapshotLimits:
    """How much is copied at most. Files beyond a limit are not covered, which the user is warned about."""

    file_bytes: int = 64 * MEGABYTE  # a larger file is not covered
    # The total size of copies; small files and texts come first, then recent ones.
    total_bytes: int = 512 * MEGABYTE
    files: int = 50_000  # the number of files that are copied
    blocks: int = 1000  # the number of blocks that can be undone; older ones are forgotten

    @property
    def stored_bytes(self) -> int:
        return 2 * self.total_bytes

    @property
    def scanned(self) -> int:
        """Return how many entries are scanned.

        One that is not copied can still be renamed back, or removed if it is new.
        """
        return 5 * self.files


class NotCovered(NamedTuple):
    path: str
    why: str
    bytes: int | None = None

    def __str__(self) -> str:
        name = os.fsencode(self.path).decode("utf-8", "replace")
        return f"{name} ({size_in_words(self.bytes)})" if self.bytes is not None else f"{name} ({self.why})"


@dataclass(frozen=True)
class Coverage:
    """The coverage of an undo of the next block."""

    off: str | None = None  # why nothing is covered, if nothing is
    off_is_news: bool = False
    files: int = 0
    bytes: int = 0  # covered in total
    copied_files: int = 0
    copied_bytes: int = 0
    seconds: float = 0.0  # spent this time
    not_covered: Collection[NotCovered] = ()
    news: tuple[NotCovered, ...] = ()  # those that were not reported before
    waiting: int = 0  # files not copied yet: until then, changes to them can't be undone
    trouble: str | None = None  # why this may not survive a restart, if it may not

    @property
    def sentences(self) -> list[str]:
        """List notices for the user before the block runs; empty if nothing is new."""
        sentences = []
        if self.off and self.off_is_news:
            sentences.append(f"File undo is off: {self.off}")
        if self.news:
            more = ""
            if len(self.news) > 5:
                size = sum(each.bytes or 0 for each in self.news[5:])
                more = f" and {len(self.news) - 5:,} more" + (f" ({size_in_words(size)})" if size else "")
            sentences.append("Undo doesn't cover: " + ", ".join(map(str, self.news[:5])) + more)
        if self.waiting:
            sentences.append(f"Undo doesn't cover {self.waiting:,} files yet: they are still being copied.")
        if self.trouble:
            sentences.append(f"File undo only lasts for this session: {self.trouble}")
        return sentences

    def with_cost_of(self, earlier: Coverage) -> Coverage:
        """Return a copy with the cost of an earlier refresh added."""
        files, size = self.copied_files + earlier.copied_files, self.copied_bytes + earlier.copied_bytes
        return replace(self, copied_files=files, copied_bytes=size, seconds=self.seconds + earlier.seconds)

    @property
    def cost(self) -> str:
        """Say how much was copied, and how long that took."""
        size = size_in_words(self.copied_bytes)
        return f"{self.copied_files:,} files, {size} copied for undo in {self.seconds:.1f} s"


def has_home(root: str) -> bool:
    """Check whether a folder is the home folder or contains it."""
    return os.path.join(os.path.realpath(os.path.expanduser("~")), "").startswith(os.path.join(root, ""))


def left_out(root: str) -> Callable[[str], str | None]:
    """Return a function that says why a folder is left out if the workspace is, or contains, the home folder.

    Programs write their settings there all the time, and an undo must not revert those.
    """
    if not has_home(root):
        return lambda path: None
    start = os.path.join(os.path.relpath(os.path.realpath(os.path.expanduser("~")), root), "").removeprefix("./")

    def why(path: str) -> str | None:
        if not path.startswith(start):
            return None if start.startswith(f"{path}/") else "outside your home folder"
        name = path.removeprefix(start)
        is_settings = name.startswith(".") or name in ("Library", "AppData", "snap")
        return "settings of other programs" if is_settings and "/" not in name else None

    return why


def size_in_words(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


# -- the snapshot ------------------------------------------------------------------------------------------------


class FileSnapshot:
    """What is at each path of the workspace, brought up to date by `refresh`. It starts from `items`, an earlier scan.

    Small files and texts are stored first, then the most recent ones, until the limits are reached.
    """

    def __init__(
        self,
        root: Path,
        store: ContentStore,
        limits: SnapshotLimits,
        items: dict[str, Item],
        skip: Iterable[Path],
        interruption_point: Callable[[], None],
    ) -> None:
        self.root = str(root)
        self._store, self._limits = store, limits
        self._interruption_point = interruption_point  # called where a refresh can stop safely; may raise
        why = left_out(self.root)
        self.tree = FileTree(
            lambda path: self.folder.opened(path), lambda path, names: why(path) or installed(path, names)
        )
        for folder in skip:
            self.skip(folder)
        self._fresh = set(items)  # paths to read again
        self.waiting: dict[str, Key] = {}  # files to store, the most important ones first
        self._untouched: dict[str, None] = {}  # files not changed since the beginning, in the same order
        self._beginning = True
        self._closed: dict[str, str] = {}
        self._full = False
        self._by_inode: dict[int, list[str]] | None = None
        self._folder: Folder | None = None
        self.items: dict[str, Item] = {}
        self.not_covered: dict[str, NotCovered] = {}
        self.files = self.bytes = 0
        self.copied_files = self.copied_bytes = 0
        for path, item in items.items():
            self._set(path, item)

    @property
    def folder(self) -> Folder:
        if self._folder is None:
            self._folder = Folder(self.root)
        return self._folder

    @property
    def is_taken(self) -> bool:
        return bool(self.tree.folders)

    def skip(self, folder: Path) -> None:
        if folder.resolve().is_relative_to(self.root):
            self.tree.leave_out(folder.resolve().relative_to(self.root).as_posix())

    def limit(self, limits: SnapshotLimits) -> None:
        self._limits = limits
        self._fresh |= {path for path in self.not_covered if not path.endswith("/")}

    def refresh(self, seconds: float | None = None) -> dict[str, Pair]:
        """Scan, store all contents that can be stored, and return what has changed since the last time.

        After so many seconds, the rest waits for `store_waiting`.
        """
        self._folder = None  # the workspace may be a different folder now
        self._beginning, tree = not self.is_taken, self.tree
        tree.refresh(self._limits.scanned)
        for path in self._closed.keys() - tree.closed.keys():
            self.not_covered.pop(f"{path}/", None)
        for path, why in tree.closed.items():
            self._not_covered(f"{path}/", why)
        self._closed = dict(tree.closed)
        paths = (tree.changed.keys() | self._fresh) - tree.skip
        # Files in a renamed folder need not be read again.
        gone = ((path, key) for path, key in tree.changed.items() if key is not None and tree.key(path) is None)
        moved = {
            key: self.items[path] for path, key in gone if path not in self._fresh and _covered(self.items.get(path))
        }
        fresh, self._fresh, self._full, self._by_inode = self._fresh, set(), False, None
        self.copied_files = self.copied_bytes = 0
        pairs: dict[str, Pair] = {}
        files: list[tuple[bool, int, str, Key]] = []
        try:
            for path in sorted(paths):
                self._interruption_point()
                key = tree.key(path)
                if key is not None and stat.S_ISREG(key[0]) and key not in moved:
                    # Small files and texts come first, then the most recent ones.
                    comes_later = key[1] > _SMALL_FILE and os.path.splitext(path)[1].lower() not in _TEXTS
                    files.append((comes_later, -key[2], path, key))
                else:
                    self._put(path, self._read(path, key, moved), pairs)
            end = time.monotonic() + seconds if seconds is not None else None
            for number, (_, _, path, key) in enumerate(sorted(files)):
                self._interruption_point()
                is_quick = key[1] > self._limits.file_bytes or is_fresh(key, time.time_ns())
                if end is None or is_quick or time.monotonic() < end:
                    self._put(path, self._read(path, key, moved), pairs)
                else:
                    self.waiting[path] = key
                    self._put(path, item_from(key, None), pairs)
                if self._beginning and _covered(self.items.get(path)):
                    self._untouched[path] = None
                if number % 500 == 0:
                    tree.drain()
        except BaseException:  # after Ctrl-C, the next refresh must see all of it again
            self._fresh = fresh | self._fresh
            for path, (old, _) in pairs.items():
                self._set(path, old)
            raise
        tree.changed.clear()
        tree.drain()
        return pairs

    def store_waiting(self, seconds: float) -> dict[str, Item]:
        """Store more of what waits, and return what was stored.

        A file that has changed since it was seen is skipped.
        """
        stored = {}
        self._beginning, end = True, time.monotonic() + seconds
        for path in list(islice(self.waiting, 1000)):
            self._interruption_point()
            if time.monotonic() >= end:
                break
            key = self.waiting.pop(path)
            with suppress(OSError):
                item = self._store_file(path, key)
                if item.content is not None and key == key_of(self.folder.stat(path)):
                    self._set(path, item)
                    stored[path] = item
                    self._untouched[path] = None
        self.tree.drain()
        return stored

    def cover(self, paths: Iterable[str]) -> dict[str, Item]:
        """Store files that are about to be changed, including large ones, and return what was stored."""
        stored = {}
        for path in paths:
            item = self.items.get(path)
            if item is not None and item.content is None and item.size <= self._limits.total_bytes:
                with suppress(OSError), self.folder.open(path, buffering=0) as file:
                    content, key, _ = self._store.take(file)
                    self.waiting.pop(path, None)
                    self.not_covered.pop(path, None)
                    stored[path] = item_from(key, content)
                    self._set(path, stored[path])
        return stored

    def covers(self, path: str) -> bool:
        """Check whether a change of this path would be undone, according to the last scan."""
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        is_left_out = any(folder in self.tree.closed for folder in folders)
        return not is_left_out and path not in self.not_covered and path not in self.waiting

    def too_large(self) -> str | None:
        """Say why the workspace cannot be copied as a whole; None if it can."""
        if has_home(self.root):
            return "it contains your home folder."
        keys = [key for folder in self.tree.folders.values() for key in folder.values() if stat.S_ISREG(key[0])]
        size, most = sum(key[1] for key in keys), self._limits.total_bytes
        if size > most:
            return f"{self.root} has {size_in_words(size)}, more than {size_in_words(most)}."
        if self.tree.count > self._limits.files:
            return f"{self.root} has more than {self._limits.files:,} files."
        return None

    def now(self, path: str) -> Item | None:
        """Read what is at a path at this moment, hashing the file only if it may have changed."""
        try:
            key: Key = key_of(self.folder.stat(path))
            present = item_from(key, self.folder.readlink(path) if stat.S_ISLNK(key[0]) else None)
        except OSError:
            return None
        if present.kind != "file":
            return present
        known = self.items.get(path)
        unchanged = known is not None and _covered(known) and known[:5] == present[:5] and path not in self._fresh
        if unchanged and key == self.tree.key(path):
            return known
        if present.size > self._limits.file_bytes:
            return present
        try:
            with self.folder.open(path, buffering=0) as file:
                return present._replace(content=hash_of(file))
        except OSError:
            is_same = known is not None and known[2:5] == present[2:5]
            return present._replace(content=known.content) if known is not None and is_same else present

    def hard_link(self, want: Item, changing: Container[str]) -> str | None:
        """Find another name of the wanted file itself that is not going to change; None if there is none."""
        if self._by_inode is None:
            self._by_inode = {}
            for path, item in self.items.items():
                self._by_inode.setdefault(item.inode, []).append(path)
        names = (path for path in self._by_inode.get(want.inode, ()) if path not in changing)
        return next((path for path in names if self.items[path] == want and self.now(path) == want), None)

    # -- one path ------------------------------------------------------------------------------------------------

    def _read(self, path: str, key: Key | None, moved: dict[Key, Item]) -> Item | None:
        """Read what the scan saw at a path, and store its content."""
        self.not_covered.pop(path, None)
        self.waiting.pop(path, None)
        if not self._beginning:
            self._untouched.pop(path, None)
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
        reading = True
        if size > most:
            self._not_covered(path, f"larger than {size_in_words(most)}", size)
        elif not self._has_room(size, old):
            self._not_covered(path, "over the storage limit", size)
        elif self._full:
            self._fresh.add(path)
            self._not_covered(path, "no space for a copy")
        else:
            try:
                with self.folder.open(path, buffering=0) as file:
                    reading = False
                    content, key, stored = self._store.take(file)
            except OSError as error:
                if reading and error.errno in _GONE:
                    raise
                if error.errno in _NO_ROOM or (not reading and error.filename is not None):
                    self._full = True
                    self._fresh.add(path)
                    self._not_covered(path, f"no copy could be stored: {error.strerror}")
                elif old is not None and (old.size, old.mtime_ns, old.inode) == (size, key[2], key[4]):
                    return item_from(key, old.content)  # unreadable now, but unchanged
                else:
                    self._not_covered(path, "may not be read")
            else:
                self.copied_files += bool(stored)
                self.copied_bytes += stored
                return item_from(key, content)
        return item_from(key, None)

    def _has_room(self, size: int, old: Item | None) -> bool:
        """Check for room for one more file; files that have not changed since the beginning give way to it."""
        limits = self._limits
        while True:
            count, total = (self.files, self.bytes) if old is None else (self.files - 1, self.bytes - old.size)
            if count < limits.files and total + size <= limits.total_bytes:
                return True
            if self._beginning or not self._untouched:
                return False
            other, _ = self._untouched.popitem()
            item = self.items.get(other)
            if item is not None and _covered(item):
                self._set(other, item._replace(content=None))
                self._not_covered(other, "over the storage limit", item.size)

    def _not_covered(self, path: str, why: str, size: int | None = None) -> None:
        self.not_covered[path] = NotCovered(path, why, size)

    def _put(self, path: str, item: Item | None, pairs: dict[str, Pair]) -> None:
        old = self.items.get(path)
        if old != item:
            pairs[path] = (old, item)
            self._set(path, item)

    def _set(self, path: str, item: Item | None) -> None:
        for sign, each in ((-1, self.items.pop(path, None)), (1, item)):
            if _covered(each) and each is not None:
                self.files += sign
                self.bytes += sign * each.size
        if item is not None:
            self.items[path] = item


def _covered(item: Item | None) -> bool:
    return item is not None and item.kind == "file" and item.content is not None
