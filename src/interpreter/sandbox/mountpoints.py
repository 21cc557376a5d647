"""Places to mount things at, in folders that code inside can write to: made by us, and never a link."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from interpreter.sandbox.places import Places


def make_ways(scratch: Path, places: Places, own: Iterable[Path]) -> None:
    """See to it that the folders on the way to each mount are folders, where the sandbox's own folders are mounted."""
    bases = {places.home: scratch / "home", Path("/tmp"): scratch / "tmp", Path("/var/tmp"): scratch / "tmp"}
    for place in (*places.readable, *places.writable, *own):
        for base, folder in bases.items():
            if place != base and place.is_relative_to(base):
                make_way(folder, place.relative_to(base).parts, is_folder=place.is_dir())
                break


def make_way(folder: Path, names: tuple[str, ...], is_folder: bool) -> None:
    """The folders below one another; what has their name and is none, a link above all, goes."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in names if is_folder else names[:-1]:
            here = step(here, name)
        if not is_folder:
            with contextlib.suppress(OSError):
                os.unlink(names[-1], dir_fd=here)
    finally:
        os.close(here)


def step(here: int, name: str) -> int:
    """Into a folder of that name, made if there is none; lets go of the one before."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=here)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            return os.open(name, flags, dir_fd=here)
        except OSError:
            os.unlink(name, dir_fd=here)
            os.mkdir(name, 0o700, dir_fd=here)
            return os.open(name, flags, dir_fd=here)
    finally:
        os.close(here)
