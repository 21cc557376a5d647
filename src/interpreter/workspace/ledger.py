"""The file record on the disk: lines of JSON that are only added to, so that it survives the death of the host."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpreter.workspace.appending import append
from interpreter.workspace.items import (
    Item,
    Pair,
    packed,
    repository_of,
    unpacked,
)

Overwritten = Sequence[Sequence[Any]]
"""The number of a block, a path, and what somebody else had there."""
NAME = "files.jsonl"
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
        self._path, self._intent, self._untrimmed = folder / NAME, folder / INTENT, folder / UNTRIMMED

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
