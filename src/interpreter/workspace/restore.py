"""Makes a tree as it should be: each file is replaced whole, and nothing that looks other than expected is touched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from itertools import count

from interpreter.errors import UndoError
from interpreter.workspace.images import Images
from interpreter.workspace.items import (
    Item,
    item_from,
    repository_of,
)
from interpreter.workspace.plan import (
    Step,
    attributes_only,
    gives_way,
)
from interpreter.workspace.tree import key_of

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


def standing(root: str, path: str, real: set[str]) -> Item | None:
    """What `stat` says about a path, contents aside; None if nothing is there or a link leads there.

    `real` are folders that are known to be reached without a link.
    """
    full = os.path.join(root, path) if path else root
    try:
        facts = os.lstat(full)
    except OSError:
        return None
    if path and not is_real(os.path.dirname(full), real):
        return None
    return item_from(key_of(facts), None)


def is_real(folder: str, real: set[str]) -> bool:
    """Is there no link on the way to a folder?"""
    if folder not in real:
        if os.path.realpath(folder) != folder:
            return False
        real.add(folder)
    return True


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
