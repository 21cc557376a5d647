"""Which folders a view lets code write in, and where that goes instead."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from interpreter.errors import NotPreviewableError
from interpreter.runtimes.trials import calls
from interpreter.runtimes.trials.bases import (
    TEMPORARY,
    Bases,
    is_below,
)
from interpreter.runtimes.trials.gate import Gate

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
        if platform.machine() not in calls.MACHINES:
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
        return {"roots": told, "shared": self.shared, "filter": calls.program().hex(), "machine": platform.machine()}

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
