"""Copy a workspace for a fork, and merge the changes of the copy."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from interpreter.host.files import Folder
from interpreter.workspace.record import FileRecord
from interpreter.workspace.restore import Kept, Restoration, Step, Written, plan_steps
from interpreter.workspace.snapshot import FileSnapshot
from interpreter.workspace.store import ContentStore, clone, copy
from interpreter.workspace.tree import Item, alike, installed


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder with everything in it but sockets, pipes and devices, sharing disk blocks if possible.

    Virtual environments and the like become links: they are large, and their programs know where they are.
    """
    target.mkdir(parents=True)
    made: dict[str, os.stat_result] = {}
    with Folder(source) as old, Folder(target) as new:
        pending = [""]
        while pending:
            path = pending.pop()
            facts = old.stat(path)
            if stat.S_ISDIR(facts.st_mode):
                names = old.listdir(path)
                if path and installed(path, names):
                    new.symlink(os.path.join(source, path), path)
                    continue
                if path:
                    new.mkdir(path, 0o700)
                made[path] = facts
                pending += [os.path.join(path, name) for name in names]
            elif stat.S_ISLNK(facts.st_mode):
                new.symlink(old.readlink(path), path)
                new.utime(path, (facts.st_atime_ns, facts.st_mtime_ns))
            elif stat.S_ISREG(facts.st_mode):
                with old.open(path, buffering=0) as file, new.open(path, "xb", 0o600, buffering=0) as written:
                    if not clone(file, written):
                        copy(file, written)
                made[path] = facts
        for path, facts in reversed(made.items()):  # folders after their contents
            new.chmod(path, stat.S_IMODE(facts.st_mode))
            new.utime(path, (facts.st_atime_ns, facts.st_mtime_ns))


def merge_steps(base: dict[str, Item], copied: FileRecord, snapshot: FileSnapshot) -> list[Step]:
    """Plan how to bring the changes of a copy into the workspace.

    `base` is the copy as it was in the beginning. A step has drift if the workspace itself has changed since.
    """
    now = copied.items
    pairs = {path: (base.get(path), now.get(path)) for path in {*base, *now}}
    changes = {path: pair for path, pair in pairs.items() if not alike(*pair)}
    return [
        step
        for step in plan_steps([changes], snapshot, copied.store)
        if step.repository is None and not (step.want is not None and step.want.kind == "folder" and step.now)
    ]


def merge(steps: list[Step], store: ContentStore, folder: Folder, overwrite: Collection[str] = ()) -> Written:
    """Apply the steps. Files that were changed in both places are left alone, unless they are in `overwrite`."""
    drifted = [step for step in steps if step.drift and step.path not in overwrite]
    kept = [Kept(step.path, "it was also changed here", drift=True) for step in drifted]
    kept += [Kept(step.path, step.impossible) for step in steps if step.impossible]
    left = {each.path for each in kept}
    written = Restoration(folder, store.write_to).run([step for step in steps if step.path not in left])
    return replace(written, kept=(*kept, *written.kept))
