"""Which steps of a plan are done, and which are left: what is somebody else's is only touched on request."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from interpreter.workspace.changes import Kept
from interpreter.workspace.items import (
    Item,
    alike,
    packed,
    same,
    unpacked,
)
from interpreter.workspace.plan import (
    Plan,
    Repository,
    Step,
)
from interpreter.workspace.workspace import Workspace

_LASTING = {"HEAD", "config", "description", "hooks", "info", "info/exclude", "objects", "refs"}
"""What is in a `.git` folder as long as it is one."""


def chosen(plan: Plan, overwrite: Collection[str], repositories: Collection[str]) -> tuple[list[Step], list[Kept]]:
    """The steps that are to be done; the others with the reason why not."""
    units = {each.folder: each for each in plan.repositories}
    done, kept = [], []
    for step in plan.steps:
        unit = units.get(step.repository or "")
        if step.impossible:
            kept.append(Kept(step.path, step.impossible, step.drift))
        elif unit is None and step.drift and step.path not in overwrite:
            kept.append(Kept(step.path, "somebody else changed it after the block", drift=True))
        elif unit is not None and (why := _left(unit, overwrite, repositories)):
            kept.append(Kept(step.path, why, unit.in_use))
        elif unit is None or not unit.in_use or not _is_object(step):
            done.append(step)
    return done, kept


def repositories(found: list[Step], workspace: Workspace, touched: Collection[str]) -> Iterator[Repository]:
    """The `.git` folders in which something is to be done."""
    for folder in sorted({step.repository for step in found if step.repository}):
        ours = [step for step in found if step.repository == folder]
        itself = next((step for step in ours if step.path == folder), None)
        goes = itself is not None and itself.want is None
        comes = (itself is not None and itself.now is None) or any(map(_is_torn_out, ours))
        in_use = folder in touched or any(step.drift or step.impossible for step in ours) or _locked(folder, workspace)
        if goes:
            leaving = {step.path for step in ours if step.want is None}
            in_use |= any(path not in leaving for path in workspace.items if path.startswith(f"{folder}/"))
        yield Repository(folder, comes or goes, in_use)


def intent(plan: Plan, steps: list[Step]) -> dict[str, Any]:
    """What is going to be done, for the case that it is cut off."""
    told = [[step.path, packed(step.now), packed(step.want), step.source] for step in steps]
    facts = {"direction": plan.direction, "blocks": list(plan.blocks), "position": plan.position}
    return {**facts, "token": secrets.token_hex(4), "steps": told}


def remaining(told: dict[str, Any], workspace: Workspace) -> tuple[list[Step], list[Kept]]:
    """What an undo that was cut off has not done."""
    rest, kept = [], []
    for path, was, wanted, source in told["steps"]:
        step = Step(path, None, unpacked(was), unpacked(wanted), source=source)
        now = workspace.now(path)
        if same(now, step.want):
            continue
        if not alike(now, step.now) and not _half_done(now, step.want):
            kept.append(Kept(path, "somebody else changed it meanwhile", drift=True))
            continue
        lost = source is not None and workspace.now(source) is None
        rest.append(replace(step, now=now, source=None if lost else source))
    return rest, kept


def _left(unit: Repository, overwrite: Collection[str], named: Collection[str]) -> str | None:
    if not unit.comes_or_goes and unit.folder not in named:
        return "git's own files are left alone"
    if unit.in_use and unit.folder not in overwrite:
        return "somebody else has worked in the repository since"
    return None


def _is_object(step: Step) -> bool:
    """Is it a part of a commit that should go? A later one may stand on it; git removes what nothing stands on."""
    return step.want is None and step.path.startswith(f"{step.repository}/objects/")


def _is_torn_out(step: Step) -> bool:
    """Is it gone, and git itself never removes it? Then a deletion of the whole folder was cut off."""
    inside = step.path.removeprefix(f"{step.repository}/")
    return step.now is None and step.want is not None and (inside in _LASTING or inside.startswith("hooks/"))


def _locked(folder: str, workspace: Workspace) -> bool:
    try:
        return any(name.endswith(".lock") for name in os.listdir(workspace.full(folder)))
    except OSError:
        return False


def _half_done(now: Item | None, want: Item | None) -> bool:
    """Did the undo that was cut off leave it like this?"""
    if now is None or want is None:
        return now is None  # it had made room, or had deleted it
    if now.kind == "folder":
        return want.kind == "folder"
    return now.kind == want.kind and now.content == want.content
