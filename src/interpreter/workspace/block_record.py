"""What each block did to the files of a workspace: looked at before it and after it, and kept."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from interpreter.errors import UndoError
from interpreter.sigint import Hold, interrupted
from interpreter.workspace.changes import Changes, Report
from interpreter.workspace.coverage import (
    Coverage,
    Limits,
    NotCovered,
    refusal,
)
from interpreter.workspace.images import Images
from interpreter.workspace.items import (
    Item,
    Pair,
    alike,
    same,
)
from interpreter.workspace.ledger import (
    BlockFiles,
    Ledger,
    clamped,
    touched,
)
from interpreter.workspace.stores import (
    IMAGES,
    carry,
    contents_of,
    oldest_kept,
)
from interpreter.workspace.workspace import Overfull, Workspace


class Abandoned(Exception):
    """Nobody wants to know any more."""


class BlockRecord:
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
        self._leaving = self._is_ending = False
        self._looks_ahead: int | None = None  # the thread that called `look_ahead` last
        self._named: set[NotCovered] = set()
        self._stamp = 0
        self._told_off: str | None = None
        self._ahead = Coverage(None, False)  # what was done while nobody waited, until it is told
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
        """Look at the workspace and store what is not stored yet; what is news stays so until a block begins."""
        with self._lock, self._hold:
            begin = time.perf_counter()
            self._settle()
            if self._ledger.trouble:
                self._rewrite()
            self._see()
            return self._coverage(begin)

    def look_ahead(self) -> None:
        """The same in the background: what goes wrong goes wrong again when it is needed, and is told then."""
        self._looks_ahead = threading.get_ident()
        with contextlib.suppress(Abandoned, OSError, UndoError):
            self._ahead = self.prepare()

    def before(self, block: str | int) -> Coverage:
        """A block is about to run: say what is covered. Blocks that were undone cannot be done again from here on."""
        with self._lock, self._hold:
            coverage = self.prepare().after(self._ahead)
            self._named.update(coverage.news)
            self._told_off, self._ahead = self.off, Coverage(None, False)
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
            self._is_ending = True
            try:
                pairs = self._changed() if self.off is None else {}
            finally:
                self._is_ending = False
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
        """A safe point to stop looking; but the look at what a block changed always finishes."""
        if not self._is_ending:
            self._hold.let_through()
        if self._leaving or (interrupted() and threading.get_ident() == self._looks_ahead):
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
        seconds = time.perf_counter() - begin
        trouble = self._ledger.trouble
        if self.off is not None:
            return Coverage(self.off, self.off != self._told_off, seconds=seconds, trouble=trouble)
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

    def _finish(self, intent: dict[str, Any]) -> Report:
        """Do the rest of an undo that was cut off."""
        raise NotImplementedError
