"""The file record: what each block did to the workspace, kept on disk, undone and redone."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from interpreter.errors import UndoError
from interpreter.sigint import Hold, interrupted
from interpreter.workspace.diff import Changes, Parse, blame, diff
from interpreter.workspace.restore import (
    PREFIX,
    Direction,
    Kept,
    Restoration,
    RestorePlan,
    RestoreReport,
    Step,
    plan_steps,
    repositories_in,
    select_steps,
)
from interpreter.workspace.snapshot import Coverage, FileSnapshot, NotCovered, SnapshotLimits
from interpreter.workspace.store import CONTENTS, ContentStore, append, copy_store
from interpreter.workspace.tree import Item, Pair, alike, item_from_json, repository_of, same

LEDGER = "files.jsonl"
_MAX_ITEMS_PER_LINE = 5_000  # items per line: writing a longer one would block other threads
_FIRST_COPY_TIMEOUT = 2.0  # seconds that a block waits for the first copy of the workspace
_SLICE, _PAUSE = 0.05, 0.002  # seconds that a background copy holds the lock, and then releases it
_UNSEEN = "the workspace is still being read for the first time, so file changes by this block can't be undone."
_UNKNOWN = "There is no record of file changes for block {}."
NOT_READ_YET = "can't tell yet which files undo covers here"
UNTRIMMED = "untrimmed"  # the file that marks a session as open, or killed


class FileRecord:
    """Knows the files of a workspace before and after each block, and undoes and redoes what blocks did.

    Call `before` when a block is about to run and `after` when it has ended, even if it failed. Everything is kept in
    `store_folder`, so that a record can be opened again after a restart. `prepare` may be called from another thread to
    make the first copy in the background.
    """

    def __init__(
        self,
        workspace: str | Path,
        store_folder: str | Path,
        limits: SnapshotLimits | None = None,
        exclude: Iterable[str | Path] = (),
    ) -> None:
        root, folder = Path(workspace).resolve(), Path(store_folder).resolve()
        self.folder, self.limits = folder, limits or SnapshotLimits()
        self.store = ContentStore(folder / CONTENTS)
        self._ledger = Ledger(folder)
        self._lock, self._hold = threading.RLock(), Hold()
        skip = [folder, *map(Path, exclude)]
        items, point = self._ledger.items, self._interruption_point
        self.snapshot = FileSnapshot(root, self.store, self.limits, items, skip, point)
        self._closing = self._is_ending = False
        self._background: int | None = None  # the thread that called `prepare_in_background` last
        self._background_cost = Coverage()  # not shown to the user yet
        self._unseen: list[str] = []  # blocks that ran while the workspace was read for the first time
        self._named: set[NotCovered] = set()
        self._stamp = 0
        self._shown_off: str | None = None
        self.off: str | None = None  # why file undo is off, if it is

    @property
    def items(self) -> dict[str, Item]:
        """Return what was at each path when the workspace was last scanned."""
        return dict(self.snapshot.items)

    @property
    def blocks(self) -> tuple[str, ...]:
        return tuple(each.block for each in self._ledger.blocks[: self._ledger.position])

    @property
    def undone(self) -> tuple[str, ...]:
        return tuple(each.block for each in self._ledger.blocks[self._ledger.position :])

    @property
    def forgotten(self) -> str | None:
        """Return the last block that was too old to be kept; it and all before it cannot be undone."""
        return self._ledger.forgotten

    @property
    def is_prepared(self) -> bool:
        """Check whether the workspace has been scanned, so that the next scan is cheap."""
        return (self.snapshot.is_taken and not self.snapshot.waiting) or self.off is not None

    @property
    def is_read(self) -> bool:
        """Check whether the first scan of the workspace is complete, so that undo covers it."""
        return self.snapshot.is_taken

    @property
    def is_in_block(self) -> bool:
        """Check whether a block has begun and its end is not recorded yet."""
        return self.is_read and self._ledger.open_block is not None

    def left_out(self, path: str) -> str | None:
        """Say why an undo would not restore a file of the workspace; None if it would."""
        with contextlib.suppress(OSError):  # it was deleted just now
            if os.path.isfile(path) and os.path.getsize(path) > self.limits.file_bytes:
                return "too large for undo"
        name = os.path.relpath(os.path.realpath(path), self.snapshot.root)
        if name in self.snapshot.waiting:
            return NOT_READ_YET
        return None if self.snapshot.covers(name) else "not covered by undo"

    # -- a block -------------------------------------------------------------------------------------------------

    def prepare(self, seconds: float | None = None) -> Coverage:
        """Scan the workspace and store what is not stored yet. News stays news until a block begins.

        After so many seconds of storing, the rest is left for `prepare_in_background`.
        """
        with self._lock, self._hold:
            begin = time.perf_counter()
            self.settle()
            if self._ledger.trouble:
                self._ledger.rewrite(self.snapshot.items)
            self._refresh(seconds=seconds)
            here = self.snapshot
            cost = time.perf_counter() - begin
            if self.off is not None:
                return Coverage(self.off, self.off != self._shown_off, seconds=cost, trouble=self._ledger.trouble)
            return Coverage(
                files=here.files,
                bytes=here.bytes,
                copied_files=here.copied_files,
                copied_bytes=here.copied_bytes,
                seconds=cost,
                not_covered=here.not_covered.values(),
                news=tuple(sorted(set(here.not_covered.values()) - self._named)),
                waiting=len(here.waiting),
                trouble=self._ledger.trouble,
            )

    def prepare_in_background(self) -> None:
        """Prepare in another thread.

        Errors are dropped here, because they recur and are shown when the record is needed.
        """
        self._background = threading.get_ident()
        with contextlib.suppress(OSError, UndoError):
            with self._lock, self._hold:
                if not self.snapshot.is_taken:  # else a block may be running
                    self._background_cost = self.prepare(_SLICE)
            while self.snapshot.waiting:
                with self._lock, self._hold:  # a block may begin and end between two slices
                    self._copy_more(_SLICE)
                time.sleep(_PAUSE)

    def _copy_more(self, seconds: float) -> None:
        """Continue the first copy of the workspace for this many seconds."""
        begin, here = time.perf_counter(), self.snapshot
        here.copied_files = here.copied_bytes = 0
        while here.waiting and (left := begin + seconds - time.perf_counter()) > 0:
            self._ledger.write_seen(here.store_waiting(left), own=True)
        cost = time.perf_counter() - begin
        copied = Coverage(copied_files=here.copied_files, copied_bytes=here.copied_bytes, seconds=cost)
        self._background_cost = copied.with_cost_of(self._background_cost)

    def before(self, block: str | int) -> Coverage:
        """Prepare for a block and return what undo covers. Undone blocks cannot be redone any more.

        If the workspace is still being read for the first time, the block does not wait for that and is not covered.
        """
        if not self._lock.acquire(timeout=_FIRST_COPY_TIMEOUT):
            self._unseen.append(str(block))
            return Coverage(_UNSEEN, off_is_news=True)
        try:
            with self._hold:
                self._copy_more(_FIRST_COPY_TIMEOUT)
                coverage = self.prepare(_FIRST_COPY_TIMEOUT).with_cost_of(self._background_cost)
                self._named.update(coverage.news)
                self._shown_off, self._background_cost = self.off, Coverage()
                self._stamp += 1
                self._ledger.add({"event": "begin", "block": str(block)})
                return replace(coverage, trouble=self._ledger.trouble)
        finally:
            self._lock.release()

    def after(self, block: str | int) -> Changes:
        """Record the end of a block, and return what it changed; no changes if it never began."""
        if str(block) in self._unseen:
            return Changes(str(block), off=_UNSEEN)
        with self._lock, self._hold:
            if self._ledger.open_block != str(block):
                return Changes(str(block))
            self._is_ending = True
            try:
                pairs = self._scan()
            finally:
                self._is_ending = False
            touched = {path: new for path, (old, new) in pairs.items() if same(old, new)}
            self._ledger.write_seen(touched)
            pairs = {path: pair for path, pair in pairs.items() if path not in touched}
            self._stamp += 1
            self._ledger.add({"event": "end", "block": str(block), "changes": pairs, "off": self.off})
            self._forget_oldest()
            lost = [
                NotCovered(path, "its content is not stored", old.size)
                for path, (old, new) in pairs.items()
                if old and not self.store.holds(old) and not alike(old, new and new._replace(mode=old.mode))
            ]
            lost += [NotCovered(f"{path}/", why) for path, why in self.snapshot.tree.closed.items() if path in pairs]
            return Changes(str(block), pairs, tuple(lost), self.off)

    def limit(self, limits: SnapshotLimits) -> None:
        """Use other limits from now on, and check again what was left out."""
        with self._lock, self._hold:
            self.limits = limits
            self.snapshot.limit(limits)
            self.off = None

    def cover(self, paths: Iterable[str]) -> None:
        """Store files that are about to be changed, including large ones."""
        with self._lock, self._hold:
            self._ledger.write_seen(self.snapshot.cover(paths), own=True)

    def settle(self) -> None:
        """Finish what was interrupted: an undo that was cut off, or a block whose end was not recorded."""
        with self._lock, self._hold:
            if self.finish() is not None:
                self._ledger.done()
            if self._ledger.open_block is not None:
                self.after(self._ledger.open_block)
            while self._unseen and self.snapshot.is_taken:
                block = self._unseen.pop(0)
                self._stamp += 1
                self._ledger.add({"event": "end", "block": block, "changes": {}, "off": _UNSEEN})

    # -- the store -----------------------------------------------------------------------------------------------

    def trim(self) -> None:
        """Keep what undo needs when the session ends, and drop copies of files that no block has changed."""
        self._closing = True  # stops a first copy in the background, which is not needed any more
        with self._lock, self._hold:
            self._closing = False
            self.settle()
            self._ledger.trim(self.store)

    def move(self, folder: Path, keep: bool) -> None:
        """Continue in another folder, which gets everything stored so far. `keep` leaves the old one as it is."""
        with self._lock, self._hold:
            folder = folder.resolve()
            copy_store(self.folder, folder, keep)
            self.folder = folder
            self.store.follow(folder / CONTENTS)
            self._ledger.follow(folder)
            self.snapshot.skip(folder)

    # -- undo ----------------------------------------------------------------------------------------------------

    def plan_undo(self, count: int = 1, *, since: str | int | None = None) -> RestorePlan:
        """Plan to undo the last blocks, or `since` and all after it."""
        return self._plan("undo", count, since)

    def plan_redo(self, count: int = 1, *, until: str | int | None = None) -> RestorePlan:
        """Plan to redo the next blocks, or all up to `until`."""
        return self._plan("redo", count, until)

    def undo(
        self, plan: RestorePlan | None = None, overwrite: Collection[str] = (), repositories: Collection[str] = ()
    ) -> RestoreReport:
        """Do what a plan says; without one, undo the last block.

        What another program has changed is left alone, unless its path is in `overwrite`; so are `.git` folders, unless
        they are in `repositories`.
        """
        plan = plan or self.plan_undo()
        with self._lock, self._hold:
            if plan.stamp != self._stamp:
                raise UndoError("A block has run since this was planned. Plan it again.")
            chosen, kept = select_steps(plan, overwrite, repositories)
            saved = {}
            for step in [step for step in chosen if step.drift and step.now and step.now.kind == "file"]:
                try:
                    with self.snapshot.folder.open(step.path, buffering=0) as file:
                        saved[step.path], _, _ = self.store.take(file)
                except OSError as error:
                    chosen.remove(step)
                    kept.append(Kept(step.path, f"it could not be saved first: {error.strerror}", drift=True))
            # What another program put there belongs to the first block of the plan that touched it, because that comes
            # back last.
            here, blocks = self._ledger.position, self._ledger.blocks
            passed = range(here - 1, plan.position - 1, -1) if plan.direction == "undo" else range(here, plan.position)
            overwritten = [
                [next(index for index in passed if step.path in blocks[index].pairs), step.path, step.now]
                for step in chosen
                if step.drift and not step.repository
            ]
            intent = {
                "direction": plan.direction,
                "blocks": list(plan.blocks),
                "position": plan.position,
                "token": secrets.token_hex(4),
                "steps": [[step.path, step.now, step.want, step.source] for step in chosen],
                "overwritten": overwritten,
            }
            self._ledger.intend(intent)
            report = self._restore(intent, chosen)
            return replace(report, kept=(*kept, *report.kept), saved=saved)

    def redo(
        self, plan: RestorePlan | None = None, overwrite: Collection[str] = (), repositories: Collection[str] = ()
    ) -> RestoreReport:
        return self.undo(plan or self.plan_redo(), overwrite, repositories)

    @property
    def unfinished(self) -> bool:
        """Check whether an undo was cut off."""
        return self._ledger.intent() is not None

    def finish(self) -> RestoreReport | None:
        """Complete an undo that was cut off, and return its report; None if there was none."""
        with self._lock, self._hold:
            intent = self._ledger.intent()
            if intent is None:
                return None
            folder = self.snapshot.folder
            for place in {os.path.dirname(path) for path, *_ in intent["steps"]}:
                for name in folder.listdir(place) if folder.is_dir(place) else ():
                    if name.startswith(f"{PREFIX}{intent['token']}-"):
                        folder.unlink(os.path.join(place, name))
            rest, kept = [], []  # steps still to do, and paths that another program has changed since
            for path, was, wanted, source in intent["steps"]:
                now, want = self.snapshot.now(path), item_from_json(wanted)
                if same(now, want):
                    continue
                if now is None or want is None:
                    by_us = now is None  # we had moved it away or deleted it
                else:
                    by_us = now.kind == want.kind and (now.kind == "folder" or now.content == want.content)
                if not by_us and not alike(now, item_from_json(was)):
                    kept.append(Kept(path, "it was changed in the meantime", drift=True))
                else:
                    lost = source is not None and self.snapshot.now(source) is None
                    rest.append(Step(path, now, want, source=None if lost else source))
            report = self._restore(intent, rest)
            return replace(report, kept=(*kept, *report.kept))

    def _plan(self, direction: Direction, count: int, last: str | int | None) -> RestorePlan:
        """Plan an undo or redo of so many blocks, or of all blocks up to `last`.

        Files that were overwritten on request get back what they held before that.
        """
        with self._lock, self._hold:
            self.settle()
            here, blocks = self._ledger.position, self._ledger.blocks
            chosen = blocks[:here][::-1] if direction == "undo" else blocks[here:]
            names = [each.block for each in chosen]
            if last is not None:
                if str(last) not in names:
                    raise UndoError(_UNKNOWN.format(last))
                count = names.index(str(last)) + 1
            if not 0 < count <= len(chosen):
                raise UndoError(f"There are {len(chosen)} blocks to {direction}, not {count}.")
            chosen = chosen[:count]
            self._refresh()
            in_order: list[dict[str, Pair]] = []
            overwritten: dict[str, Pair] = {}
            for changes in chosen:
                pairs = changes.pairs
                if direction == "undo":
                    pairs = {path: (new, old) for path, (old, new) in pairs.items()}
                before = changes.overwritten.get(direction, {})
                overwritten = {path: pair for path, pair in overwritten.items() if path not in pairs}
                overwritten |= {path: (pairs[path][1], item) for path, item in before.items()}
                in_order.append(pairs)
            steps = plan_steps([*in_order, overwritten], self.snapshot, self.store)
            first = here - count if direction == "undo" else here
            position = first if direction == "undo" else here + count
            touched = {path for path, blocks_then in self._ledger.touched.items() if blocks_then > first}
            units = tuple(repositories_in(steps, self.snapshot, touched))
            off = tuple(NotCovered(f"block {each.block}", each.off) for each in chosen if each.off)
            return RestorePlan(direction, tuple(names[:count]), position, tuple(steps), units, off, self._stamp)

    def _restore(self, intent: dict[str, Any], steps: list[Step]) -> RestoreReport:
        if not os.path.isdir(self.snapshot.root):  # the block deleted the workspace itself
            os.makedirs(self.snapshot.root, 0o700)
            steps = [step if step.path else replace(step, now=self.snapshot.now("")) for step in steps]
        folder, token, write = self.snapshot.folder, intent["token"], self.store.write_to
        restoration = Restoration(folder, write, token, self.snapshot.hard_link, self._interruption_point)
        written = restoration.run(steps)  # if this is cut off, `finish` does the rest
        self._stamp += 1
        more = {"overwritten": intent["overwritten"]} if intent.get("overwritten") else {}
        self._ledger.add({"event": "moved", "position": intent["position"], **more})
        if written.failed:
            self._ledger.intend(intent)  # on a full disk, there may have been no room for it before
        else:
            self._ledger.done()
        self._refresh(own=True)
        return RestoreReport(intent["direction"], tuple(intent["blocks"]), written.paths, written.kept, written.failed)

    # -- what blocks changed -------------------------------------------------------------------------------------

    def changes(self, block: str | int) -> Changes | None:
        """Return what a block changed; None if the block is unknown."""
        return next((each for each in reversed(self._ledger.blocks) if each.block == str(block)), None)

    def diff(self, block: str | int, data: bool = False, parse: Parse | None = None) -> dict[str, str]:
        """Return what a block changed as a unified diff per path; with `data`, tables as rows, columns and cells."""
        changes = self.changes(block)
        if changes is None:
            raise UndoError(_UNKNOWN.format(block))
        return changes.diffs(self.content, data, parse)

    def drift_diff(self, step: Step) -> str:
        """Diff what is at a path now against what would be restored."""

        def read(item: Item) -> bytes | None:
            if item is not step.now:
                return self.content(item)
            try:
                return self.snapshot.folder.read_bytes(step.path)
            except OSError:
                return None

        return diff(step.path, step.now, step.want, read)

    def why(self, path: str | Path, line: int | None = None) -> str | None:
        """Find the block that last wrote a file, or one of its lines; None if no block did."""
        full = Path(os.path.abspath(os.path.join(self.snapshot.root, path)))
        name = os.path.relpath(os.path.realpath(full.parent), self.snapshot.root)
        relative = os.path.normpath(os.path.join(name, full.name))
        try:
            data = self.snapshot.folder.read_bytes(relative) if line is not None else None
        except OSError:
            return None
        return blame(relative, line, self._ledger.blocks[: self._ledger.position], data, self.content)

    def content(self, item: Item) -> bytes | None:
        return self.store.read(str(item.content)) if item.kind == "file" and self.store.holds(item) else None

    # -- inside --------------------------------------------------------------------------------------------------

    def _interruption_point(self) -> None:
        """Stop here if interrupted, except in the scan after a block, which always finishes."""
        if not self._is_ending:
            self._hold.let_through()
        if self._closing or (interrupted() and threading.get_ident() == self._background):
            raise UndoError("The copy is no longer needed.")

    def _scan(self, seconds: float | None = None) -> dict[str, Pair]:
        if self.off is None:
            try:
                return self.snapshot.refresh(seconds)
            except OSError as error:
                self.off = f"{self.store.folder}: {error.strerror}"
        return {}

    def _refresh(self, own: bool = False, seconds: float | None = None) -> None:
        """Scan between blocks: our undo (`own`) or another program made what has changed."""
        items = {path: new for path, (_, new) in self._scan(seconds).items()}
        if not own:
            self._ledger.touch(items)
        self._ledger.write_seen(items, own)

    def _forget_oldest(self) -> None:
        """Forget the oldest blocks when there are too many, or too much is stored for them."""
        blocks, limits = self._ledger.blocks, self.limits
        many = len(blocks) > limits.blocks * 1.1  # so that this doesn't happen after every block
        if not many and self.store.stored_bytes <= limits.stored_bytes:
            return
        present = {item.content for item in self.snapshot.items.values() if item.kind == "file" and item.content}
        spare = limits.stored_bytes - sum(map(self.store.size, present))
        seen = set(present)
        for count, changes in enumerate(reversed(blocks), 1):
            news = contents_of([changes]) - seen
            spare -= sum(map(self.store.size, news))
            seen |= news
            if spare < 0 or count > limits.blocks:
                # Keep the blocks that fit the limits, and always the last one.
                self._ledger.forget(min(len(blocks) - count + 1, len(blocks) - 1), self.snapshot.items)
                break
        self.store.drop(contents_of(blocks) | present)


# -- on the disk -------------------------------------------------------------------------------------------------


class Ledger:
    """The blocks and their changes, as lines of JSON that are only appended to, so that they survive a crash.

    If the disk is full, `trouble` has the reason, and the record is only in memory.
    """

    def __init__(self, folder: Path) -> None:
        self.trouble: str | None = None
        self._begun = False  # whether `UNTRIMMED` exists
        self.items: dict[str, Item] = {}  # the tree as it was when the ledger was read
        self.blocks: list[Changes] = []
        self.position = 0  # how many of the blocks are in force
        self.open_block: str | None = None  # a block that began and whose end was not recorded
        self.forgotten: str | None = None  # the last block that was too old to be kept
        self.touched: dict[str, int] = {}  # by path in a repository, after how many blocks another program changed it
        self.follow(folder)
        self._read()

    def follow(self, folder: Path) -> None:
        self._path, self._intent, self._untrimmed = folder / LEDGER, folder / "intent.json", folder / UNTRIMMED

    def touch(self, paths: Iterable[str]) -> None:
        """Note the paths in repositories that another program changed; for Git objects, only that some changed."""
        inside = {path: folder for path in paths if (folder := repository_of(path)) is not None}
        named = {folder if path.startswith(f"{folder}/objects") else path for path, folder in inside.items()}
        self.touched |= dict.fromkeys(named, len(self.blocks))

    def add(self, entry: dict[str, Any]) -> None:
        self._apply(entry)
        self._write(entry)

    def write_seen(self, items: Mapping[str, Item | None], own: bool = False) -> None:
        """Record that a scan saw these items; `own` if our undo made them, not another program."""
        entries = iter(items.items())
        while some := dict(islice(entries, _MAX_ITEMS_PER_LINE)):
            self._write({"event": "seen", "items": some, "own": own})

    def _write(self, entry: dict[str, Any]) -> None:
        if self.trouble:
            return  # a line after a missing one would be wrong
        try:
            if not self._begun:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._untrimmed.touch(mode=0o600)
                self._begun = True
            append(self._path, _line(entry).encode("ascii"))
        except OSError as error:
            self.trouble = f"{error.strerror} ({self._path.parent})"

    def forget(self, count: int, items: Mapping[str, Item]) -> None:
        """Forget the oldest blocks, and rewrite the ledger with the tree as it is now."""
        if not count:
            return
        self.forgotten = self.blocks[count - 1].block
        del self.blocks[:count]
        self.position = len(self.blocks)
        self.touched = {path: max(0, blocks - count) for path, blocks in self.touched.items()}
        self.rewrite(items)

    def rewrite(self, items: Mapping[str, Item]) -> None:
        """Write the blocks and these items of the current tree to a new file."""
        entries: list[dict[str, Any]] = []
        for each in self.blocks:
            entry = {"event": "end", "block": each.block, "changes": each.pairs, "off": each.off}
            entries.append({**entry, "overwritten": each.overwritten} if each.overwritten else entry)
        entries.append({"event": "moved", "position": self.position})
        if self.forgotten is not None:
            entries.append({"event": "forgot", "block": self.forgotten})
        try:
            _replace(self._path, "".join(map(_line, entries)))
        except OSError as error:
            self.trouble = f"{error.strerror} ({self._path.parent})"
        else:
            self.trouble = None
            self.write_seen(items)

    def trim(self, store: ContentStore) -> None:
        """Reduce the ledger and the store to what undo needs."""
        store.drop(contents_of(self.blocks))
        self.rewrite({})
        self._untrimmed.unlink(missing_ok=True)
        self._begun = False

    # -- what an undo is about to do -----------------------------------------------------------------------------

    def intend(self, intent: dict[str, Any]) -> None:
        """Write down an undo before it is done, if there is room: the undo may be what makes room."""
        with contextlib.suppress(OSError):
            _replace(self._intent, _line(intent))

    def intent(self) -> dict[str, Any] | None:
        """Return what an undo was about to do when it was cut off; None if there was none."""
        try:
            intent: dict[str, Any] = json.loads(self._intent.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:  # the machine crashed while it was written, so nothing was done yet
            self.done()
            return None
        return intent

    def done(self) -> None:
        self._intent.unlink(missing_ok=True)

    # -- entries -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Apply what was written so far, and cut off a line that a crash left incomplete."""
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return
        length = 0
        for line in lines:
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("torn")
                self._replay(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                os.truncate(self._path, length)
                break
            length += len(line)

    def _replay(self, entry: dict[str, Any]) -> None:
        seen: dict[str, Item | None] = {}
        if entry["event"] == "seen":
            entry["items"] = seen = _items(entry["items"])
        elif entry["event"] == "end":
            pairs = {path: (item_from_json(old), item_from_json(new)) for path, (old, new) in entry["changes"].items()}
            entry["changes"], seen = pairs, {path: new for path, (_, new) in pairs.items()}
            entry["overwritten"] = {side: _items(items) for side, items in entry.get("overwritten", {}).items()}
        self._apply(entry)
        for path, item in seen.items():
            if item is None:
                self.items.pop(path, None)
            else:
                self.items[path] = item

    def _apply(self, entry: dict[str, Any]) -> None:
        match entry["event"]:
            case "seen":
                if not entry["own"]:
                    self.touch(entry["items"])
            case "begin":
                self.open_block = entry["block"]
                del self.blocks[self.position :]
                self.touched = {path: min(count, self.position) for path, count in self.touched.items()}
            case "end":
                del self.blocks[self.position :]
                overwritten = entry.get("overwritten", {})
                self.blocks.append(Changes(entry["block"], entry["changes"], (), entry["off"], overwritten))
                self.position, self.open_block = len(self.blocks), None
            case "moved":
                # What that move brought back is no longer overwritten, and other things now are.
                here, self.position = self.position, entry["position"]
                direction, back = ("undo", "redo") if self.position < here else ("redo", "undo")
                for changes in self.blocks[min(here, self.position) : max(here, self.position)]:
                    changes.overwritten.pop(direction, None)
                for index, path, item in entry.get("overwritten", ()):
                    self.blocks[index].overwritten.setdefault(back, {})[path] = item_from_json(item)
            case "forgot":
                self.forgotten = entry["block"]


def trim(folder: Path, unsettled: bool = False) -> bool:
    """Trim the store of a session that was killed. False if it was in the middle of something.

    Its copies are then needed to find out what was done; `unsettled` gives that up.
    """
    ledger = Ledger(folder)
    if not unsettled and (ledger.open_block is not None or ledger.intent() is not None):
        return False
    ledger.done()
    ledger.trim(ContentStore(folder / CONTENTS))
    return True


def contents_of(blocks: Iterable[Changes]) -> set[str]:
    """Collect the hashes of all contents that the blocks saw or made."""
    items = {item for changes in blocks for pair in changes.pairs.values() for item in pair}
    items |= {item for changes in blocks for back in changes.overwritten.values() for item in back.values()}
    return {item.content for item in items if item is not None and item.content}


def _items(fields: dict[str, Any]) -> dict[str, Item | None]:
    return {path: item_from_json(item) for path, item in fields.items()}


def _line(entry: dict[str, Any]) -> str:
    # Names that are not UTF-8 have lone surrogates, which only ASCII escapes can represent.
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")) + "\n"


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    # This may run in a finaliser, where only UTF-8 is safe: the import of another encoding may be in progress.
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.rename(temporary, path)
