"""Makes a preview real: writes what it wrote, where things are still as the preview found them."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from interpreter.errors import UndoError
from interpreter.workspace.changes import Kept
from interpreter.workspace.images import Images, copy
from interpreter.workspace.items import Item
from interpreter.workspace.overlay.layer import Layer
from interpreter.workspace.plan import Step
from interpreter.workspace.restore import Restoration, standing

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
