"""The file record: what each block did to the workspace, taken back and done again."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from interpreter.errors import UndoError
from interpreter.safety import choice, lines
from interpreter.safety.changes import Changes, Kept, Report
from interpreter.safety.coverage import Coverage, Limits, NotCovered, refusal
from interpreter.safety.images import Images
from interpreter.safety.interrupts import Hold
from interpreter.safety.items import Item, Pair, alike, same
from interpreter.safety.ledger import BlockFiles, Ledger, clamped, touched
from interpreter.safety.plan import Direction, Plan, Step, composed, steps
from interpreter.safety.restore import Restoration, clear_passing
from interpreter.safety.stores import IMAGES, carry, contents_of, oldest_kept
from interpreter.safety.workspace import Overfull, Workspace


class Abandoned(Exception):
    """Nobody wants to know any more."""


class FileRecord:
    """Knows the files of a workspace before and after each block.

    Call `before` when a block is about to run and `after` when it has ended, whatever ended it. Everything is kept in
    `store_folder`, so that a record can be opened again after a restart. `prepare` may be called from another thread
    to have the first copy made in the background.
    """

    def __init__(
        self,
        workspace: str | Path,
        store_folder: str | Path,
        limits: Limits | None = None,
        exclude: Iterable[str | Path] = (),
    ) -> None:
        root, folder = Path(workspace).resolve(), Path(store_folder).resolve()
        self.folder, self.limits = folder, limits or Limits()
        self.images = Images(folder / IMAGES)
        self._ledger = Ledger(folder)
        self._lock, self._hold = threading.RLock(), Hold()
        skip = [folder, *map(Path, exclude)]
        self._workspace = Workspace(root, self.images, self.limits, skip, self._breathe)
        self._leaving = False
        self._named: set[NotCovered] = set()
        self._stamp = 0
        self._told_off: str | None = None
        self.off = refusal(root)
        """Why there is no file undo, if that is so."""
        told = self._ledger.read()
        self._workspace.take_over(told.items)
        self._blocks, self._position, self._open = told.blocks, told.position, told.open_block
        self._touched = told.touched
        self.forgotten = told.forgotten
        """The last block that was too old to be kept; it and all before it cannot be taken back."""

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def items(self) -> dict[str, Item]:
        """What stood at each path when it was looked at last."""
        return dict(self._workspace.items)

    @property
    def scope(self) -> str:
        """What undo is about, in words."""
        root = os.fsencode(self._workspace.root).decode("utf-8", "replace")
        return f"Files under {root} are covered. What a block changes elsewhere is not, nor is it watched."

    # -- a block -------------------------------------------------------------------------------------------------

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that are in force, oldest first."""
        return tuple(files.block for files in self._blocks[: self._position])

    @property
    def undone(self) -> tuple[str, ...]:
        """The blocks that could be done again, the next one first."""
        return tuple(files.block for files in self._blocks[self._position :])

    @property
    def looked(self) -> bool:
        """Whether the workspace has been looked at, so that another look is cheap."""
        return self._workspace.looked or self.off is not None

    def prepare(self) -> Coverage:
        """Look at the workspace and store what is not stored yet."""
        with self._lock, self._hold:
            begin = time.perf_counter()
            self._settle()
            if self._ledger.trouble:
                self._rewrite()
            self._see()
            return self._coverage(begin)

    def look_ahead(self) -> None:
        """The same in the background: what goes wrong goes wrong again when it is needed, and is told then."""
        with contextlib.suppress(Abandoned, OSError, UndoError):
            self.prepare()

    def before(self, block: str | int) -> Coverage:
        """A block is about to run: say what is covered. Blocks that were undone cannot be done again from here on."""
        with self._lock, self._hold:
            coverage = self.prepare()
            self._stamp += 1
            self._open = str(block)
            del self._blocks[self._position :]
            self._touched = clamped(self._touched, self._position)
            self._ledger.begin(self._open)
            trouble = self._ledger.trouble
            return replace(coverage, trouble=trouble) if trouble else coverage

    def after(self, block: str | int) -> Changes:
        """The block has ended: say what it changed; nothing, if it never began."""
        with self._lock, self._hold:
            begin = time.perf_counter()
            if self._open != str(block):
                return Changes(str(block))
            pairs = self._changed() if self.off is None else {}
            files = BlockFiles(str(block), pairs, self.off)
            self._stamp += 1
            self._blocks.append(files)
            self._position, self._open = len(self._blocks), None
            self._ledger.end(files)
            self._forget()
            lost = tuple(self._lost(pairs))
            return Changes(files.block, pairs, lost, self.off, time.perf_counter() - begin)

    def limit(self, limits: Limits) -> None:
        """Other limits hold from now on; what was left out is looked at again."""
        with self._lock, self._hold:
            self.limits = limits
            self._workspace.limit(limits)
            self.reconsider()

    def reconsider(self) -> None:
        """Try again after the workspace was over a limit."""
        self.off = refusal(Path(self._workspace.root))

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
            maps = [_turned(files.pairs) for files in reversed(chosen)]
            return self._plan("undo", list(reversed(chosen)), self._position - count, maps)

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
            return self._plan("redo", chosen, self._position + count, [files.pairs for files in chosen])

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

    def settle(self) -> None:
        """Finish what was left half done: an undo that was cut off, a block whose end nobody recorded."""
        with self._lock, self._hold:
            self._settle()

    # -- the store -------------------------------------------------------------------------------------------------

    def trim(self) -> None:
        """The session ends: keep what undo needs, and forget the copies of what no block has changed."""
        self._leaving = True  # a first copy that goes on in the background is not needed any more
        with self._lock, self._hold:
            self._leaving = False
            self._settle()
            self.images.drop(contents_of(self._blocks))
            self._ledger.rewrite(self._blocks, self._position, self.forgotten)
            self._ledger.trimmed()

    def move(self, folder: Path, keep: bool) -> None:
        """Go on in another folder, which gets all that is stored so far; the old one stays as it is if it is kept."""
        with self._lock, self._hold:
            folder = folder.resolve()
            carry(self.folder, folder, keep)
            self.folder = folder
            self.images.move(folder / IMAGES)
            self._ledger.follow(folder)
            self._workspace.leave_out(folder)

    def _breathe(self) -> None:
        """A look goes on; here it may be broken off."""
        self._hold.let_through()
        if self._leaving:
            raise Abandoned

    # -- inside: looking ---------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Finish what a dead host left half done."""
        intent = self._ledger.intent()
        if intent is not None:
            self._finish(intent)
            self._ledger.done()
        if self._open is not None:
            self.after(self._open)

    def _look(self) -> dict[str, Pair]:
        if self.off is not None:
            return {}
        try:
            return self._workspace.look()
        except Overfull as limit:
            self.off = f"{limit} Name a smaller folder as the workspace, or raise the limit."
        except OSError as error:
            self.off = f"{self.images.folder}: {error.strerror}"
        return {}

    def _see(self, own: bool = False) -> None:
        """What has changed was not done by a block."""
        items = {path: new for path, (_, new) in self._look().items()}
        if not own:
            self._touched |= touched(items, len(self._blocks))
        self._ledger.seen(items, own)

    def _changed(self) -> dict[str, Pair]:
        pairs = self._look()
        moved = {path: new for path, (old, new) in pairs.items() if same(old, new)}
        self._ledger.seen(moved)
        return {path: pair for path, pair in pairs.items() if path not in moved}

    def _forget(self) -> None:
        """Let go of the oldest blocks when there are too many, or too much is stored for them."""
        many = len(self._blocks) > self.limits.blocks * 1.1  # not each time
        if not many and self.images.bytes <= self.limits.stored_bytes:
            return
        present = {item.content for item in self._workspace.items.values() if item.kind == "file" and item.content}
        first = oldest_kept(self._blocks, self.images, present, self.limits)
        if first:
            self.forgotten = self._blocks[first - 1].block
            del self._blocks[:first]
            self._position = len(self._blocks)
            self._touched = {folder: max(0, blocks - first) for folder, blocks in self._touched.items()}
            self._rewrite()
        self.images.drop(contents_of(self._blocks) | present)

    def _rewrite(self) -> None:
        self._ledger.rewrite(self._blocks, self._position, self.forgotten)
        self._ledger.seen(dict(self._workspace.items))

    def _coverage(self, begin: float) -> Coverage:
        here = self._workspace
        not_covered = tuple(here.not_covered[path] for path in sorted(here.not_covered))
        news = tuple(each for each in not_covered if each not in self._named)
        self._named.update(news)
        seconds = time.perf_counter() - begin
        trouble = self._ledger.trouble
        told, self._told_off = self._told_off, self.off
        if self.off is not None:
            return Coverage(self.off, self.off != told, seconds=seconds, trouble=trouble)
        copied = (here.copied_files, here.copied_bytes)
        return Coverage(None, False, here.files, here.bytes, *copied, seconds, not_covered, news, trouble)

    def _lost(self, pairs: dict[str, Pair]) -> Iterable[NotCovered]:
        for path, (old, new) in pairs.items():
            if old is not None and not self._stored(old) and not alike(old, new and new._replace(mode=old.mode)):
                yield NotCovered(path, "what it held is not stored", old.size)
        closed = (each for each in self._workspace.not_covered.values() if each.path.endswith("/"))
        yield from (each for each in closed if each.path[:-1] in pairs)

    def _stored(self, item: Item) -> bool:
        if item.kind == "file":
            return item.content is not None and item.content in self.images
        return item.restorable

    # -- inside: taking back -----------------------------------------------------------------------------------------

    def _index(self, block: str, start: int, end: int) -> int:
        for index in reversed(range(start, end)):
            if self._blocks[index].block == block:
                return index
        raise UndoError(f"Nothing is known about the files of block {block}.")

    def _plan(self, direction: Direction, chosen: list[BlockFiles], position: int, maps: list[dict[str, Pair]]) -> Plan:
        self._see()
        real: set[str] = set()
        found = steps(composed(maps), lambda path: self._workspace.now(path, real), self._stored)
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
            intent = choice.intent(plan, chosen)
            self._ledger.intend(intent)
            report = self._restore(intent, chosen)
            return replace(report, kept=(*kept, *report.kept), saved=saved)

    def _restore(self, intent: dict[str, Any], chosen: list[Step]) -> Report:
        act = Restoration(self._workspace.root, self.images, intent["token"], self._workspace.twin)
        act.run(chosen, self._breathe)  # if it is broken off there, the rest is done before anything else
        self._position = intent["position"]
        self._stamp += 1
        self._ledger.moved(self._position)
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


def _turned(pairs: dict[str, Pair]) -> dict[str, Pair]:
    return {path: (new, old) for path, (old, new) in pairs.items()}
