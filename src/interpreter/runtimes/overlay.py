"""Where the layers of a view are kept: in folders among the temporary files, one for each file system that may do."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from interpreter.errors import NotPreviewableError
from interpreter.messages import Chunk
from interpreter.runtimes import seccomp_notify
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.seccomp_notify import Denied, Gate

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


PATIENCE = 60.0  # seconds


class View:
    """A workspace, the home folder and temporary files, as a block may see and change them without consequence."""

    def __init__(self, workspace: str) -> None:
        self.workspace = os.path.realpath(workspace)
        self.shared: list[str] = []  # folders that stay as they are
        self.layers: dict[str, str] = {}  # by folder, where what is written in it goes; known once somebody is inside
        self.place = 0
        self._bases = Bases()

    @staticmethod
    def check(workspace: str) -> None:
        """Say why there can be none here, if so."""
        if sys.platform != "linux":
            raise NotPreviewableError("A preview needs Linux: this system has no copy-on-write view of a folder.")
        if platform.machine() not in seccomp_notify.MACHINES:
            raise NotPreviewableError(
                f"A preview cannot close the network on this kind of machine ({platform.machine()})."
            )
        path = os.path.realpath(workspace)
        if path == "/":
            raise NotPreviewableError(f"There can be no copy-on-write view of {path}.")
        inside = [mount for mount in mounts() if mount.startswith(path + "/")]
        if inside:
            raise NotPreviewableError(f"Another file system is mounted in the workspace, at {inside[0]}.")

    def plan(self) -> dict[str, Any]:
        """What the process that goes in is told."""
        roots = [path for path in other_folders() if self._fits(path)]
        told = [self._root(path, str(number)) for number, path in enumerate([*roots, self.workspace])]
        return {
            "roots": told,
            "shared": self.shared,
            "filter": seccomp_notify.program().hex(),
            "machine": platform.machine(),
        }

    def _fits(self, path: str) -> bool:
        if path == "/" or is_below(path, self.workspace) or not os.access(path, os.W_OK | os.X_OK):
            return False
        return all(is_below(mount, self.workspace) for mount in mounts() if mount.startswith(path + "/"))

    def _root(self, path: str, name: str) -> dict[str, Any]:
        needed = path == self.workspace
        bases = self._bases.for_layer(path, in_memory=not needed)
        return {"path": path, "name": name, "bases": bases, "needed": needed}

    def remove(self) -> None:
        """Forget what was written."""
        self._bases.remove()


def take_in(view: View, line: socket.socket, gate: Gate) -> list[str]:
    """Lead the process at the other end of this line into a view; what it had to leave outside."""
    try:
        with line:
            line.settimeout(PATIENCE)
            line.sendall(json.dumps(view.plan()).encode() + b"\n")
            said, listeners = received(line)
            if "failed" in said:
                raise NotPreviewableError(f"There is no copy-on-write view of the workspace here: {said['failed']}.")
            view.layers, view.place = said["layers"], said["place"]
            gate.close(view.place)
            for listener in listeners:
                gate.attend(listener)
            line.sendall(b"x")
            return list(said["lost"])
    except OSError as error:
        raise NotPreviewableError("The process that the block should be tried out in does not answer.") from error


def received(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What a process says of its view, and where it asks what it may do."""
    data, listeners, _, _ = socket.recv_fds(line, 65536, 1)
    while data and not data.endswith(b"\n"):
        data += line.recv(65536)
    return (json.loads(data) if data else {"failed": "the process ended"}), listeners


def other_folders() -> list[str]:
    """Where programs write that work elsewhere: caches, settings, temporary files."""
    named = (*TEMPORARY, tempfile.gettempdir(), str(Path.home()))
    found = dict.fromkeys(os.path.realpath(path) for path in named if os.path.isdir(path))
    return [path for path in found if not any(is_below(path, other) and path != other for other in found)]


def mounts() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return [line.split()[4].replace("\\040", " ") for line in file]


class Trial(Protocol):
    """A copy of a session, in a view: the block runs in the copy, and then one of the two goes on."""

    lost: list[str]
    """What the copy does not have that the session has: connections, threads, pipes."""

    @property
    def active(self) -> BaseLanguage:
        """Runs the block, and can be told to stop."""

    def run(self, code: str) -> Iterator[Chunk]:
        """Run the block and yield its chunks; an interrupt ends it as any other."""

    @property
    def died(self) -> bool:
        """Whether the copy ended: then it cannot be kept."""

    @property
    def denied(self) -> list[Denied]:
        """What the block wanted to do and could not."""

    def keep(self) -> list[str]:
        """The copy is the session from now on, in the real file system; what could not come along."""

    def drop(self) -> None:
        """End the copy and everything that it started: the session is as it was."""
