"""The workspace as it was last seen, with a stored copy of every content within the limits."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from interpreter.workspace.store import Images, hash_of
from interpreter.workspace.tree import (
    Item,
    Key,
    Pair,
    Scan,
    TooMany,
    differing,
    is_fresh,
    item_from,
    key_of,
    scan,
    standing,
)

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """How much is copied at most; what is over a limit is not covered, and that is said."""

    file_bytes: int = 64 * MEGABYTE
    """A larger file is not covered."""
    total_bytes: int = 512 * MEGABYTE
    """With more than this at the start, file undo is off; files that come later and do not fit are not covered."""
    files: int = 50_000
    """With more than this at the start, file undo is off."""
    blocks: int = 1000
    """So many blocks can be taken back; older ones are forgotten."""

    @property
    def stored_bytes(self) -> int:
        """With more copies than this, the oldest blocks are forgotten."""
        return 2 * self.total_bytes

    @property
    def scanned(self) -> int:
        """So many entries are looked at when a block has made many: just that block should be undone."""
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
    """What would be restored if the block that comes next is undone."""

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
        """What a person should be told before the block runs; nothing new, no words."""
        words = []
        if self.off and self.off_is_news:
            words.append(f"File undo is off: {self.off}")
        if self.news:
            more = f" and {len(self.news) - 5} more" if len(self.news) > 5 else ""
            words.append("not covered: " + ", ".join(map(str, self.news[:5])) + more)
        if self.trouble:
            words.append(f"File undo will not outlive this session: {self.trouble}")
        return words

    def after(self, ahead: Coverage) -> Coverage:
        """The same, with what an earlier look has copied."""
        files, size = self.copied_files + ahead.copied_files, self.copied_bytes + ahead.copied_bytes
        return replace(self, copied_files=files, copied_bytes=size, seconds=self.seconds + ahead.seconds)

    @property
    def cost(self) -> str:
        """What was copied, in words."""
        size = size_in_words(self.copied_bytes)
        return f"{self.copied_files:,} files, {size} copied for undo in {self.seconds:.1f} s"


def refusal(workspace: Path) -> str | None:
    """Why there is no file undo in this folder, if that is so; limits aside."""
    home = Path(os.path.expanduser("~")).resolve()
    advice = "Name a smaller folder as the workspace."
    if workspace == Path(workspace.anchor):
        return f"the workspace is the whole disk. {advice}"
    if workspace == home:
        return f"the workspace is your home folder. {advice}"
    if workspace in home.parents:
        return f"the workspace has your home folder in it. {advice}"
    return None


def size_in_words(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


class Overfull(Exception):
    """More is in the workspace than the limits allow."""


class Workspace:
    """Looks at the tree again and again, and stores what it has not seen before."""

    def __init__(
        self,
        root: Path,
        images: Images,
        limits: Limits,
        skip: Iterable[Path] = (),
        breathe: Callable[[], None] = lambda: None,
    ) -> None:
        self.root = str(root)
        self._images, self._limits = images, limits
        self._breathe = breathe  # called where a look may be broken off
        self._skip = frozenset(_below(root, skip))
        self._scan = Scan()
        self._fresh: set[str] = set()
        self._full = False
        self._by_inode: dict[int, list[str]] | None = None
        self.items: dict[str, Item] = {}
        self.not_covered: dict[str, NotCovered] = {}
        self.files = self.bytes = 0
        self.copied_files = self.copied_bytes = 0

    @property
    def looked(self) -> bool:
        return bool(self._scan.folders)

    def leave_out(self, folder: Path) -> None:
        """Do not look into this folder."""
        self._skip |= frozenset(_below(Path(self.root), [folder]))

    def limit(self, limits: Limits) -> None:
        """Take these limits."""
        self._limits = limits
        self._fresh |= self.not_covered.keys()

    def look(self) -> dict[str, Pair]:
        """What has changed since the last look; all contents that can be stored are stored then."""
        first = not self._scan.folders
        most = self._limits.files if first else self._limits.scanned
        try:
            found = scan(self.root, self._scan, self._skip, most)
        except TooMany:
            raise Overfull(f"there are more than {most:,} files in {self.root}.") from None
        paths = (set(differing(self._scan, found)) | self._fresh) - self._skip
        if first:
            self._check_size(found)
        moved = self._moved(found, paths)
        before = self._scan, self._fresh
        self._scan, self._fresh, self._full, self._by_inode = found, set(), False, None
        self.copied_files = self.copied_bytes = 0
        self._name_closed()
        pairs: dict[str, Pair] = {}
        try:
            self._take_in(sorted(paths), moved, pairs)
        except BaseException:  # Ctrl-C: the next look must find all of it again
            self._scan, self._fresh = before
            for path, (old, _) in pairs.items():
                self._set(path, old)
            raise
        return pairs

    def _take_in(self, paths: list[str], moved: dict[Key, Item], pairs: dict[str, Pair]) -> None:
        for path in paths:
            self._breathe()
            old, new = self.items.get(path), self._item(path, moved)
            if old != new:
                pairs[path] = (old, new)
                self._set(path, new)

    def now(self, path: str, real: set[str] | None = None) -> Item | None:
        """What stands at a path at this moment."""
        stands = standing(self.root, path, set() if real is None else real)
        if stands is None or stands.kind in ("folder", "other"):
            return stands
        if stands.kind == "link":
            return stands._replace(content=os.readlink(self.full(path)))
        known = self.items.get(path)
        unchanged = known is not None and known[:5] == stands[:5] and path not in self._fresh
        if unchanged and key_of(os.lstat(self.full(path))) == self._scan.key(path):
            return known
        return stands._replace(content=self._hash(path, stands, known))

    def twin(self, want: Item, changing: Container[str]) -> str | None:
        """Another name of the very file that is wanted, which is not going to change."""
        if self._by_inode is None:
            self._by_inode = {}
            for path, item in self.items.items():
                self._by_inode.setdefault(item.inode, []).append(path)
        names = (path for path in self._by_inode.get(want.inode, ()) if path not in changing)
        return next((path for path in names if self.items[path] == want and self.now(path) == want), None)

    def full(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root

    # -- one path ------------------------------------------------------------------------------------------------

    def _item(self, path: str, moved: dict[Key, Item]) -> Item | None:
        key = self._scan.key(path)
        self.not_covered.pop(path, None)
        if key is None:
            return None
        if is_fresh(key, time.time_ns()) and not stat.S_ISDIR(key[0]):
            self._fresh.add(path)
        try:
            if stat.S_ISREG(key[0]):
                return moved.get(key) or self._file(path, key)
            item = item_from(key, os.readlink(self.full(path)) if stat.S_ISLNK(key[0]) else None)
        except FileNotFoundError:
            self._fresh.add(path)
            return None
        if not item.restorable:
            self._leave_out(path, f"a {item.content}")
        return item

    def _file(self, path: str, key: Key) -> Item:
        old = self.items.get(path)
        spare = self._limits.total_bytes - self.bytes + (old.size if old is not None and _covered(old) else 0)
        if key[1] > self._limits.file_bytes:
            return self._without_content(path, key, f"larger than {size_in_words(self._limits.file_bytes)}", key[1])
        if key[1] > spare:
            return self._without_content(path, key, "more than may be stored in all", key[1])
        if self._full:
            self._fresh.add(path)
            return self._without_content(path, key, "no room for a copy")
        try:
            taken = self._images.take(self.full(path))
        except FileNotFoundError:
            raise
        except OSError as error:
            return self._untaken(path, key, old, error)
        if taken.stored:
            self.copied_files += 1
            self.copied_bytes += taken.stored
        return item_from(taken.key, taken.content)

    def _untaken(self, path: str, key: Key, old: Item | None, error: OSError) -> Item:
        if error.errno in _NO_ROOM or error.filename not in (None, self.full(path)):
            self._full = True
            self._fresh.add(path)
            return self._without_content(path, key, f"no copy could be stored: {error.strerror}")
        if _covered(old) and old is not None and (old.size, old.mtime_ns, old.inode) == (key[1], key[2], key[4]):
            return item_from(key, old.content)  # it was closed to us, but not written
        return self._without_content(path, key, "may not be read")

    def _without_content(self, path: str, key: Key, why: str, size: int | None = None) -> Item:
        self._leave_out(path, why, size)
        return item_from(key, None)

    def _leave_out(self, path: str, why: str, size: int | None = None) -> None:
        self.not_covered[path] = NotCovered(path, why, size)

    def _hash(self, path: str, stands: Item, known: Item | None) -> str | None:
        if stands.size > self._limits.file_bytes:
            return None
        try:
            return hash_of(self.full(path))
        except OSError:
            same_file = known is not None and known[2:5] == stands[2:5]
            return known.content if known is not None and same_file else None

    # -- all of it -----------------------------------------------------------------------------------------------

    def _set(self, path: str, item: Item | None) -> None:
        old = self.items.pop(path, None)
        for sign, each in ((-1, old), (1, item)):
            if _covered(each) and each is not None:
                self.files += sign
                self.bytes += sign * each.size
        if item is not None:
            self.items[path] = item

    def take_over(self, items: dict[str, Item]) -> None:
        """Begin with the tree as it was once seen; the next look finds what is different."""
        for path, item in items.items():
            self._set(path, item)
        self._fresh = set(items)

    def _check_size(self, scan: Scan) -> None:
        keys = (key for folder in scan.folders.values() for key in folder.entries.values() if stat.S_ISREG(key[0]))
        size = sum(key[1] for key in keys if key[1] <= self._limits.file_bytes)
        if size > self._limits.total_bytes:
            most = size_in_words(self._limits.total_bytes)
            raise Overfull(f"there are {size_in_words(size)} in {self.root}, more than {most}.")

    def _name_closed(self) -> None:
        for path in [path for path, each in self.not_covered.items() if path.endswith("/")]:
            del self.not_covered[path]
        for path, why in self._scan.closed.items():
            self._leave_out(f"{path}/", why)

    def _moved(self, scan: Scan, paths: set[str]) -> dict[Key, Item]:
        """Files whose folder got another name: they need not be read again."""
        gone = (path for path in paths - self._fresh if scan.key(path) is None and _covered(self.items.get(path)))
        return {key: self.items[path] for path in gone if (key := self._scan.key(path)) is not None}


def _covered(item: Item | None) -> bool:
    return item is not None and item.kind == "file" and item.content is not None


def _below(root: Path, folders: Iterable[Path]) -> Iterable[str]:
    for folder in folders:
        if folder.resolve().is_relative_to(root):
            yield folder.resolve().relative_to(root).as_posix()
