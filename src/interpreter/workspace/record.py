"""The file record: what each block did to the workspace, taken back and done again."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from interpreter.errors import UndoError
from interpreter.workspace import choice, lines
from interpreter.workspace.block_record import BlockRecord
from interpreter.workspace.changes import (
    Changes,
    Kept,
    Report,
)
from interpreter.workspace.coverage import NotCovered
from interpreter.workspace.items import (
    Item,
    Pair,
    packed,
)
from interpreter.workspace.ledger import BlockFiles, pass_blocks
from interpreter.workspace.plan import (
    Direction,
    Plan,
    Step,
    composed,
    steps,
)
from interpreter.workspace.restore import Restoration, clear_passing


class FileRecord(BlockRecord):
    """The record of a workspace, with the way back and forth."""

    # -- taking back -----------------------------------------------------------------------------------------------

    def plan_undo(self, count: int = 1, *, since: str | int | None = None) -> Plan:
        """What would be restored by taking back the last blocks, or that block and all after it."""
        with self._lock, self._hold:
            self._settle()
            if since is not None:
                count = self._position - self._index(str(since), 0, self._position)
            if not 0 < count <= self._position:
                raise UndoError(f"There are {self._position} blocks to undo, not {count}.")
            chosen = self._blocks[self._position - count : self._position]
            return self._plan("undo", chosen[::-1], self._position - count)

    def plan_redo(self, count: int = 1, *, until: str | int | None = None) -> Plan:
        """What would be restored by doing the next blocks again, or all up to that one."""
        with self._lock, self._hold:
            self._settle()
            if until is not None:
                count = self._index(str(until), self._position, len(self._blocks)) - self._position + 1
            left = len(self._blocks) - self._position
            if not 0 < count <= left:
                raise UndoError(f"There are {left} blocks to redo, not {count}.")
            chosen = self._blocks[self._position : self._position + count]
            return self._plan("redo", chosen, self._position + count)

    def undo(
        self, plan: Plan | None = None, overwrite: Collection[str] = (), repositories: Collection[str] = ()
    ) -> Report:
        """Do what a plan says; without one, take back the last block.

        What somebody else has changed is left alone, unless its path is in `overwrite`; `.git` folders are, unless
        they are in `repositories`.
        """
        return self._carry_out(plan or self.plan_undo(), overwrite, repositories)

    def redo(
        self, plan: Plan | None = None, overwrite: Collection[str] = (), repositories: Collection[str] = ()
    ) -> Report:
        """The same, forwards."""
        return self._carry_out(plan or self.plan_redo(), overwrite, repositories)

    @property
    def unfinished(self) -> bool:
        """Was an undo cut off?"""
        return self._ledger.intent() is not None

    def finish(self) -> Report | None:
        """Do the rest of an undo that was cut off; None if there was none."""
        with self._lock, self._hold:
            intent = self._ledger.intent()
            return self._finish(intent) if intent else None

    # -- asking ----------------------------------------------------------------------------------------------------

    def changes(self, block: str | int) -> Changes | None:
        """What a block changed; None if nothing is known of it."""
        files = next((files for files in reversed(self._blocks) if files.block == str(block)), None)
        return Changes(files.block, files.pairs, off=files.off) if files is not None else None

    def diff(self, block: str | int) -> dict[str, str]:
        """What a block changed, as a difference of lines for each path."""
        pairs = self._blocks[self._index(str(block), 0, len(self._blocks))].pairs
        found = {}
        for change in Changes(str(block), pairs).listed:
            text = lines.difference(change.path, (change.before, change.after), self.content, change.source)
            if text:
                found[change.path] = text
        return found

    def drift_diff(self, step: Step) -> str:
        """From what stands at a path now to what would be restored there."""
        return lines.difference(step.path, (step.now, step.want), lambda item: self._either(step, item))

    def why(self, path: str | Path, line: int | None = None) -> str | None:
        """The block that made a file, or one of its lines, what it is; None if it was no block."""
        full = Path(os.path.abspath(os.path.join(self._workspace.root, path)))
        name = os.path.relpath(os.path.realpath(full.parent), self._workspace.root)
        relative = os.path.normpath(os.path.join(name, full.name))
        try:
            data = full.read_bytes() if line is not None else None
        except OSError:
            return None
        return lines.author(relative, line, self._blocks[: self._position], data, self.content)

    def content(self, item: Item) -> bytes | None:
        """What a file held, None if that is not stored."""
        if item.kind != "file" or item.content is None or item.content not in self.images:
            return None
        return self.images.read(item.content)

    # -- inside: taking back -----------------------------------------------------------------------------------------

    def _index(self, block: str, start: int, end: int) -> int:
        for index in reversed(range(start, end)):
            if self._blocks[index].block == block:
                return index
        raise UndoError(f"Nothing is known about the files of block {block}.")

    def _plan(self, direction: Direction, chosen: list[BlockFiles], position: int) -> Plan:
        self._see()
        real: set[str] = set()
        found = steps(composed(_maps(direction, chosen)), lambda path: self._workspace.now(path, real), self._stored)
        first = min(position, self._position)
        foreign = {folder for folder, blocks in self._touched.items() if blocks > first}
        units = tuple(choice.repositories(found, self._workspace, foreign))
        off = tuple(NotCovered(f"block {files.block}", files.off) for files in chosen if files.off)
        return Plan(direction, tuple(files.block for files in chosen), position, tuple(found), units, off, self._stamp)

    def _carry_out(self, plan: Plan, overwrite: Collection[str], repositories: Collection[str]) -> Report:
        with self._lock, self._hold:
            if plan.stamp != self._stamp:
                raise UndoError("A block has run since this was planned: plan it again.")
            chosen, kept = choice.chosen(plan, overwrite, repositories)
            saved = {}
            for step in [step for step in chosen if step.drift and step.now and step.now.kind == "file"]:
                try:
                    saved[step.path] = self.images.take(self._workspace.full(step.path)).content
                except OSError as error:
                    chosen.remove(step)
                    kept.append(Kept(step.path, f"it could not be saved first: {error.strerror}", drift=True))
            overwritten = [self._overwritten(plan, step) for step in chosen if step.drift and not step.repository]
            intent = {**choice.intent(plan, chosen), "overwritten": overwritten}
            self._ledger.intend(intent)
            report = self._restore(intent, chosen)
            return replace(report, kept=(*kept, *report.kept), saved=saved)

    def _overwritten(self, plan: Plan, step: Step) -> list[Any]:
        """What somebody else has at a path, for the first block of the plan that touched it: it comes back last."""
        passed = list(range(min(plan.position, self._position), max(plan.position, self._position)))
        passed = passed[::-1] if plan.direction == "undo" else passed
        index = next(index for index in passed if step.path in self._blocks[index].pairs)
        return [index, step.path, packed(step.now)]

    def _restore(self, intent: dict[str, Any], chosen: list[Step]) -> Report:
        act = Restoration(self._workspace.root, self.images, intent["token"], self._workspace.twin)
        act.run(chosen, self._breathe)  # if it is broken off there, the rest is done before anything else
        before, self._position = self._position, intent["position"]
        self._stamp += 1
        overwritten = intent.get("overwritten", ())
        pass_blocks(self._blocks, before, self._position, overwritten)
        self._ledger.moved(self._position, overwritten)
        if act.failed:
            self._ledger.intend(intent)  # on a full disk, there was perhaps no room for it before
        else:
            self._ledger.done()
        self._see(own=True)
        restored = tuple(step.path for step in chosen if step.path not in act.left and step.path not in act.failed)
        kept = tuple(Kept(path, why) for path, why in act.left.items())
        failed = tuple(Kept(path, why) for path, why in act.failed.items())
        return Report(intent["direction"], tuple(intent["blocks"]), restored, kept, failed)

    def _finish(self, intent: dict[str, Any]) -> Report:
        clear_passing(self._workspace.root, [fields[0] for fields in intent["steps"]], intent["token"])
        rest, kept = choice.remaining(intent, self._workspace)
        report = self._restore(intent, rest)
        return replace(report, kept=(*kept, *report.kept))

    def _either(self, step: Step, item: Item) -> bytes | None:
        if item is not step.now:
            return self.content(item)
        try:
            return Path(self._workspace.full(step.path)).read_bytes()
        except OSError:
            return None


def _maps(direction: Direction, chosen: list[BlockFiles]) -> list[dict[str, Pair]]:
    """What each block did, or its opposite; and then what somebody else had made of it before it was overwritten."""
    maps: list[dict[str, Pair]] = []
    last: dict[str, Pair] = {}
    for files in chosen:
        pairs = _turned(files.pairs) if direction == "undo" else files.pairs
        back = files.overwritten.get(direction, {})
        last = {path: pair for path, pair in last.items() if path not in pairs}
        last |= {path: (pairs[path][1], item) for path, item in back.items()}
        maps.append(pairs)
    return [*maps, last]


def _turned(pairs: dict[str, Pair]) -> dict[str, Pair]:
    return {path: (new, old) for path, (old, new) in pairs.items()}
