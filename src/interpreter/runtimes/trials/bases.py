"""Where the layers of a view are kept: in folders among the temporary files, one for each file system that may do."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
MEMORY = "/dev/shm"
ROOM = 1024 * 1024 * 1024  # bytes that must be free where files are held in memory
MOST = 3  # places to try for a layer: not every file system can hold one
LOCK = "lock"
PREFIX = "interpreter-view-"


class Bases:
    """The folders of one view, which are locked as long as it is there."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, int]] = {}  # by the folder that they are in: itself, and the lock on it

    def for_layer(self, root: str, in_memory: bool) -> list[str]:
        """Folders to try for a layer over the root: none is inside what it lies on."""
        named = [tempfile.gettempdir(), *TEMPORARY, str(Path.home())]
        if in_memory and has_room(MEMORY):
            named.insert(0, MEMORY)
        parents = [path for path in dict.fromkeys(map(os.path.realpath, named)) if not is_below(path, root)]
        usable = [path for path in parents if os.access(path, os.W_OK | os.X_OK)]
        return [self._base_in(parent) for parent in usable[:MOST]]

    def _base_in(self, parent: str) -> str:
        if parent not in self._made:
            clear_away(parent)
            base = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)
            self._made[parent] = base, locked(base)
        return self._made[parent][0]

    def remove(self) -> None:
        made, self._made = self._made, {}
        for base, lock in made.values():
            forget(base)
            os.close(lock)


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def has_room(folder: str) -> bool:
    try:
        facts = os.statvfs(folder)
    except OSError:
        return False
    return facts.f_bavail * facts.f_frsize >= ROOM


def locked(base: str) -> int:
    """Mark a folder as in use, for as long as the descriptor is open."""
    path = os.path.join(base, LOCK)
    lock = os.open(path + ".new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(path + ".new", path)
    return lock


def clear_away(parent: str) -> None:
    """Delete what a host left behind that was killed in the middle of a preview."""
    for name in os.listdir(parent):
        if not name.startswith(PREFIX):
            continue
        try:
            lock = os.open(os.path.join(parent, name, LOCK), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # another user's, or so new that it has none yet
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            forget(os.path.join(parent, name))
        except BlockingIOError:
            pass  # in use
        finally:
            os.close(lock)


def forget(folder: str) -> None:
    """Delete a folder, whatever the modes in it say."""
    for place, names, _ in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
