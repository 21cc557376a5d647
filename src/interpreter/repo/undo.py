"""Undo in a repository: restores HEAD, branches, index and stash, unless another program has moved them."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from interpreter.host.files import Folder, beneath
from interpreter.session.checkpoints.checkpoint import FolderPlan

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.workspace import FileRecord, RestorePlan, RestoreReport, Step
    from interpreter.workspace.restore import Repository
    from interpreter.workspace.tree import Item

KEPT = "refs/interpreter/undone"  # below it are the commits that an undo took from a branch, HEAD or the stash
_OBJECT = re.compile(rb"[0-9a-f]{40,64}")
_HARMLESS = (KEPT.rpartition("/")[0], "FETCH_HEAD", "refs/remotes", "logs/refs/remotes", "logs/refs/interpreter")
_MAX_BYTES = 64 * 1024 * 1024


def plan_repositories(agent: Agent, files: RestorePlan) -> FolderPlan:
    """Plan to restore each repository that is as the blocks left it. No object is ever deleted."""
    record = agent.timeline.files.required_record()
    lines, notes, folders = list[str](), list[str](), list[str]()
    units, steps = list(files.repositories), list(files.steps)
    for at, unit in enumerate(units):
        ours = [step for step in steps if step.repository == unit.folder]
        if unit.comes_or_goes or agent.computer.machine is not None:
            continue
        moved = _moved_by_others(record, unit, ours, files)
        if moved:
            notes.append(f"{unit.folder} stays as it is: {moved}, outside this session.")
            continue
        steps = [step for step in steps if not _only_deletes_an_object(step, unit.folder)]
        units[at] = unit._replace(in_use=False)
        folders.append(unit.folder)
        lines += _described(record, unit.folder, ours)
    plan = replace(files, steps=tuple(steps), repositories=tuple(units))
    return FolderPlan(plan, tuple(folders), tuple(lines), tuple(notes), _keeping_refs(record.snapshot.root, folders))


def _only_deletes_an_object(step: Step, folder: str) -> bool:
    return step.repository == folder and step.want is None and step.path.startswith(f"{folder}/objects/")


# -- who moved what ------------------------------------------------------------------------------------------------


def _moved_by_others(record: FileRecord, unit: Repository, steps: list[Step], files: RestorePlan) -> str:
    """Say what of a repository is not as the blocks left it, if that matters; else empty."""
    own = {step.path for step in steps}
    names = [step.path for step in steps if step.drift and not _is_same_index(record, step, files)]
    current = _current_ref(record, unit.folder)
    names += [path for path in unit.touched if path not in own and path in (f"{unit.folder}/HEAD", current)]
    names = [name for name in names if not _inside(unit.folder, name).startswith((*_HARMLESS, "objects/", "logs/"))]
    if names:
        shown = dict.fromkeys(map(_spoken, (_inside(unit.folder, name) for name in names)))
        return f"{' and '.join(list(shown)[:3])} changed since"
    if lost := next((step for step in steps if step.impossible), None):
        return f"{lost.path} can't be restored ({lost.impossible}), perhaps because of a change"
    with suppress(OSError):
        if any(name.endswith(".lock") for name in record.snapshot.folder.listdir(unit.folder)):
            return "git is running in it"
    return ""


def _inside(folder: str, path: str) -> str:
    return path.removeprefix(f"{folder}/")


def _spoken(name: str) -> str:
    known = {"HEAD": "HEAD", "index": "the index", "refs/stash": "the stash", "config": "the configuration"}
    return known.get(name) or (f"the branch {name[11:]}" if name.startswith("refs/heads/") else name)


def _current_ref(record: FileRecord, folder: str) -> str:
    with suppress(OSError):
        head = record.snapshot.folder.read_bytes(f"{folder}/HEAD", 4096).decode("utf-8", "replace")
        return f"{folder}/{head.removeprefix('ref: ').strip()}"
    return ""


def _is_same_index(record: FileRecord, step: Step, files: RestorePlan) -> bool:
    """Check whether an index was only refreshed, as `git status` does: the same files with the same contents."""
    if PurePosixPath(step.path).name != "index" or step.now is None:
        return False
    left = _as_left(record, step.path, files)
    now, then = (_read(record, step.path), record.content(left) if left is not None else None)
    return now is not None and then is not None and index_entries(now) == index_entries(then)


def _as_left(record: FileRecord, path: str, files: RestorePlan) -> Item | None:
    """Return what the blocks of a plan had left at a path."""
    for block in files.blocks:  # an undo begins with the last one
        changes = record.changes(block)
        if changes is not None and path in changes.pairs:
            before, after = changes.pairs[path]
            return after if files.direction == "undo" else before
    return None


def _read(record: FileRecord, path: str) -> bytes | None:
    with suppress(OSError):
        return record.snapshot.folder.read_bytes(path, _MAX_BYTES)
    return None


def index_entries(data: bytes) -> list[bytes] | None:
    """List the entries of an index without what `stat` says about the files; None for a rare form (version 4)."""
    if len(data) < 12 or data[:4] != b"DIRC" or (version := struct.unpack(">I", data[4:8])[0]) not in (2, 3):
        return None
    entries, at = [], 12
    for _ in range(struct.unpack(">I", data[8:12])[0]):
        flags = struct.unpack(">H", data[at + 60 : at + 62])[0] if at + 62 <= len(data) else 0
        start = at + (64 if version == 3 and flags & 0x4000 else 62)
        end = data.find(b"\0", start)
        if end < 0:
            return None
        entries.append(data[at + 24 : at + 28] + data[at + 40 : end])  # mode, object, flags, name
        at += (end - at + 8) // 8 * 8
    return entries


# -- what happens --------------------------------------------------------------------------------------------------


def _described(record: FileRecord, folder: str, steps: list[Step]) -> Iterator[str]:
    """Describe what of a repository goes back."""
    for step in steps:
        name = _inside(folder, step.path)
        if name == "HEAD" or name == "refs/stash" or name.startswith("refs/heads/"):
            contents = [_value(record, item) for item in (step.now, step.want)]
            spoken = _spoken(name)
            yield f"{folder}: {spoken} goes from {contents[0]} to {contents[1]}"
        elif name == "index":
            yield f"{folder}: the index is restored"


def _value(record: FileRecord, item: Item | None) -> str:
    if item is None:
        return "nothing"
    data = (record.content(item) or b"?").decode("utf-8", "replace").strip()
    return data.removeprefix("ref: refs/heads/") if data.startswith("ref: ") else data[:7]


def _keeping_refs(root: str, folders: list[str]) -> Callable[[Callable[[], RestoreReport]], RestoreReport]:
    """Return a function that restores, and then adds a ref to each commit that has lost its last one."""

    def carry_out(restore: Callable[[], RestoreReport]) -> RestoreReport:
        before = {folder: _heads(root, folder) for folder in folders}
        report = restore()
        moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        for folder, values in before.items():
            after = set(_heads(root, folder).values())
            dropped = {name: value for name, value in values.items() if value not in after}
            with suppress(OSError), Folder(os.path.join(root, folder)) as place:
                for name, value in dropped.items():
                    path = f"{KEPT}/{moment}/{name.rpartition('/')[2]}"
                    place.mkdir(path.rpartition("/")[0], parents=True, exist_ok=True)
                    place.write_bytes(path, value + b"\n")
        return report

    return carry_out


def _heads(root: str, folder: str) -> dict[str, bytes]:
    """Return the commits that HEAD, the branches and the stash of a repository name."""
    values: dict[str, bytes] = {}
    with suppress(OSError):
        place, name = beneath(root, folder)
        with place:
            values = dict(refs_in(place, name))
    return values


def refs_in(place: Folder, folder: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and objects of HEAD, the branches and the stash; loose ones come after packed ones."""
    with suppress(OSError):
        for line in place.read_bytes(f"{folder}/packed-refs", _MAX_BYTES).splitlines():
            packed, _, ref = line.partition(b" ")
            if ref.startswith(b"refs/heads/") and _OBJECT.fullmatch(packed):
                yield os.fsdecode(ref), packed
    pending = ["HEAD", "refs/stash", "refs/heads"]
    while pending:
        name = pending.pop()
        with suppress(OSError):
            if place.is_dir(f"{folder}/{name}"):
                pending += [f"{name}/{each}" for each in place.listdir(f"{folder}/{name}")]
            elif _OBJECT.fullmatch(value := place.read_bytes(f"{folder}/{name}", 200).strip()):
                yield name, value
