"""Undo and redo of files: planning per path, comparing with what other programs changed since, and restoring.

Each file is replaced whole, and nothing is touched that does not look as expected.
"""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, BinaryIO, Literal, NamedTuple

from interpreter.errors import UndoError
from interpreter.host.files import Folder
from interpreter.workspace.snapshot import FileSnapshot, NotCovered
from interpreter.workspace.store import ContentStore
from interpreter.workspace.tree import Item, Pair, alike, item_at, repository_of, same, unchanged

Direction = Literal["undo", "redo"]
Verb = Literal["create", "restore", "delete", "attributes"]
PREFIX = ".undo-"  # of temporary file names
# These are in every `.git` folder.
_PERMANENT = {"HEAD", "config", "description", "hooks", "info", "info/exclude", "objects", "refs"}
_REPLACED = "its folder has been replaced"


# -- the plan ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A path with what it holds now and what it should hold."""

    path: str
    now: Item | None
    want: Item | None
    drift: bool = False  # another program changed it after the block did
    source: str | None = None  # the file's current path, if it was only renamed
    repository: str | None = None  # the `.git` folder that contains it
    impossible: str | None = None  # why it cannot be done, if it cannot

    @property
    def verb(self) -> Verb:
        if self.want is None:
            return "delete"
        if self.now is None:
            return "create"
        return "attributes" if self.attributes_only else "restore"

    @property
    def attributes_only(self) -> bool:
        """Check whether the content is right already, and only the mode or time has to change."""
        now, want = self.now, self.want
        if now is None or want is None or now.kind != want.kind:
            return False
        if want.kind == "folder":
            return True
        if want.kind == "file" and want.content is None:
            return (now.size, now.mtime_ns, now.inode) == (want.size, want.mtime_ns, want.inode)
        # Another file with the same content may be a hard link to a file that must not change.
        return want.kind == "file" and (now.content, now.inode) == (want.content, want.inode)

    @property
    def replaces_folder(self) -> bool:
        """Check whether restoring replaces a folder by a file or a link."""
        now, want = self.now, self.want
        return now is not None and now.kind == "folder" and want is not None and want.kind != "folder"


class Repository(NamedTuple):
    """A `.git` folder, which is restored as a whole or not at all."""

    folder: str
    # The blocks created, removed or damaged it. Other repositories are only touched on request.
    comes_or_goes: bool
    in_use: bool  # another program has changed it since, or git is running in it
    touched: tuple[str, ...] = ()  # what that program has changed


@dataclass(frozen=True)
class RestorePlan:
    """A planned undo or redo. Nothing has been done yet."""

    direction: Direction
    blocks: tuple[str, ...]  # in the order of undoing or redoing
    position: int  # the number of blocks in force afterwards
    steps: tuple[Step, ...]
    repositories: tuple[Repository, ...] = ()  # the `.git` folders that the blocks changed
    not_covered: tuple[NotCovered, ...] = ()  # blocks whose changes are unknown
    stamp: int = 0

    @property
    def drift(self) -> tuple[Step, ...]:
        """Return the steps that are left alone unless their path is in `overwrite`."""
        return tuple(step for step in self.steps if step.drift)


class Kept(NamedTuple):
    """A path that was left as it is, and why."""

    path: str
    why: str
    drift: bool = False


@dataclass(frozen=True)
class Written:
    paths: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    failed: tuple[Kept, ...] = ()  # the system refused these

    def __add__(self, other: Written) -> Written:
        return Written(self.paths + other.paths, self.kept + other.kept, self.failed + other.failed)


@dataclass(frozen=True)
class RestoreReport:
    direction: Direction
    blocks: tuple[str, ...]
    restored: tuple[str, ...]
    kept: tuple[Kept, ...] = ()
    failed: tuple[Kept, ...] = ()  # the system refused these; `finish` tries again
    # The hashes of files that another program had written and that were overwritten on request.
    saved: dict[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Any]:
        kept = [list(each[:2]) for each in self.kept + self.failed]
        return {"blocks": list(self.blocks), "restored": list(self.restored), "kept": kept, "saved": self.saved}


def plan_steps(changes: Iterable[dict[str, Pair]], snapshot: FileSnapshot, store: ContentStore) -> list[Step]:
    """Plan a step for each path that is not yet as it should be after all changes, made one after the other.

    A file that was only renamed is renamed back, so that it stays the same file, however large it is.
    """
    starts: dict[str, Item | None] = {}
    ends: dict[str, Item | None] = {}
    broken = set()  # another program changed them between two of the changes
    for pairs in changes:
        for path, (old, new) in pairs.items():
            if path in ends and not alike(ends[path], old):
                broken.add(path)
            starts.setdefault(path, old)
            ends[path] = new
    candidates = []
    for path in sorted(ends):
        want, now = ends[path], snapshot.now(path)
        if not same(now, want) and (path or want is not None):  # the workspace itself is never deleted
            drift = not alike(now, want) and (path in broken or not alike(now, starts[path]))
            candidates.append(Step(path, now, want, drift, repository=repository_of(path)))
    leaving = {
        step.now.inode: (step.path, step.now)
        for step in candidates
        if step.want is None and step.now is not None and step.now.kind == "file" and not step.drift
    }
    emptied = tuple(step.path + "/" for step in candidates if step.replaces_folder)
    steps = []
    for step in candidates:
        want = step.want
        if want is not None and want.inode in leaving and not step.replaces_folder:
            source, item = leaving[want.inode]
            is_same_file = same(item._replace(mode=want.mode), want)
            if is_same_file and not source.startswith(emptied) and not step.path.startswith(emptied):
                del leaving[want.inode]
                step = replace(step, source=source)
        if want is not None and not (step.source or step.attributes_only or want.kind == "folder" or store.holds(want)):
            why = f"a {want.content} can't be recreated" if want.kind == "other" else "its content is not stored"
            step = replace(step, impossible=why)
        steps.append(step)
    return steps


def repositories_in(steps: list[Step], snapshot: FileSnapshot, touched: Collection[str]) -> Iterator[Repository]:
    """Yield the `.git` folders that have steps; `touched` are the paths that another program has changed."""
    for folder in sorted({step.repository for step in steps if step.repository}):
        ours = [step for step in steps if step.repository == folder]
        itself = next((step for step in ours if step.path == folder), None)
        goes = itself is not None and itself.want is None
        comes = (itself is not None and itself.now is None) or any(map(_is_torn_out, ours))
        try:
            locked = any(name.endswith(".lock") for name in snapshot.folder.listdir(folder))
        except OSError:
            locked = False
        by_others = tuple(sorted(path for path in touched if repository_of(path) == folder))
        in_use = bool(by_others) or any(step.drift or step.impossible for step in ours) or locked
        if goes:
            leaving = {step.path for step in ours if step.want is None}
            in_use |= any(path not in leaving for path in snapshot.items if path.startswith(f"{folder}/"))
        yield Repository(folder, comes or goes, in_use, by_others)


def _is_torn_out(step: Step) -> bool:
    """Check for a deletion that git itself never makes: the whole folder was being deleted when that was cut off."""
    inside = step.path.removeprefix(f"{step.repository}/")
    return step.now is None and step.want is not None and (inside in _PERMANENT or inside.startswith("hooks/"))


def select_steps(
    plan: RestorePlan, overwrite: Collection[str] = (), repositories: Collection[str] = ()
) -> tuple[list[Step], list[Kept]]:
    """Split the steps into those to do and those to leave, with the reason.

    What another program changed is only touched on request.
    """
    units = {each.folder: each for each in plan.repositories}
    chosen, kept = [], []
    for step in plan.steps:
        unit = units.get(step.repository or "")
        if step.impossible:
            kept.append(Kept(step.path, step.impossible, step.drift))
        elif unit is None:
            if step.drift and step.path not in overwrite:
                kept.append(Kept(step.path, "it was changed after the block", drift=True))
            else:
                chosen.append(step)
        elif not unit.comes_or_goes and unit.folder not in repositories:
            kept.append(Kept(step.path, "git's files are left alone", unit.in_use))
        elif unit.in_use and unit.folder not in overwrite:
            kept.append(Kept(step.path, "the repository has been changed since", unit.in_use))
        elif unit.in_use and step.want is None and step.path.startswith(f"{unit.folder}/objects/"):
            pass  # a later commit may need the object; git removes what nothing needs
        else:
            chosen.append(step)
    return chosen, kept


# -- doing it ----------------------------------------------------------------------------------------------------


class Restoration:
    """Restores a tree step by step.

    `write_content` writes the content with a hash into an empty file. `hard_link` finds another name of the wanted file
    itself, outside the paths that change.
    """

    def __init__(
        self,
        folder: Folder,
        write_content: Callable[[str, BinaryIO], None],
        token: str = "",
        hard_link: Callable[[Item, set[str]], str | None] = lambda want, changing: None,
        interruption_point: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder, self._write_content, self._hard_link = folder, write_content, hard_link
        self._interruption_point = interruption_point  # called between two steps; may raise
        prefix = f"{PREFIX}{token or secrets.token_hex(4)}-"
        self._temporary = (f"{prefix}{number}" for number in count())
        self._checked: set[str] = set()
        self._made: dict[Item, str] = {}
        self._opened: dict[str, int] = {}
        self._dated: set[int] = set()
        self._changing: set[str] = set()
        self._left: dict[str, str] = {}  # paths that were left alone, and why
        self._failed: set[str] = set()  # those that the system refused

    def run(self, steps: list[Step]) -> Written:
        """Do all steps that can be done, creating before deleting where the names allow it."""
        self._changing = {step.path for step in steps}
        deletes = [step for step in steps if step.want is None]
        folders = [step for step in steps if step.want is not None and step.want.kind == "folder"]
        replaced = [step for step in steps if step.replaces_folder]
        early = [step for step in deletes if any(step.path.startswith(each.path + "/") for each in replaced)]
        gone = {step.path for step in early}
        contents = [step for step in steps if step.want is not None and step.want.kind != "folder"]
        self._each((step for step in folders if step.now and step.now.kind != "folder"), self._remove)
        missing = (step for step in folders if not (step.now and step.now.kind == "folder"))
        self._each(missing, lambda step: self._in_parent(step.path, lambda: self._folder.mkdir(step.path, 0o700)))
        self._each((step for step in contents if step.source is not None), self._rename)
        self._each(reversed(early), self._remove)
        self._each(reversed(replaced), self._remove)
        whole = [step for step in contents if step.source is None and not step.attributes_only]
        self._each(sorted(whole, key=_objects_first), self._write)
        self._each((step for step in contents if step.source is not None or step.attributes_only), self._attributes)
        self._each(reversed([step for step in deletes if step.path not in gone]), self._remove)
        for folder, mode in self._opened.items():
            if self._folder.is_dir(folder):
                self._folder.chmod(folder, mode)
        self._each(reversed(folders), self._attributes)
        left = [Kept(path, why) for path, why in self._left.items()]
        return Written(
            tuple(step.path for step in steps if step.path not in self._left),
            tuple(each for each in left if each.path not in self._failed),
            tuple(each for each in left if each.path in self._failed),
        )

    def _each(self, steps: Iterable[Step], do: Callable[[Step], None]) -> None:
        for step in steps:
            if step.path in self._left:
                continue
            self._interruption_point()
            try:
                self._check(step)
                do(step)
            except UndoError as reason:  # the path is left as it is
                self._left[step.path] = str(reason)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    self._left[step.path] = _REPLACED
                else:
                    self._left[step.path] = error.strerror or str(error)
                    self._failed.add(step.path)
            if step.source is not None and step.path in self._left:
                self._left[step.source] = "it could not be renamed"

    def _check(self, step: Step) -> None:
        """Raise UndoError if a path is not as it was when the plan was made."""
        if step.path in self._checked:
            return
        self._checked.add(step.path)
        present, now = item_at(self._folder, step.path), step.now
        if present is not None and now is not None and present.inode in self._dated:
            present = present._replace(size=now.size, mtime_ns=now.mtime_ns)  # we changed it under another name
        if not unchanged(present, now) and not (present is None and step.want is None):
            raise UndoError("it has just changed")

    # -- the steps -----------------------------------------------------------------------------------------------

    def _remove(self, step: Step) -> None:
        present = item_at(self._folder, step.path)
        if present is not None and present.kind != "folder":
            self._in_parent(step.path, lambda: self._folder.unlink(step.path))
        elif present is not None:
            try:
                self._in_parent(step.path, lambda: self._folder.rmdir(step.path))
            except OSError as error:
                if self._folder.listdir(step.path):
                    raise UndoError("the folder contains other files") from error
                raise

    def _rename(self, step: Step) -> None:
        source = str(step.source)
        if source in self._left or not self._folder.exists(source):
            raise UndoError("the renamed file no longer exists")
        self._in_parent(source, lambda: self._into_place(source, step.path))

    def _write(self, step: Step) -> None:
        want = step.want
        assert want is not None
        # The inode alone does not identify a hard link: the two changes were seen at different times, and in between
        # the file system may have given the number of a deleted file to another one.
        link = (self._made.get(want) or self._hard_link(want, self._changing)) if want.kind == "file" else None
        temporary = os.path.join(os.path.dirname(step.path), next(self._temporary))
        try:
            self._in_parent(step.path, lambda: self._make(want, temporary, link))
            self._into_place(temporary, step.path)
        except BaseException:
            if self._folder.exists(temporary):
                self._folder.unlink(temporary)
            raise
        if want.kind == "file":
            self._made[want] = step.path

    def _make(self, want: Item, path: str, link: str | None) -> None:
        if want.kind == "link":
            self._folder.symlink(str(want.content), path)
            self._folder.utime(path, (time.time_ns(), want.mtime_ns))
        elif want.kind == "other":
            self._folder.mkfifo(path)
            self._folder.chmod(path, want.mode)
        elif link is not None:
            self._folder.link(link, path)
        else:
            with self._folder.open(path, "x+b", 0o600, buffering=0) as file:
                self._write_content(str(want.content), file)
                os.chmod(file.fileno(), want.mode)
                os.utime(file.fileno(), ns=(time.time_ns(), want.mtime_ns))

    def _into_place(self, temporary: str, path: str) -> None:
        self._in_parent(path, lambda: self._folder.replace(temporary, path))
        if self._folder.exists(temporary):  # a rename between two names of one file does nothing
            self._folder.unlink(temporary)

    def _attributes(self, step: Step) -> None:
        want, path = step.want, step.path
        assert want is not None
        self._folder.chmod(path, want.mode)
        if want.kind == "file":
            self._folder.utime(path, (time.time_ns(), want.mtime_ns))
            self._dated.add(self._folder.stat(path).st_ino)

    def _in_parent(self, path: str, act: Callable[[], None]) -> None:
        """Act in the folder of a path; a read-only folder is made writable for that long."""
        parent = os.path.dirname(path)
        if not self._folder.is_dir(parent):
            try:
                self._folder.mkdir(parent, parents=True, exist_ok=True)
            except FileExistsError as error:
                raise UndoError(_REPLACED) from error
        try:
            act()
        except PermissionError:
            mode = self._folder.stat(parent).st_mode & 0o7777
            if mode & 0o700 == 0o700:
                raise
            self._folder.chmod(parent, mode | 0o700)
            self._opened.setdefault(parent, mode)
            act()


def _objects_first(step: Step) -> tuple[bool, str]:
    """Sort a repository's objects first, because a commit must exist before a branch points to it."""
    folder = repository_of(step.path)
    return folder is not None and not step.path.startswith(f"{folder}/objects/"), step.path
