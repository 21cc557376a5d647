"""The file record on the disk: lines of JSON that are only added to, so that it survives the death of the host."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from interpreter.errors import UndoError
from interpreter.sigint import Hold, interrupted
from interpreter.workspace.diff import Changes, author, difference
from interpreter.workspace.restore import (
    Direction,
    Kept,
    Plan,
    Report,
    Restoration,
    Step,
    chosen_steps,
    clear_passing,
    composed,
    intent_of,
    remaining,
    repositories_in,
    steps,
)
from interpreter.workspace.snapshot import Coverage, Limits, NotCovered, Overfull, Workspace, refusal
from interpreter.workspace.store import PACK, Images, append
from interpreter.workspace.tree import (
    Item,
    Pair,
    alike,
    packed,
    repository_of,
    same,
    unpacked,
)

Overwritten = Sequence[Sequence[Any]]
"""The number of a block, a path, and what somebody else had there."""
LEDGER = "files.jsonl"
INTENT = "intent.json"
UNTRIMMED = "untrimmed"
"""There as long as a session goes on, and after it was killed."""


@dataclass
class BlockFiles:
    """What a block did to the files of the workspace."""

    block: str
    pairs: dict[str, Pair] = field(default_factory=dict)
    off: str | None = None
    """Why nothing is known, if that is so."""
    overwritten: dict[str, dict[str, Item | None]] = field(default_factory=dict)
    """What somebody else had made of its files when they were overwritten on request; by what brings that back."""


@dataclass
class Told:
    """What the ledger tells: the tree as it was last seen, the blocks, and how many of them are in force."""

    items: dict[str, Item] = field(default_factory=dict)
    blocks: list[BlockFiles] = field(default_factory=list)
    position: int = 0
    open_block: str | None = None
    """A block that began and whose end was not recorded."""
    forgotten: str | None = None
    """The last block that was too old to be kept."""
    touched: dict[str, int] = field(default_factory=dict)
    """For each repository after how many blocks somebody else changed it last."""

    def apply(self, entry: dict[str, Any]) -> None:
        """Take one line of the ledger."""
        match entry["event"]:
            case "seen":
                self._see((path, unpacked(item)) for path, item in entry["items"].items())
                if not entry["own"]:
                    self.touched |= touched(entry["items"], len(self.blocks))
            case "begin":
                self.open_block = entry["block"]
                del self.blocks[self.position :]
                self.touched = clamped(self.touched, self.position)
            case "end":
                pairs = {path: (unpacked(old), unpacked(new)) for path, (old, new) in entry["changes"].items()}
                del self.blocks[self.position :]
                back = {way: _unpacked(items) for way, items in entry.get("overwritten", {}).items()}
                self.blocks.append(BlockFiles(entry["block"], pairs, entry["off"], back))
                self.position, self.open_block = len(self.blocks), None
                self._see((path, new) for path, (_, new) in pairs.items())
            case "moved":
                pass_blocks(self.blocks, self.position, entry["position"], entry.get("overwritten", ()))
                self.position = entry["position"]
            case "forgot":
                self.forgotten = entry["block"]

    def _see(self, items: Iterator[tuple[str, Item | None]]) -> None:
        for path, item in items:
            if item is None:
                self.items.pop(path, None)
            else:
                self.items[path] = item


class Ledger:
    """Writes the record. If the disk is full, `trouble` says so, and the record lives in memory alone."""

    def __init__(self, folder: Path) -> None:
        self.trouble: str | None = None
        self._begun = False  # whether it is known on the disk that somebody writes it
        self.follow(folder)

    def follow(self, folder: Path) -> None:
        """It is there from now on."""
        self._path, self._intent, self._untrimmed = folder / LEDGER, folder / INTENT, folder / UNTRIMMED

    def read(self) -> Told:
        """What was written so far; a line torn by a crash is cut off."""
        told = Told()
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return told
        length = 0
        for line in lines:
            if not _told(line, told):
                os.truncate(self._path, length)
                break
            length += len(line)
        return told

    def trimmed(self) -> None:
        """Nothing is in the store that nobody needs."""
        self._untrimmed.unlink(missing_ok=True)
        self._begun = False

    def seen(self, items: dict[str, Item | None], own: bool = False) -> None:
        """The tree was found like this, and no block made it so: an undo of our own did, or somebody else."""
        if items:
            told = {path: packed(item) for path, item in items.items()}
            self._append({"event": "seen", "items": told, "own": own})

    def begin(self, block: str) -> None:
        self._append({"event": "begin", "block": block})

    def end(self, files: BlockFiles) -> None:
        self._append(_end(files))

    def moved(self, position: int, overwritten: Overwritten = ()) -> None:
        more = {"overwritten": overwritten} if overwritten else {}
        self._append({"event": "moved", "position": position, **more})

    def rewrite(self, blocks: list[BlockFiles], position: int, forgotten: str | None) -> None:
        """Write the blocks anew, and forget how the rest of the tree looked."""
        entries = [*map(_end, blocks), {"event": "moved", "position": position}]
        if forgotten is not None:
            entries.append({"event": "forgot", "block": forgotten})
        try:
            _replace(self._path, "".join(map(_line, entries)))
        except OSError as error:
            self.trouble = f"{error.strerror} ({self._path.parent})"
        else:
            self.trouble = None

    # -- what an undo is about to do -----------------------------------------------------------------------------

    def intend(self, intent: dict[str, Any]) -> None:
        """Say what is going to be done. On a full disk it is done unsaid: an undo may be what makes room."""
        with contextlib.suppress(OSError):
            _replace(self._intent, _line(intent))

    def intent(self) -> dict[str, Any] | None:
        """What an undo was about to do when it was cut off."""
        if not os.path.exists(self._intent):
            return None
        try:
            found: dict[str, Any] = json.loads(self._intent.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:  # the machine went down while it was written, so nothing was done yet
            self.done()
            return None
        return found

    def done(self) -> None:
        self._intent.unlink(missing_ok=True)

    def _append(self, entry: dict[str, Any]) -> None:
        if self.trouble:
            return  # a line that follows on a missing one would tell a wrong story
        try:
            if not self._begun:
                self._begin()
            append(self._path, _line(entry).encode("ascii"))
        except OSError as error:
            self.trouble = f"{error.strerror} ({self._path.parent})"

    def _begin(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._untrimmed.touch(mode=0o600)
        self._begun = True


def pass_blocks(blocks: list[BlockFiles], position: int, to: int, overwritten: Overwritten) -> None:
    """Blocks were undone or done again: what that brought back is no news any more, what it has overwritten is."""
    way, back = ("undo", "redo") if to < position else ("redo", "undo")
    for files in blocks[min(position, to) : max(position, to)]:
        files.overwritten.pop(way, None)
    for index, path, item in overwritten:
        blocks[index].overwritten.setdefault(back, {})[path] = unpacked(item)


def touched(paths: Iterable[str], blocks: int) -> dict[str, int]:
    """The repositories that these paths are in."""
    return {folder: blocks for path in paths if (folder := repository_of(path)) is not None}


def clamped(times: dict[str, int], blocks: int) -> dict[str, int]:
    """The same when blocks that were undone are forgotten."""
    return {folder: min(count, blocks) for folder, count in times.items()}


def _told(line: bytes, told: Told) -> bool:
    """Take a line; False if it is torn, or damaged."""
    try:
        entry = json.loads(line) if line.endswith(b"\n") else None
        if entry is not None:
            told.apply(entry)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return entry is not None


def _end(files: BlockFiles) -> dict[str, Any]:
    changes = {path: [packed(old), packed(new)] for path, (old, new) in files.pairs.items()}
    entry = {"event": "end", "block": files.block, "changes": changes, "off": files.off}
    back = {way: {path: packed(item) for path, item in items.items()} for way, items in files.overwritten.items()}
    return {**entry, "overwritten": back} if back else entry


def _unpacked(items: dict[str, Any]) -> dict[str, Item | None]:
    return {path: unpacked(item) for path, item in items.items()}


def _line(entry: dict[str, Any]) -> str:
    # Names that are no UTF-8 have lone surrogates, which only the escapes of ASCII can carry.
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")) + "\n"


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    passing = path.with_suffix(".new")
    descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.rename(passing, path)


IMAGES = "images"


def contents_of(blocks: Iterable[BlockFiles]) -> set[str]:
    """The hashes of all that the blocks found or made."""
    found = {item for files in blocks for pair in files.pairs.values() for item in pair}
    found |= {item for files in blocks for back in files.overwritten.values() for item in back.values()}
    return {item.content for item in found if item is not None and item.content}


def oldest_kept(blocks: Sequence[BlockFiles], images: Images, present: set[str], limits: Limits) -> int:
    """Which of the blocks is the first to be kept, if so many are and so much is stored; the last one in any case."""
    spare = limits.stored_bytes - sum(map(images.size, present))
    seen = set(present)
    for index in reversed(range(len(blocks))):
        news = contents_of([blocks[index]]) - seen
        spare -= sum(map(images.size, news))
        seen |= news
        if spare < 0 or len(blocks) - index > limits.blocks:
            return min(index + 1, len(blocks) - 1)
    return 0


def carry(old: Path, new: Path, keep: bool) -> None:
    """Have all of a store in another folder too, or there only; the new one is whole or not there at all."""
    new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not old.exists():
        return
    passing = new.with_name(f"{new.name}.new")
    shutil.rmtree(passing, ignore_errors=True)
    if keep:
        shutil.copytree(old, passing, symlinks=True, copy_function=_shared)
    else:
        shutil.move(old, passing)
    passing.rename(new)


def trim(folder: Path, unsettled: bool = False) -> bool:
    """Make the store of a session that was killed small; False if it was in the middle of something.

    Then its copies are needed to find out what was done; with `unsettled`, that is given up.
    """
    ledger = Ledger(folder)
    told = ledger.read()
    if not unsettled and (told.open_block is not None or ledger.intent() is not None):
        return False
    ledger.done()
    Images(folder / IMAGES).drop(contents_of(told.blocks))
    ledger.rewrite(told.blocks, told.position, told.forgotten)
    ledger.trimmed()
    return True


def _shared(source: str, target: str) -> None:
    """Large copies are never written again, so two stores may share them; the rest is written by both."""
    folder, name = os.path.split(source)
    if os.path.basename(folder) == IMAGES and name != PACK:
        try:
            os.link(source, target)
            return
        except OSError:
            pass  # another file system
    shutil.copyfile(source, target)
    os.chmod(target, 0o600)


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
            text = difference(change.path, (change.before, change.after), self.content, change.source)
            if text:
                found[change.path] = text
        return found

    def drift_diff(self, step: Step) -> str:
        """From what stands at a path now to what would be restored there."""
        return difference(step.path, (step.now, step.want), lambda item: self._either(step, item))

    def why(self, path: str | Path, line: int | None = None) -> str | None:
        """The block that made a file, or one of its lines, what it is; None if it was no block."""
        full = Path(os.path.abspath(os.path.join(self._workspace.root, path)))
        name = os.path.relpath(os.path.realpath(full.parent), self._workspace.root)
        relative = os.path.normpath(os.path.join(name, full.name))
        try:
            data = full.read_bytes() if line is not None else None
        except OSError:
            return None
        return author(relative, line, self._blocks[: self._position], data, self.content)

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
        units = tuple(repositories_in(found, self._workspace, foreign))
        off = tuple(NotCovered(f"block {files.block}", files.off) for files in chosen if files.off)
        return Plan(direction, tuple(files.block for files in chosen), position, tuple(found), units, off, self._stamp)

    def _carry_out(self, plan: Plan, overwrite: Collection[str], repositories: Collection[str]) -> Report:
        with self._lock, self._hold:
            if plan.stamp != self._stamp:
                raise UndoError("A block has run since this was planned: plan it again.")
            chosen, kept = chosen_steps(plan, overwrite, repositories)
            saved = {}
            for step in [step for step in chosen if step.drift and step.now and step.now.kind == "file"]:
                try:
                    saved[step.path] = self.images.take(self._workspace.full(step.path)).content
                except OSError as error:
                    chosen.remove(step)
                    kept.append(Kept(step.path, f"it could not be saved first: {error.strerror}", drift=True))
            overwritten = [self._overwritten(plan, step) for step in chosen if step.drift and not step.repository]
            intent = {**intent_of(plan, chosen), "overwritten": overwritten}
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
        rest, kept = remaining(intent, self._workspace)
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
