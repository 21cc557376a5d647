"""What an undo or a redo would do, path by path; and what somebody else has changed since."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, NamedTuple

from interpreter.errors import UndoError
from interpreter.workspace.snapshot import NotCovered, Workspace
from interpreter.workspace.store import Images
from interpreter.workspace.tree import (
    Item,
    Pair,
    alike,
    is_real,
    packed,
    repository_of,
    same,
    standing,
    unpacked,
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


_LASTING = {"HEAD", "config", "description", "hooks", "info", "info/exclude", "objects", "refs"}
"""What is in a `.git` folder as long as it is one."""


def chosen_steps(
    plan: Plan, overwrite: Collection[str], repositories: Collection[str]
) -> tuple[list[Step], list[Kept]]:
    """The steps that are to be done; the others with the reason why not."""
    units = {each.folder: each for each in plan.repositories}
    done, kept = [], []
    for step in plan.steps:
        unit = units.get(step.repository or "")
        if step.impossible:
            kept.append(Kept(step.path, step.impossible, step.drift))
        elif unit is None and step.drift and step.path not in overwrite:
            kept.append(Kept(step.path, "somebody else changed it after the block", drift=True))
        elif unit is not None and (why := _left(unit, overwrite, repositories)):
            kept.append(Kept(step.path, why, unit.in_use))
        elif unit is None or not unit.in_use or not _is_object(step):
            done.append(step)
    return done, kept


def repositories_in(found: list[Step], workspace: Workspace, touched: Collection[str]) -> Iterator[Repository]:
    """The `.git` folders in which something is to be done."""
    for folder in sorted({step.repository for step in found if step.repository}):
        ours = [step for step in found if step.repository == folder]
        itself = next((step for step in ours if step.path == folder), None)
        goes = itself is not None and itself.want is None
        comes = (itself is not None and itself.now is None) or any(map(_is_torn_out, ours))
        in_use = folder in touched or any(step.drift or step.impossible for step in ours) or _locked(folder, workspace)
        if goes:
            leaving = {step.path for step in ours if step.want is None}
            in_use |= any(path not in leaving for path in workspace.items if path.startswith(f"{folder}/"))
        yield Repository(folder, comes or goes, in_use)


def intent_of(plan: Plan, steps: list[Step]) -> dict[str, Any]:
    """What is going to be done, for the case that it is cut off."""
    told = [[step.path, packed(step.now), packed(step.want), step.source] for step in steps]
    facts = {"direction": plan.direction, "blocks": list(plan.blocks), "position": plan.position}
    return {**facts, "token": secrets.token_hex(4), "steps": told}


def remaining(told: dict[str, Any], workspace: Workspace) -> tuple[list[Step], list[Kept]]:
    """What an undo that was cut off has not done."""
    rest, kept = [], []
    for path, was, wanted, source in told["steps"]:
        step = Step(path, None, unpacked(was), unpacked(wanted), source=source)
        now = workspace.now(path)
        if same(now, step.want):
            continue
        if not alike(now, step.now) and not _half_done(now, step.want):
            kept.append(Kept(path, "somebody else changed it meanwhile", drift=True))
            continue
        lost = source is not None and workspace.now(source) is None
        rest.append(replace(step, now=now, source=None if lost else source))
    return rest, kept


def _left(unit: Repository, overwrite: Collection[str], named: Collection[str]) -> str | None:
    if not unit.comes_or_goes and unit.folder not in named:
        return "git's own files are left alone"
    if unit.in_use and unit.folder not in overwrite:
        return "somebody else has worked in the repository since"
    return None


def _is_object(step: Step) -> bool:
    """Is it a part of a commit that should go? A later one may stand on it; git removes what nothing stands on."""
    return step.want is None and step.path.startswith(f"{step.repository}/objects/")


def _is_torn_out(step: Step) -> bool:
    """Is it gone, and git itself never removes it? Then a deletion of the whole folder was cut off."""
    inside = step.path.removeprefix(f"{step.repository}/")
    return step.now is None and step.want is not None and (inside in _LASTING or inside.startswith("hooks/"))


def _locked(folder: str, workspace: Workspace) -> bool:
    try:
        return any(name.endswith(".lock") for name in os.listdir(workspace.full(folder)))
    except OSError:
        return False


def _half_done(now: Item | None, want: Item | None) -> bool:
    """Did the undo that was cut off leave it like this?"""
    if now is None or want is None:
        return now is None  # it had made room, or had deleted it
    if now.kind == "folder":
        return want.kind == "folder"
    return now.kind == want.kind and now.content == want.content


PREFIX = ".undo-"
"""How the passing names begin that files have before they get their own."""


class Left(Exception):
    """Something is better left as it is."""


class Restoration:
    """One undo or redo while it goes on."""

    def __init__(self, root: str, images: Images, token: str, twin: Callable[[Item, set[str]], str | None]) -> None:
        self._root, self._images, self._twin = root, images, twin
        self._passing = (f"{PREFIX}{token}-{number}" for number in count())
        self._seen: set[str] = set()
        self._made: dict[Item, str] = {}
        self._opened: dict[str, int] = {}
        self._dated: set[int] = set()
        self._changing: set[str] = set()
        self._real: set[str] = set()
        self._breathe: Callable[[], None] = lambda: None
        self.left: dict[str, str] = {}
        """What was not done because it is not as expected, and why."""
        self.failed: dict[str, str] = {}
        """What the system refused, and why."""

    def run(self, steps: list[Step], breathe: Callable[[], None] = lambda: None) -> None:
        """Do all steps that can be done. New things come before old ones go, wherever the names allow it.

        `breathe` is called between two steps, and may raise.
        """
        self._breathe = breathe
        self._changing = {step.path for step in steps}
        deletes = [step for step in steps if step.want is None]
        folders = [step for step in steps if step.want is not None and step.want.kind == "folder"]
        giving_way = [step for step in steps if gives_way(step)]
        early = [step for step in deletes if any(step.path.startswith(each.path + "/") for each in giving_way)]
        gone = {step.path for step in early}
        contents = [step for step in steps if step.want is not None and step.want.kind != "folder"]
        self._each((step for step in folders if step.now and step.now.kind != "folder"), self._remove)
        self._each((step for step in folders if not (step.now and step.now.kind == "folder")), self._make_folder)
        self._each((step for step in contents if step.source is not None), self._rename)
        self._each(reversed(early), self._remove)
        self._each(reversed(giving_way), self._remove)
        whole = [step for step in contents if step.source is None and not attributes_only(step)]
        self._each(sorted(whole, key=_objects_first), self._write)
        self._each((step for step in contents if step.source is not None or attributes_only(step)), self._attributes)
        self._each(reversed([step for step in deletes if step.path not in gone]), self._remove)
        self._close_again()
        self._each(reversed(folders), self._attributes)

    def _each(self, steps: Iterable[Step], do: Callable[[Step], None]) -> None:
        for step in steps:
            if step.path in self.left or step.path in self.failed:
                continue
            self._breathe()
            try:
                self._check(step)
                do(step)
            except Left as reason:
                self.left[step.path] = str(reason)
            except UndoError as error:
                self.left[step.path] = str(error)
            except OSError as error:
                self.failed[step.path] = error.strerror or str(error)
            if step.source is not None and (step.path in self.left or step.path in self.failed):
                self.left[step.source] = "it could not be renamed"

    def _check(self, step: Step) -> None:
        """Is it still as it was when the plan was made?"""
        if step.path in self._seen:
            return
        self._seen.add(step.path)
        stands = self._standing(step.path)
        if step.now is None or stands is None:
            as_seen = step.now is None and stands is None
        else:
            as_seen = stands.kind == step.now.kind and stands.inode == step.now.inode
            by_us = stands.inode in self._dated  # under another name
            as_seen &= by_us or stands[2:4] == step.now[2:4]
        if not as_seen and not (stands is None and step.want is None):
            raise Left("it has just changed")

    # -- the acts ------------------------------------------------------------------------------------------------

    def _make_folder(self, step: Step) -> None:
        self._in_parent(step.path, lambda: os.mkdir(self._full(step.path), 0o700))

    def _remove(self, step: Step) -> None:
        stands = self._standing(step.path)
        if stands is None:
            return
        if stands.kind != "folder":
            self._in_parent(step.path, lambda: os.unlink(self._full(step.path)))
            return
        try:
            self._in_parent(step.path, lambda: os.rmdir(self._full(step.path)))
        except OSError as error:
            if os.listdir(self._full(step.path)):
                raise Left("there is something else in the folder") from error
            raise

    def _rename(self, step: Step) -> None:
        source = str(step.source)
        if source in self.left or source in self.failed or self._standing(source) is None:
            raise Left("the renamed file is not there any more")
        self._in_parent(source, lambda: self._into_place(self._full(source), step.path))

    def _write(self, step: Step) -> None:
        want = step.want
        assert want is not None
        twin = self._other_name(want)
        passing = os.path.join(self._full(os.path.dirname(step.path)), next(self._passing))
        try:
            self._in_parent(step.path, lambda: self._make(want, passing, twin))
            self._into_place(passing, step.path)
        except BaseException:
            if os.path.lexists(passing):
                os.unlink(passing)
            raise
        if want.kind == "file":
            self._made[want] = step.path

    def _other_name(self, want: Item) -> str | None:
        """Where the very file is already that is wanted, under another name: a hard link.

        The inode does not tell it alone: what two blocks changed was seen at two times, and in between the file
        system may have given the number of a deleted file to another one.
        """
        if want.kind != "file":
            return None
        return self._made.get(want) or self._twin(want, self._changing)

    def _make(self, want: Item, passing: str, twin: str | None) -> None:
        if want.kind == "link":
            os.symlink(str(want.content), passing)
            os.utime(passing, ns=(time.time_ns(), want.mtime_ns), follow_symlinks=False)
        elif want.kind == "other":
            os.mkfifo(passing)
            os.chmod(passing, want.mode)
        elif twin is not None:
            os.link(self._full(twin), passing, follow_symlinks=False)
        else:
            descriptor = os.open(passing, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w+b", buffering=0) as file:
                self._images.write_to(str(want.content), file)
                os.chmod(descriptor, want.mode)
                os.utime(descriptor, ns=(time.time_ns(), want.mtime_ns))

    def _into_place(self, passing: str, path: str) -> None:
        target = self._full(path)
        self._in_parent(path, lambda: os.rename(passing, target))
        if os.path.lexists(passing):  # two names of one file: then a rename does nothing
            os.unlink(passing)

    def _attributes(self, step: Step) -> None:
        want, path = step.want, self._full(step.path)
        assert want is not None
        os.chmod(path, want.mode)
        if want.kind == "file":
            os.utime(path, ns=(time.time_ns(), want.mtime_ns))
            self._dated.add(os.lstat(path).st_ino)

    # -- folders that may not be written ---------------------------------------------------------------------------

    def _in_parent(self, path: str, act: Callable[[], None]) -> None:
        """Do something in the folder of a path, be it closed to writing: then it is opened for that long."""
        parent = os.path.dirname(path)
        self._make_real(parent)
        try:
            act()
        except PermissionError:
            mode = os.lstat(self._full(parent)).st_mode & 0o7777
            if mode & 0o700 == 0o700:
                raise
            os.chmod(self._full(parent), mode | 0o700)
            self._opened.setdefault(parent, mode)
            act()

    def _make_real(self, folder: str) -> None:
        """The folder must be one, in the workspace: a link could lead anywhere."""
        full = self._full(folder)
        if not is_real(full, self._real):
            raise Left("its folder is a link now")
        if not os.path.isdir(full):
            os.makedirs(full)

    def _close_again(self) -> None:
        for folder, mode in self._opened.items():
            if os.path.isdir(self._full(folder)):
                os.chmod(self._full(folder), mode)

    def _standing(self, path: str) -> Item | None:
        return standing(self._root, path, self._real)

    def _full(self, path: str) -> str:
        return os.path.join(self._root, path) if path else self._root


def clear_passing(root: str, paths: Iterable[str], token: str) -> None:
    """Remove what an undo that was cut off left under passing names."""
    for folder in {os.path.dirname(path) for path in paths}:
        full = os.path.join(root, folder)
        if os.path.realpath(full) == full.rstrip("/") and os.path.isdir(full):
            for name in os.listdir(full):
                if name.startswith(f"{PREFIX}{token}-"):
                    os.unlink(os.path.join(full, name))


def _objects_first(step: Step) -> tuple[bool, str]:
    """In a repository, a commit must be there before a branch points to it."""
    folder = repository_of(step.path)
    return folder is not None and not step.path.startswith(f"{folder}/objects/"), step.path


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
