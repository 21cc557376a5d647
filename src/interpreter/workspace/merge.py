"""Changes that were made in a copy of a workspace, brought into the workspace itself."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from interpreter.errors import UndoError
from interpreter.workspace.diff import Changes, difference
from interpreter.workspace.restore import Kept, Restoration, Step, Way, steps
from interpreter.workspace.snapshot import Workspace
from interpreter.workspace.store import Images, clone, copy, hash_of
from interpreter.workspace.tree import Item, Pair, alike, installed, item_from, key_of, standing

if TYPE_CHECKING:
    from interpreter.workspace.record import FileRecord


def copy_tree(source: Path, target: Path) -> None:
    """A copy of a folder with everything in it but sockets, pipes and devices; blocks are shared where that can be.

    Virtual environments and the like are large, and their programs know where they are: they are linked to.
    """
    shutil.copytree(source, target, symlinks=True, copy_function=_copy, ignore=_left_out)
    for folder, names, _ in os.walk(source):
        for name in [name for name in names if _is_installed(os.path.join(folder, name))]:
            names.remove(name)
            os.symlink(os.path.join(folder, name), target / os.path.relpath(folder, source) / name)


def merge_steps(base: dict[str, Item], copied: FileRecord, workspace: Workspace) -> list[Step]:
    """What has to be done to the workspace; a step drifts where the workspace itself has changed since the copy.

    `base` is what the copy was in the beginning.
    """
    now, images = copied.items, copied.images
    pairs = {path: (base.get(path), now.get(path)) for path in {*base, *now}}
    ways = {path: Way(*pair, broken=False) for path, pair in pairs.items() if not alike(*pair)}
    real: set[str] = set()
    return [
        step
        for step in steps(ways, lambda path: workspace.now(path, real), lambda item: _is_stored(item, images))
        if step.repository is None and not (step.want is not None and step.want.kind == "folder" and step.now)
    ]


def merge(
    found: list[Step], images: Images, workspace: Workspace, overwrite: Collection[str] = ()
) -> tuple[list[str], list[Kept]]:
    """Do it; the paths that are as in the copy now, and those that were left, with the reason."""
    kept = [Kept(step.path, "it was changed here as well", drift=True) for step in found if step.drift]
    kept = [each for each in kept if each.path not in overwrite]
    kept += [Kept(step.path, step.impossible) for step in found if step.impossible]
    left = {each.path for each in kept}
    chosen = [step for step in found if step.path not in left]
    act = Restoration(workspace.root, images, secrets.token_hex(4), lambda item, changing: None)
    act.run(chosen)
    troubles = {**act.left, **act.failed}
    kept += [Kept(path, why) for path, why in troubles.items()]
    return [step.path for step in chosen if step.path not in troubles], kept


def _is_stored(item: Item, images: Images) -> bool:
    return item.content in images if item.kind == "file" else item.restorable


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as old, open(target, "wb") as new:
        if not clone(old, new):
            shutil.copyfileobj(old, new, 1024 * 1024)
    shutil.copystat(source, target)


def _left_out(folder: str, names: list[str]) -> list[str]:
    paths = {name: os.path.join(folder, name) for name in names}
    return [name for name, path in paths.items() if not os.path.islink(path) and _is_special(path)]


def _is_special(path: str) -> bool:
    return not os.path.isfile(path) and (not os.path.isdir(path) or _is_installed(path))


def _is_installed(path: str) -> bool:
    return not os.path.islink(path) and installed(path, os.listdir(path)) is not None


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


DRIFT = "somebody else has changed it since the preview began"


@dataclass(frozen=True)
class Written:
    """What became of the changes of a preview."""

    paths: tuple[str, ...] = ()
    """Written or deleted."""
    kept: tuple[Kept, ...] = ()
    """Left as they are, and why."""
    failed: tuple[Kept, ...] = ()
    """What the system refused."""

    def __add__(self, other: Written) -> Written:
        return Written(self.paths + other.paths, self.kept + other.kept, self.failed + other.failed)


class Contents(Images):
    """The contents of a layer, read where they are."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(Path(layer.upper))
        self._layer = layer

    def write_to(self, content: str, target: BinaryIO) -> None:
        path = self._layer.contents.get(content)
        if path is None:
            raise UndoError("its content cannot be read")
        with open(path, "rb") as source:
            if copy(source, target) != content:
                raise UndoError("its content has changed since it was shown")


def write(layer: Layer, overwrite: Collection[str] = (), name: str = "") -> Written:
    """Write what a layer says; `name` goes before each path in the report."""
    steps, kept = [], []
    real: set[str] = set()
    for path, (before, after) in sorted(layer.changes.pairs.items()):
        now = standing(layer.root, path, real)
        moved = path in layer.moved or not as_found(now, before)
        if moved and path not in overwrite and name + path not in overwrite:
            kept.append(Kept(name + path, DRIFT, drift=True))
        elif after is not None and after.kind == "other" and not after.restorable:
            kept.append(Kept(name + path, f"a {after.content} cannot be copied"))
        else:
            steps.append(Step(path, before, now if moved else before, adapted(before, after)))
    act = Restoration(layer.root, Contents(layer), secrets.token_hex(4), lambda *_: None)
    act.run(steps)
    written = [step for step in steps if step.path not in act.left and step.path not in act.failed]
    for step in written:
        if step.want is not None:
            give_owner(os.path.join(layer.upper, step.path), os.path.join(layer.root, step.path))
    done = tuple(name + step.path for step in written)
    left = tuple(Kept(name + path, why) for path, why in act.left.items())
    return Written(done, (*kept, *left), tuple(Kept(name + path, why) for path, why in act.failed.items()))


def give_owner(source: str, target: str) -> None:
    """Let root's blocks leave the owners of files as they would have."""
    try:
        wanted, facts = os.lstat(source), os.lstat(target)
        if (wanted.st_uid, wanted.st_gid) != (facts.st_uid, facts.st_gid):
            os.chown(target, wanted.st_uid, wanted.st_gid, follow_symlinks=False)
            if not stat.S_ISLNK(facts.st_mode):
                os.chmod(target, stat.S_IMODE(facts.st_mode))  # a change of owner takes some bits away
    except OSError:
        pass  # nobody but root may


def as_found(now: Item | None, before: Item | None) -> bool:
    """Is it the very thing that the preview found?"""
    if now is None or before is None:
        return now is before
    return now.kind == before.kind and now.inode == before.inode and now[2:4] == before[2:4]


def adapted(before: Item | None, after: Item | None) -> Item | None:
    """Where the content is as it was, the file stays the same one, and gets another mode or time."""
    if before is None or after is None or before.kind != after.kind or before.content != after.content:
        return after
    return after._replace(inode=before.inode)
