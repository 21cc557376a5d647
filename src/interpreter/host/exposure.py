"""Folders that sandboxed code can write to: our own process runs and imports nothing in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType, ModuleType

_writable_by_code: set[str] = set()


def distrust(*folders: str | os.PathLike[str]) -> None:
    """Mark folders as writable by sandboxed code: nothing in them is run or imported."""
    _writable_by_code.update(map(os.path.realpath, folders))
    if _Imports not in sys.meta_path:
        sys.meta_path.insert(next((at for at, each in enumerate(sys.meta_path) if each is PathFinder), 0), _Imports)


class _Imports:
    """Imports our modules, and those that ours import, from outside the folders that sandboxed code can write to.

    With `python -m interpreter`, or a script in the workspace, Python looks in the workspace first. The user's own
    modules are still found there.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        exposed = [] if path is not None else [folder for folder in sys.path if is_exposed(folder or os.curdir)]
        if not exposed or _is_for_user(sys._getframe(1)):
            return None
        spec = PathFinder.find_spec(name, [folder for folder in sys.path if folder not in exposed], target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r} outside the workspace", name=name)
        return spec


def _is_for_user(frame: FrameType | None) -> bool:
    """Check whether the user's code makes an import, by looking for the nearest frame that is theirs or ours."""
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
        if name.partition(".")[0] == "interpreter":
            return False
        if name == "__main__" or (os.path.isabs(file) and is_exposed(file)):
            return True
        frame = frame.f_back
    return False


def exposed_folder(path: str) -> tuple[str, str] | None:
    """Return the first folder on the way to a path that sandboxed code can write to, and the rest of the path.

    Links are followed one at a time: behind that folder a link may be the code's own, and is not followed.
    """
    *left, here = reversed(_parts(os.path.abspath(path)))
    links = 0
    while left:
        if here in _writable_by_code:
            return here, "/".join(reversed(left))
        here = os.path.join(here, left.pop())
        if os.path.islink(here) and links < 40:
            links += 1
            left += reversed(_parts(os.path.normpath(os.path.join(os.path.dirname(here), os.readlink(here)))))
            here = left.pop()
    return None


def _parts(path: str) -> list[str]:
    drive, rest = os.path.splitdrive(path)
    return [drive + os.sep, *filter(None, rest.split(os.sep))]


def is_exposed(path: str) -> bool:
    """Check whether sandboxed code can write to a path. Our installation is protected, even inside such a folder."""
    ours = [place for place in map(os.path.realpath, (sys.prefix, sys.base_prefix)) if _is_writable(place)]
    places = [os.path.abspath(path), os.path.realpath(path)]
    return any(_is_writable(place) and not any(is_inside(place, each) for each in ours) for place in places)


def _is_writable(path: str) -> bool:
    return any(is_inside(path, folder) for folder in _writable_by_code)


def is_inside(path: str, folder: str) -> bool:
    """Check whether a path is a folder or inside it, judging by the names alone."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
