"""One layer of a view: what was written over a folder, read as changes of that folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from interpreter.workspace.changes import Changes
from interpreter.workspace.images import hash_of
from interpreter.workspace.items import (
    Item,
    Pair,
    alike,
    item_from,
)
from interpreter.workspace.lines import difference
from interpreter.workspace.tree import key_of

OPAQUE = "user.overlay.opaque"  # a folder so marked hides all that is below it


class Place(NamedTuple):
    """A path in the layer, and what is known from the folders above it."""

    path: str
    had_folder: bool = True
    """Below the layer there is a folder too, in which it may have stood before."""
    opaque: bool = False
    """Nothing of that folder can be seen."""


class Layer:
    """What stands in the upper layer of an overlay over a folder; nothing of the folder itself has changed."""

    def __init__(self, root: str, upper: str, began: int, skip: str = "") -> None:
        self.root, self.upper, self.began = root, upper, began
        self.contents: dict[str, str] = {}
        """Where a content can be read, by its hash."""
        self.moved: set[str] = set()
        """Paths below which somebody else changed something while the block ran."""
        self._skip = skip
        self.changes = Changes("preview", {path: pair for path, pair in self._pairs() if not same_as_before(pair)})

    def diff(self) -> dict[str, str]:
        """The changes as differences of lines, by path."""
        found = {}
        for change in self.changes.listed:
            text = difference(change.path, (change.before, change.after), self._content, change.source)
            if text:
                found[change.path] = text
        return found

    def _content(self, item: Item) -> bytes | None:
        path = self.contents.get(item.content or "") if item.kind == "file" else None
        try:
            return Path(path).read_bytes() if path else None
        except OSError:
            return None

    # -- reading the layer ---------------------------------------------------------------------------------------

    def _pairs(self) -> Iterator[tuple[str, Pair]]:
        pending = [Place("")]
        while pending:
            place = pending.pop()
            path, full = place.path, os.path.join(self.upper, place.path) if place.path else self.upper
            try:
                facts = os.lstat(full)
            except OSError:
                continue  # something still goes on in the view
            before = self._below(path) if place.had_folder else None
            if is_whiteout(facts):
                yield path, (before, None)
                yield from self._gone(path, before)
                continue
            yield path, (before, self._item(full, facts))
            if not stat.S_ISDIR(facts.st_mode):
                yield from self._gone(path, before)
                continue
            names = self._inside(place, full, facts)
            opaque = place.opaque or is_opaque(full)
            if opaque:
                yield from self._gone(path, before, names)
            had_folder = before is not None and before.kind == "folder"
            pending += [Place(joined(path, name), had_folder, opaque) for name in names]

    def _inside(self, place: Place, full: str, facts: os.stat_result) -> list[str]:
        if facts.st_mode & 0o500 != 0o500:
            open_up(full, 0o700)
        names = sorted(os.listdir(full))
        return [name for name in names if place.path or not self._skip or not name.startswith(self._skip)]

    def _gone(self, path: str, before: Item | None, keep: Collection[str] = ()) -> Iterator[tuple[str, Pair]]:
        """All that was in a folder and is not there any more."""
        if before is None or before.kind != "folder":
            return
        for name in sorted(set(self._names(path)) - set(keep)):
            inside = joined(path, name)
            item = self._below(inside)
            yield inside, (item, None)
            yield from self._gone(inside, item)

    def _names(self, path: str) -> list[str]:
        try:
            return os.listdir(os.path.join(self.root, path))
        except OSError:
            return []

    def _below(self, path: str) -> Item | None:
        """What stands in the folder itself."""
        full = os.path.join(self.root, path) if path else self.root
        try:
            facts = os.lstat(full)
        except OSError:
            return None
        if facts.st_ctime_ns > self.began and not stat.S_ISDIR(facts.st_mode):
            self.moved.add(path)
        return self._item(full, facts)

    def _item(self, full: str, facts: os.stat_result) -> Item:
        content = None
        try:
            if stat.S_ISREG(facts.st_mode):
                if full.startswith(self.upper) and not facts.st_mode & 0o400:
                    open_up(full, 0o600)
                content = hash_of(full)
                self.contents.setdefault(content, full)
            elif stat.S_ISLNK(facts.st_mode):
                content = os.readlink(full)
        except OSError:
            pass  # it may not be read: then nothing can be said about it but its size and time
        return item_from(key_of(facts), content)


def joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def open_up(path: str, mode: int) -> None:
    """Make readable what the block closed to itself: it is in a layer of ours, and its mode is noted."""
    os.chmod(path, mode)


def is_whiteout(facts: os.stat_result) -> bool:
    """Whether this stands for something that was deleted."""
    return stat.S_ISCHR(facts.st_mode) and facts.st_rdev == 0


def is_opaque(folder: str) -> bool:
    try:
        return os.getxattr(folder, OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False


def same_as_before(pair: Pair) -> bool:
    """Is it a mere copy of what is there, made for a change that did not come?"""
    before, after = pair
    if before is None or after is None:
        return before is after
    return alike(before, after) and (before.kind == "folder" or before.mtime_ns == after.mtime_ns)
