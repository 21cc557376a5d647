"""The upper layers of a preview's overlay, read as changes and written into the real folders."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import BinaryIO

from interpreter.errors import UndoError
from interpreter.host.files import Folder
from interpreter.workspace.diff import Change, Changes, Parse
from interpreter.workspace.restore import Kept, Restoration, Step, Written
from interpreter.workspace.store import copy, hash_of
from interpreter.workspace.tree import Item, Pair, item_at, item_from, key_of, same, unchanged


class Layer:
    """The upper layer of an overlay over a folder, read as changes of that folder; the folder itself is unchanged.

    Names that begin with `skip` are left out. Paths that are shown or reported get `prefix` in front.
    """

    def __init__(self, root: str, upper: str, began: int, skip: str = "", prefix: str = "") -> None:
        self.root, self.upper, self.began, self.prefix = Folder(root), Folder(upper), began, prefix
        self.drifted: set[str] = set()  # paths that another program changed while the block ran
        self._sources: dict[str, tuple[Folder, str]] = {}  # by the hash of a content, where to read it
        self._skip = skip
        self.changes = Changes("preview", {path: pair for path, pair in self._pairs() if not same(*pair)})

    @property
    def listed(self) -> list[Change]:
        return [
            change._replace(path=self.prefix + change.path, source=change.source and self.prefix + change.source)
            for change in self.changes.listed
        ]

    def diffs(self, data: bool = False, parse: Parse | None = None) -> dict[str, str]:
        """Return the diffs, without the names of renamed files, which `listed` has."""
        diffs = self.changes.diffs(self._read, data, parse)
        texts = {path: re.sub(r"\Arename from .*\nrename to .*\n", "", text) for path, text in diffs.items()}
        return {self.prefix + path: text for path, text in texts.items() if text}

    def write_content(self, content: str, target: BinaryIO) -> None:
        """Write the content with this hash into an empty file. Raises UndoError if it has changed."""
        if content not in self._sources:
            raise UndoError("its content can't be read")
        folder, path = self._sources[content]
        with folder.open(path) as source:
            if copy(source, target) != content:
                raise UndoError("its content has changed since it was shown")

    def _read(self, item: Item) -> bytes | None:
        source = self._sources.get(item.content or "") if item.kind == "file" else None
        try:
            return source[0].read_bytes(source[1]) if source else None
        except OSError:
            return None

    def _pairs(self) -> Iterator[tuple[str, Pair]]:
        # A path in the layer; whether the lower folder could contain it; whether a layer above hides the lower one.
        pending = [("", True, False)]
        while pending:
            path, had_folder, hidden = pending.pop()
            try:
                facts = self.upper.stat(path)
            except OSError:
                continue  # a program in the view is still running
            before = self._item_below(path) if had_folder else None
            is_whiteout = stat.S_ISCHR(facts.st_mode) and facts.st_rdev == 0  # marks a deletion
            yield path, (before, None if is_whiteout else self._item(self.upper, path, facts))
            if not stat.S_ISDIR(facts.st_mode):
                yield from self._gone(path, before)
                continue
            names = []
            with suppress(OSError):  # the folder is gone, or not marked
                if facts.st_mode & 0o500 != 0o500:
                    self.upper.chmod(path, 0o700)  # the block made it unreadable; its mode is noted already
                with self.upper.opened(path) as opened:
                    names = sorted(os.listdir(opened))
                    # A folder marked opaque hides everything in the lower folder.
                    hidden = hidden or os.getxattr(opened, "user.overlay.opaque") == b"y"
            names = [name for name in names if path or not self._skip or not name.startswith(self._skip)]
            if hidden:
                yield from self._gone(path, before, names)
            had_folder = before is not None and before.kind == "folder"
            pending += [(os.path.join(path, name), had_folder, hidden) for name in names]

    def _gone(self, path: str, before: Item | None, keep: Collection[str] = ()) -> Iterator[tuple[str, Pair]]:
        """Yield the deletion of everything in the lower folder at a path, except the names in `keep`."""
        pending = [(path, before, keep)]
        while pending:
            path, before, keep = pending.pop()
            names: list[str] = []
            with suppress(OSError):
                names = self.root.listdir(path) if before is not None and before.kind == "folder" else []
            for name in sorted(set(names) - set(keep)):
                inside = os.path.join(path, name)
                item = self._item_below(inside)
                yield inside, (item, None)
                pending.append((inside, item, ()))

    def _item_below(self, path: str) -> Item | None:
        """Read an item of the lower folder, and note if it changed while the block ran."""
        try:
            facts = self.root.stat(path)
        except OSError:
            return None
        if facts.st_ctime_ns > self.began and not stat.S_ISDIR(facts.st_mode):
            self.drifted.add(path)
        return self._item(self.root, path, facts)

    def _item(self, folder: Folder, path: str, facts: os.stat_result) -> Item:
        content = None
        with suppress(OSError):  # if it may not be read, only its size and time are known
            if stat.S_ISREG(facts.st_mode):
                if folder is self.upper and not facts.st_mode & 0o400:
                    folder.chmod(path, 0o600)  # the block made it unreadable
                with folder.open(path, buffering=0) as file:
                    content = hash_of(file)
                self._sources.setdefault(content, (folder, path))
            elif stat.S_ISLNK(facts.st_mode):
                content = folder.readlink(path)
        return item_from(key_of(facts), content)


def write_layer(layer: Layer, overwrite: Collection[str] = ()) -> Written:
    """Apply the changes of a layer where the folder is still as the preview saw it."""
    steps, kept, prefix = [], [], layer.prefix
    for path, (before, after) in sorted(layer.changes.pairs.items()):
        now = item_at(layer.root, path)
        drifted = path in layer.drifted or not unchanged(now, before)
        if drifted and path not in overwrite and prefix + path not in overwrite:
            kept.append(Kept(prefix + path, "it has been changed since the preview started", drift=True))
        elif after is not None and after.kind == "other" and not after.restorable:
            kept.append(Kept(prefix + path, f"a {after.content} can't be copied"))
        else:
            if before and after and (before.kind, before.content) == (after.kind, after.content):
                after = after._replace(inode=before.inode)  # the same file, with another mode or time
            steps.append(Step(path, now if drifted else before, after))
    written = Restoration(layer.root, layer.write_content).run(steps)
    wanted = {step.path for step in steps if step.want is not None}
    for path in wanted.intersection(written.paths):
        with suppress(OSError):  # only root may restore the owner
            owned, facts = layer.upper.stat(path), layer.root.stat(path)
            if (owned.st_uid, owned.st_gid) != (facts.st_uid, facts.st_gid):
                layer.root.chown(path, owned.st_uid, owned.st_gid)
                if not stat.S_ISLNK(facts.st_mode):
                    layer.root.chmod(path, stat.S_IMODE(facts.st_mode))  # a change of owner clears some mode bits
    kept += [each._replace(path=prefix + each.path) for each in written.kept]
    failed = tuple(each._replace(path=prefix + each.path) for each in written.failed)
    return Written(tuple(prefix + path for path in written.paths), tuple(kept), failed)
