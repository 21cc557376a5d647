"""What a block changed, as a difference of lines; and which block a line comes from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from interpreter.workspace.snapshot import NotCovered

if TYPE_CHECKING:
    from interpreter.workspace.record import BlockFiles
from interpreter.workspace.tree import Item, Pair, alike

Read = Callable[[Item], bytes | None]
_LARGEST = 2 * 1024 * 1024


def difference(path: str, pair: Pair, read: Read, source: str | None = None) -> str:
    """What changed at a path, in the form that `patch` and people read."""
    old, new = pair
    name = os.fsencode(path).decode("utf-8", "replace")
    before = os.fsencode(source).decode("utf-8", "replace") if source else name
    heads = (f"a/{before}" if old else "/dev/null", f"b/{name}" if new else "/dev/null")
    notes = _notes(old, new, before, name)
    lines = [_lines(item, read) for item in (old, new)]
    if lines[0] is None or lines[1] is None:
        if old is not None and new is not None and alike(old, new._replace(mode=old.mode)):
            return notes
        return f"{notes}Binary files {heads[0]} and {heads[1]} differ\n"
    parts = []
    for line in difflib.unified_diff(lines[0], lines[1], *heads):
        parts.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return notes + "".join(parts)


def author(path: str, line: int | None, blocks: Sequence[BlockFiles], now: bytes | None, read: Read) -> str | None:
    """The block that made a file, or one of its lines, what it is; None if it was somebody else."""
    text = now.splitlines() if now is not None else None
    for files in reversed(blocks):
        if path not in files.pairs:
            continue
        old, new = files.pairs[path]
        source = sources(files.pairs).get(path)
        if line is None:
            return files.block
        after = _bytes_of(new, read)
        line = _carried(text, after, line)
        if line is None:
            return None  # somebody else, after the block
        before = _bytes_of(files.pairs[source][0] if source else old, read)
        earlier = _carried(after, before, line)
        if earlier is None:
            return files.block
        path, line, text = source or path, earlier, before
    return None


def sources(pairs: dict[str, Pair]) -> dict[str, str]:
    """Where files that came to be were before: told by their inodes, or by their contents if these are their own."""
    gone = {path: old for path, (old, new) in pairs.items() if new is None and old is not None and old.kind == "file"}
    come = {path: new for path, (old, new) in pairs.items() if old is None and new is not None and new.kind == "file"}
    inodes = {(item.inode, item.size): path for path, item in gone.items()}
    contents: dict[str | None, str] = {item.content: path for path, item in gone.items() if item.content and item.size}
    found: dict[str, str] = {}
    for path, item in come.items():
        source = inodes.get((item.inode, item.size))
        if source is not None and gone[source].content == item.content:
            found[path] = source
    for source in found.values():
        contents.pop(gone[source].content, None)
    for path in come.keys() - found.keys():
        source = contents.pop(come[path].content, None)
        if source is not None:
            found[path] = source
    return found


def _carried(later: list[bytes] | None, earlier: list[bytes] | None, line: int) -> int | None:
    """The number that a line had in the text before, None if it was not there."""
    if later is None or earlier is None or not 1 <= line <= len(later):
        return None
    if later == earlier:
        return line
    matcher = difflib.SequenceMatcher(None, earlier, later, autojunk=False)
    for start, other, size in matcher.get_matching_blocks():
        if other < line <= other + size:
            return start + line - other
    return None


def _bytes_of(item: Item | None, read: Read) -> list[bytes] | None:
    data = read(item) if item is not None and item.kind == "file" else None
    return data.splitlines() if data is not None else None


def _lines(item: Item | None, read: Read) -> list[str] | None:
    """The lines of a text, None if it is none."""
    if item is None or item.kind == "folder":
        return []
    if item.kind == "link":
        return [os.fsencode(str(item.content)).decode("utf-8", "replace")]
    data = read(item) if item.size <= _LARGEST else None
    if data is None or b"\0" in data:
        return None
    try:
        return [line.decode("utf-8") for line in data.splitlines(keepends=True)]
    except UnicodeDecodeError:
        return None


def _notes(old: Item | None, new: Item | None, before: str, name: str) -> str:
    words = []
    if before != name:
        words.append(f"rename from {before}\nrename to {name}\n")
    if old is not None and new is not None and old.kind == new.kind and old.mode != new.mode:
        words.append(f"{name}: mode {old.mode:04o} -> {new.mode:04o}\n")
    for verb, item, other in (("new", new, old), ("deleted", old, new)):
        if item is not None and item.kind in ("folder", "link", "other") and (other is None or other.kind != item.kind):
            words.append(f"{name}: {verb} {item.kind}\n")
    return "".join(words)


What = Literal["created", "changed", "deleted", "renamed", "mode", "touched"]


class Change(NamedTuple):
    """One thing that a block did to a path."""

    what: What
    path: str
    before: Item | None
    after: Item | None
    source: str | None = None
    """Where it was before, if it was renamed."""


@dataclass(frozen=True)
class Changes:
    """All that a block did to the workspace."""

    block: str
    pairs: dict[str, Pair] = field(default_factory=dict)
    not_covered: tuple[NotCovered, ...] = ()
    """What it changed and what cannot be restored."""
    off: str | None = None
    """Why nothing is known, if that is so."""
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.pairs)

    @property
    def listed(self) -> list[Change]:
        """The changes by path; a file that was renamed is one of them."""
        renamed = sources(self.pairs)
        moved = set(renamed.values())
        pairs = sorted(self.pairs.items())
        return [self._change(path, pair, renamed.get(path)) for path, pair in pairs if path not in moved]

    @property
    def fields(self) -> dict[str, Any]:
        """As the journal has it, under the event `files`."""
        changed = [_fields(change) for change in self.listed]
        not_covered = [list(each) for each in self.not_covered]
        return {"block": self.block, "changed": changed, "not_covered": not_covered, "off": self.off}

    def _change(self, path: str, pair: Pair, source: str | None) -> Change:
        if source is not None:
            return Change("renamed", path, self.pairs[source][0], pair[1], source)
        return Change(_what(*pair), path, *pair)


def _what(before: Item | None, after: Item | None) -> What:
    if before is None:
        return "created"
    if after is None:
        return "deleted"
    if alike(before, after):
        return "touched"
    return "mode" if alike(before, after._replace(mode=before.mode)) else "changed"


def _fields(change: Change) -> dict[str, Any]:
    fields: dict[str, Any] = {"path": change.path, "what": change.what}
    if change.source is not None:
        fields["from"] = change.source
    for side, item in (("before", change.before), ("after", change.after)):
        if item is not None:
            fields[side] = {"kind": item.kind, "content": item.content, "mode": item.mode, "bytes": item.size}
    return fields
