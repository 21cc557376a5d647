"""Changes that were made in a copy of a workspace, brought into the workspace itself."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.workspace.changes import Kept
from interpreter.workspace.images import Images, clone
from interpreter.workspace.items import Item, alike
from interpreter.workspace.plan import (
    Step,
    Way,
    steps,
)
from interpreter.workspace.restore import Restoration
from interpreter.workspace.tree import installed
from interpreter.workspace.workspace import Workspace

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
