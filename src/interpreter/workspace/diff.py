"""What a block changed: as a list for people and the journal, as a diff, and which block a line comes from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from interpreter.leaves import exists, leaves, load
from interpreter.workspace.snapshot import NotCovered
from interpreter.workspace.tree import Item, Pair, alike

What = Literal["created", "changed", "deleted", "renamed", "mode", "touched"]
Read = Callable[[Item], bytes | None]  # returns the content of a file, None if it is not stored
_MAX_DIFF_BYTES = 2 * 1024 * 1024
# Returns the tables in the contents of a file of this kind, within so many seconds; an exception says why not.
Parse = Callable[[str, Sequence[bytes | None], float], Any]
_DESCRIBE, _COMPARE = "interpreter.table_diffs:describe", "interpreter.table_diffs:diff_of"


class Change(NamedTuple):
    what: What
    path: str
    before: Item | None
    after: Item | None
    source: str | None = None  # the earlier path, if it was renamed

    @property
    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"path": self.path, "what": self.what}
        if self.source is not None:
            fields["from"] = self.source
        for side, item in (("before", self.before), ("after", self.after)):
            if item is not None:
                fields[side] = {"kind": item.kind, "content": item.content, "mode": item.mode, "bytes": item.size}
        return fields


@dataclass(frozen=True)
class Changes:
    block: str
    pairs: dict[str, Pair] = field(default_factory=dict)
    not_covered: tuple[NotCovered, ...] = ()  # what it changed that can't be restored
    off: str | None = None  # why the changes are unknown, if they are
    # What other programs had made of its files when an undo or redo overwrote them on request: by direction, for the
    # opposite one to bring back.
    overwritten: dict[str, dict[str, Item | None]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.pairs)

    @property
    def listed(self) -> list[Change]:
        """List the changes by path; a renamed file is one change."""
        renamed = rename_sources(self.pairs)
        listed = []
        for path in sorted(self.pairs.keys() - set(renamed.values())):
            before, after = self.pairs[path]
            what: What = "changed"
            if path in renamed:
                what, before = "renamed", self.pairs[renamed[path]][0]
            elif before is None:
                what = "created"
            elif after is None:
                what = "deleted"
            elif alike(before, after):
                what = "touched"
            elif alike(before, after._replace(mode=before.mode)):
                what = "mode"
            listed.append(Change(what, path, before, after, renamed.get(path)))
        return listed

    @property
    def fields(self) -> dict[str, Any]:
        changed = [change.fields for change in self.listed]
        not_covered = [list(each) for each in self.not_covered]
        return {"block": self.block, "changed": changed, "not_covered": not_covered, "off": self.off}

    def fields_with_data(self, read: Read, parse: Parse | None = None) -> dict[str, Any]:
        """Return `fields`, with summaries of the tables among the files."""
        fields = self.fields
        if exists(_DESCRIBE):
            load(_DESCRIBE)(self.listed, fields["changed"], read, parse)
        return fields

    def diffs(self, read: Read, data: bool = False, parse: Parse | None = None) -> dict[str, str]:
        """Return unified diffs by path; with `data`, diffs of tables are about rows, columns and cells.

        Excel and Parquet files always get such a diff, if something can parse them.
        """
        compare = load(_COMPARE) if exists(_COMPARE) else None
        diffs = {}
        for each in self.listed:
            text = compare(each, read, parse, data) if compare is not None else ""
            text = text or diff(each.path, each.before, each.after, read, each.source, data)
            if text:
                diffs[each.path] = text
        return diffs


def is_data_file(path: str) -> bool:
    """Check by the name whether a diff can be about rows, columns and cells."""
    return path.lower().endswith((".csv", ".tsv", ".jsonl", ".ndjson"))


def diff(
    path: str, old: Item | None, new: Item | None, read: Read, source: str | None = None, data: bool = False
) -> str:
    """Write the change of a path in the form that `patch` and people read; with `data`, in the form of its kind."""
    name = os.fsencode(path).decode("utf-8", "replace")
    before = os.fsencode(source).decode("utf-8", "replace") if source else name
    heads = (f"a/{before}" if old else "/dev/null", f"b/{name}" if new else "/dev/null")
    parts = []
    if before != name:
        parts.append(f"rename from {before}\nrename to {name}\n")
    if old is not None and new is not None and old.kind == new.kind and old.mode != new.mode:
        parts.append(f"{name}: mode {old.mode:04o} -> {new.mode:04o}\n")
    for verb, item, other in (("new", new, old), ("deleted", old, new)):
        if item is not None and item.kind in ("folder", "link", "other") and (other is None or other.kind != item.kind):
            parts.append(f"{name}: {verb} {item.kind}\n")
    lines = [_text_lines(item, read, path if data else "") for item in (old, new)]
    if lines[0] is None or lines[1] is None:
        if old is None or new is None or not alike(old, new._replace(mode=old.mode)):
            parts.append(f"Binary files {heads[0]} and {heads[1]} differ\n")
        return "".join(parts)
    return "".join(parts) + unified(lines[0], lines[1], heads)


def unified(before: Sequence[str], after: Sequence[str], heads: tuple[str, str]) -> str:
    """Write the difference of two lists of lines."""
    changed = difflib.unified_diff(before, after, *heads)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in changed)


def blame(path: str, line: int | None, blocks: Sequence[Changes], now: bytes | None, read: Read) -> str | None:
    """Find the block that last wrote a file, or one of its lines; None if no block did."""
    text = now.splitlines() if now is not None else None
    for changes in reversed(blocks):
        if path not in changes.pairs:
            continue
        if line is None:
            return changes.block
        source = rename_sources(changes.pairs).get(path, path)
        after = _byte_lines(changes.pairs[path][1], read)
        line = _line_before(text, after, line)
        if line is None:
            return None  # another program wrote it after the block
        before = _byte_lines(changes.pairs[source][0], read)
        earlier = _line_before(after, before, line)
        if earlier is None:
            return changes.block
        path, line, text = source, earlier, before
    return None


def rename_sources(pairs: dict[str, Pair]) -> dict[str, str]:
    """Map new files to the paths they had before, by inode, or by content if that is unique."""
    gone = {path: old for path, (old, new) in pairs.items() if new is None and old is not None and old.kind == "file"}
    come = {path: new for path, (old, new) in pairs.items() if old is None and new is not None and new.kind == "file"}
    inodes = {(item.inode, item.size): path for path, item in gone.items()}
    contents: dict[str | None, str] = {item.content: path for path, item in gone.items() if item.content and item.size}
    sources: dict[str, str] = {}
    for path, item in come.items():
        source = inodes.get((item.inode, item.size))
        if source is not None and gone[source].content == item.content:
            sources[path] = source
            contents.pop(item.content, None)
    for path in come.keys() - sources.keys():
        source = contents.pop(come[path].content, None)
        if source is not None:
            sources[path] = source
    return sources


def _line_before(later: list[bytes] | None, earlier: list[bytes] | None, line: int) -> int | None:
    """Return the number that a line had in the earlier text; None if it was not in it."""
    if later is None or earlier is None or not 1 <= line <= len(later):
        return None
    if later == earlier:
        return line
    for start, other, size in difflib.SequenceMatcher(None, earlier, later, autojunk=False).get_matching_blocks():
        if other < line <= other + size:
            return start + line - other
    return None


def _byte_lines(item: Item | None, read: Read) -> list[bytes] | None:
    data = read(item) if item is not None and item.kind == "file" else None
    return data.splitlines() if data is not None else None


def lines_for(path: str, data: bytes) -> list[str]:
    """Split a file into the lines that a difference is about; ValueError if it is not text."""
    for form in (row for leaf in leaves() for row in leaf.diffs if path.endswith(row.ending)):
        with suppress(ValueError):
            return list(load(form.lines)(data))
    return [line.decode("utf-8") for line in data.splitlines(keepends=True)]


def _text_lines(item: Item | None, read: Read, path: str = "") -> list[str] | None:
    """Split a file into lines of text; None if it is not text or too large."""
    if item is None or item.kind == "folder":
        return []
    if item.kind == "link":
        return [os.fsencode(str(item.content)).decode("utf-8", "replace")]
    data = read(item) if item.size <= _MAX_DIFF_BYTES else None
    if data is None or b"\0" in data:
        return None
    try:
        return lines_for(path, data)
    except ValueError:
        return None
