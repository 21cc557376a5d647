"""What an undo or a redo would do, path by path; and what somebody else has changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from interpreter.workspace.coverage import NotCovered
from interpreter.workspace.items import (
    Item,
    Pair,
    alike,
    repository_of,
    same,
)

Direction = Literal["undo", "redo"]
Verb = Literal["create", "restore", "delete", "attributes"]


@dataclass(frozen=True)
class Step:
    """One path: what stands there now, and what should."""

    path: str
    expected: Item | None
    """What the blocks left there."""
    now: Item | None
    want: Item | None
    drift: bool = False
    """Somebody else changed it after the block did."""
    source: str | None = None
    """Where the file itself is now, if it was only renamed."""
    repository: str | None = None
    """The `.git` folder it is in."""
    impossible: str | None = None
    """Why it cannot be done, if that is so."""
    lasting: bool = False
    """What stands there now is not stored: it cannot be brought back."""

    @property
    def verb(self) -> Verb:
        if self.want is None:
            return "delete"
        if self.now is None:
            return "create"
        return "attributes" if attributes_only(self) else "restore"


class Repository(NamedTuple):
    """A `.git` folder, which is restored as a whole or not at all."""

    folder: str
    comes_or_goes: bool
    """The blocks made it, removed it or took it apart. Any other one is only touched on request."""
    in_use: bool
    """Somebody else has worked in it since, or git is at work in it."""


@dataclass(frozen=True)
class Plan:
    """What an undo or a redo would do. Nothing has been done yet."""

    direction: Direction
    blocks: tuple[str, ...]
    """In the order in which they would be taken back or done again."""
    position: int
    """How many blocks are in force afterwards."""
    steps: tuple[Step, ...]
    repositories: tuple[Repository, ...] = ()
    """The `.git` folders that the blocks changed."""
    not_covered: tuple[NotCovered, ...] = ()
    """Blocks of which nothing is known."""
    stamp: int = 0

    @property
    def drift(self) -> tuple[Step, ...]:
        """What is left alone unless it is named in `overwrite`."""
        return tuple(step for step in self.steps if step.drift)


class Way(NamedTuple):
    """The way of one path through several blocks."""

    start: Item | None
    end: Item | None
    broken: bool
    """Somebody else changed it between two of the blocks."""


def composed(maps: Iterable[dict[str, Pair]]) -> dict[str, Way]:
    """Several changes, one after the other, as one."""
    ways: dict[str, Way] = {}
    for pairs in maps:
        for path, (old, new) in pairs.items():
            way = ways.get(path)
            if way is None:
                ways[path] = Way(old, new, broken=False)
            else:
                ways[path] = Way(way.start, new, way.broken or not alike(way.end, old))
    return ways


def steps(ways: dict[str, Way], now: Callable[[str], Item | None], stored: Callable[[Item], bool]) -> list[Step]:
    """What has to be done at each path; nothing where it is as it should be already."""
    found = []
    for path in sorted(ways):
        way, stands = ways[path], now(path)
        if same(stands, way.end) or (not path and way.end is None):  # the workspace itself never goes
            continue
        drift = not alike(stands, way.end) and (way.broken or not alike(stands, way.start))
        lasting = stands is not None and not drift and not stored(stands)
        found.append(Step(path, way.start, stands, way.end, drift, lasting=lasting, repository=repository_of(path)))
    return [_judged(step, stored) for step in _with_sources(found)]


def attributes_only(step: Step) -> bool:
    """Is the content as it should be, and only its mode or time is not?"""
    now, want = step.now, step.want
    if now is None or want is None or now.kind != want.kind:
        return False
    if want.kind == "folder":
        return True
    if want.kind == "file" and want.content is None:
        return (now.size, now.mtime_ns, now.inode) == (want.size, want.mtime_ns, want.inode)
    # Another file with the same content may have a second name, which is none of our business.
    return want.kind == "file" and (now.content, now.inode) == (want.content, want.inode)


def gives_way(step: Step) -> bool:
    """Is it a folder, and should be something else?"""
    now, want = step.now, step.want
    return now is not None and now.kind == "folder" and want is not None and want.kind != "folder"


def _with_sources(found: list[Step]) -> Iterator[Step]:
    """A file that was only renamed is renamed back: so it is the same file, however large it is."""
    leaving = {
        step.now.inode: step
        for step in found
        if step.want is None and step.now is not None and step.now.kind == "file" and not step.drift
    }
    emptied = [step.path + "/" for step in found if gives_way(step)]
    for step in found:
        source = leaving.get(step.want.inode) if step.want is not None else None
        in_the_way = source and any(each.path.startswith(folder) for folder in emptied for each in (source, step))
        if source is None or in_the_way or not _is_renamed(source.now, step):
            yield step
        else:
            del leaving[step.want.inode]  # type: ignore[union-attr]
            yield replace(step, source=source.path)


def _is_renamed(source: Item | None, step: Step) -> bool:
    if source is None or step.want is None or gives_way(step):
        return False
    return same(source._replace(mode=step.want.mode), step.want)


def _judged(step: Step, stored: Callable[[Item], bool]) -> Step:
    want = step.want
    if want is None or step.source is not None or attributes_only(step) or want.kind == "folder" or stored(want):
        return step
    if want.kind == "other":
        return replace(step, impossible=f"a {want.content} cannot be made again")
    return replace(step, impossible="its content is not stored")
