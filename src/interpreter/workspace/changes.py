"""What a block changed, and what an undo restored: for people, and for the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from interpreter.workspace.coverage import NotCovered
from interpreter.workspace.items import (
    Item,
    Pair,
    alike,
)
from interpreter.workspace.lines import sources
from interpreter.workspace.plan import Direction

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


class Kept(NamedTuple):
    """A path that an undo left as it is, and why."""

    path: str
    why: str
    drift: bool = False


@dataclass(frozen=True)
class Report:
    """What an undo or a redo did."""

    direction: Direction
    blocks: tuple[str, ...]
    restored: tuple[str, ...]
    kept: tuple[Kept, ...] = ()
    failed: tuple[Kept, ...] = ()
    """What the system refused; `finish` tries it again."""
    saved: dict[str, str] = field(default_factory=dict)
    """The hashes of what somebody else had written and what was overwritten on request."""

    @property
    def fields(self) -> dict[str, Any]:
        """As the journal has it, under the event `files_undone` or `files_redone`."""
        kept = [list(each[:2]) for each in self.kept + self.failed]
        return {"blocks": list(self.blocks), "restored": list(self.restored), "kept": kept, "saved": self.saved}


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
