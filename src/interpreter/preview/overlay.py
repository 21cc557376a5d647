"""The copy-on-write view of the files that a dry run gets."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from interpreter.errors import NotPreviewableError
from interpreter.host.exposure import is_inside
from interpreter.host.files import lock, remove
from interpreter.preview.system_calls import SyscallGate, filter_program
from interpreter.runtimes.protocol import BadFrame, Frame, decode
from interpreter.sandbox.system_calls import MACHINES

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
MEMORY = "/dev/shm"
MIN_FREE_MEMORY = 1024 * 1024 * 1024  # bytes that must be free where files are held in memory
MAX_ATTEMPTS = 3  # places to try for a layer: not every file system can hold one
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs")  # can be below a layer
LOCK = "lock"
VIEW_PROGRAM = Path(__file__).parent / "driver.py"  # runs in the process that enters
PREFIX = "interpreter-view-"
TIMEOUT = 60.0  # seconds
MAX_REPORT_BYTES = 1 << 24  # bytes


class Overlay:
    """The workspace, the home folder and temporary files in a view that a block can change without consequence."""

    def __init__(self, workspace: str) -> None:
        self.workspace = os.path.realpath(workspace)
        self.shared: list[str] = []  # folders outside the overlay
        self.layers: dict[str, str] = {}  # by folder, where changes go; known once a process is inside
        self.read_only: list[str] = []  # writable places that could not get a layer
        self.namespace = 0  # the id of its mount namespace
        self._folders: dict[str, tuple[str, int]] = {}  # by parent: a folder for layers, and its lock

    @staticmethod
    def check(workspace: str) -> None:
        """Raise NotPreviewableError if this system cannot make an overlay."""
        if sys.platform != "linux":
            raise NotPreviewableError("A preview needs Linux. This system has no copy-on-write view of a folder.")
        if platform.machine() not in MACHINES:
            raise NotPreviewableError(f"A preview can't block the network on this processor ({platform.machine()}).")
        path = os.path.realpath(workspace)
        if path == "/":
            raise NotPreviewableError(f"Can't make a copy-on-write view of {path}.")
        inside = [mount for mount in mounts() if mount.startswith(path + "/")]
        if inside:
            raise NotPreviewableError(f"Another file system is mounted in the workspace, at {inside[0]}.")

    def enter(self, line: socket.socket, gate: SyscallGate) -> list[str]:
        """Move the process at the other end of a socket into the overlay. Returns what it had to leave outside."""
        plan = self._plan()
        try:
            with line:
                line.settimeout(TIMEOUT)
                line.sendall(json.dumps(plan).encode() + b"\n")
                data, listeners, _, _ = socket.recv_fds(line, 65536, 1)
                while data and not data.endswith(b"\n") and len(data) < MAX_REPORT_BYTES:
                    data += line.recv(65536)
                answer: Frame = decode(data) if data else {"failed": "the process ended"}
                layers, namespace = answer.get("layers") or {}, answer.get("namespace")
                if answer.get("failed") or namespace is None:
                    why = answer.get("failed") or "it can't be entered"
                    raise NotPreviewableError(f"Can't make a copy-on-write view of the workspace: {why}.")
                offered = [
                    (root["path"], os.path.join(base, root["name"])) for root in plan["roots"] for base in root["bases"]
                ]
                if not all(any(is_offered(layer, each) for each in offered) for layer in layers.items()):
                    raise BadFrame("a layer that it was not offered")
                self.layers, self.namespace = layers, namespace
                self.read_only = [root["path"] for root in plan["roots"] if root["path"] not in layers]
                gate.close(self.namespace)
                for listener in listeners:
                    gate.attend(listener)
                line.sendall(b"x")
                return answer.get("lost") or []
        except (OSError, BadFrame) as error:
            raise NotPreviewableError("The process for the dry run does not answer.") from error

    def _plan(self) -> dict[str, Any]:
        """Build the instructions for the process that enters."""
        # Programs write caches, settings and temporary files outside the workspace.
        named = (*TEMPORARY, tempfile.gettempdir(), str(Path.home()))
        folders = dict.fromkeys(os.path.realpath(path) for path in named if os.path.isdir(path))
        outermost = [path for path in folders if not any(is_inside(path, other) and path != other for other in folders)]
        covered, kinds = [*filter(self._fits, outermost)], mounts()
        inside = [path for path in sorted(kinds) if any(path.startswith(f"{root}/") for root in covered)]
        roots = []
        for number, path in enumerate([*covered, *inside, self.workspace]):
            needed, is_mount = path == self.workspace, path in inside
            # Don't even look at a network file system, which may not answer.
            can_hold = not is_mount or (kinds[path] in LOCAL and os.access(path, os.W_OK | os.X_OK))
            bases = self._layer_folders(path, in_memory=not needed) if can_hold and os.path.isdir(path) else []
            roots.append({"path": path, "name": str(number), "bases": bases, "needed": needed, "mount": is_mount})
        return {
            "program": str(VIEW_PROGRAM),
            "roots": roots,
            "shared": self.shared,
            "filter": filter_program().hex(),
            "machine": platform.machine(),
        }

    def _fits(self, path: str) -> bool:
        return path != "/" and not is_inside(path, self.workspace) and os.access(path, os.W_OK | os.X_OK)

    def _layer_folders(self, root: str, in_memory: bool) -> list[str]:
        """Create folders to try for a layer over the root, on different file systems, none inside the root."""
        named = [tempfile.gettempdir(), *TEMPORARY, str(Path.home())]
        if in_memory and os.path.isdir(MEMORY) and shutil.disk_usage(MEMORY).free >= MIN_FREE_MEMORY:
            named.insert(0, MEMORY)
        parents = [path for path in dict.fromkeys(map(os.path.realpath, named)) if not is_inside(path, root)]
        usable = [path for path in parents if os.access(path, os.W_OK | os.X_OK)][:MAX_ATTEMPTS]
        for parent in usable:
            if parent not in self._folders:
                remove_abandoned(parent)
                folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)
                path = os.path.join(folder, LOCK)
                descriptor = os.open(path + ".new", os.O_CREAT | os.O_RDWR, 0o600)
                lock(descriptor, wait=True)  # the folder is in use for as long as this is open
                os.rename(path + ".new", path)
                self._folders[parent] = folder, descriptor
        return [self._folders[parent][0] for parent in usable]

    def remove(self) -> None:
        folders, self._folders = self._folders, {}
        for folder, locked in folders.values():
            remove(folder)
            os.close(locked)


def remove_abandoned(parent: str) -> None:
    """Delete the folders of a host that was killed during a preview."""
    for folder in Path(parent).glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(folder / LOCK, os.O_RDWR)
        except OSError:
            continue  # another user's, or too new to have a lock
        try:
            lock(descriptor)
            remove(folder)
        except BlockingIOError:
            pass  # in use
        finally:
            os.close(descriptor)


def is_offered(layer: tuple[str, Any], offer: tuple[str, str]) -> bool:
    """Check that a layer is the one offered for a root, or for a part of that root."""
    (path, upper), (root, folder) = layer, offer
    is_part = path.startswith(f"{root}/") and os.path.realpath(path) == path
    parts = r"(\.\d+)+" if is_part else ""
    return (path == root or is_part) and re.fullmatch(re.escape(folder) + parts + "/upper", str(upper)) is not None


def mounts() -> dict[str, str]:
    kinds = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            facts, _, more = line.partition(" - ")
            path = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), facts.split()[4])
            kinds[path] = more.split()[0]
    return kinds
