"""Dry runs: a block runs in a copy of its runtime, which sees the workspace through a copy-on-write overlay.

For Python, the copy is a fork of the worker, and the worker itself is suspended. For the shell, it is a new shell.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.errors import NotPreviewableError
from interpreter.host.exposure import is_inside
from interpreter.host.files import lock, remove
from interpreter.questions import Question, Step
from interpreter.runtimes.block import notice
from interpreter.runtimes.calls import DryRunTools
from interpreter.runtimes.live import how_done
from interpreter.runtimes.protocol import BadFrame, Frame, decode
from interpreter.runtimes.seccomp_notify import MACHINES, Denied, SyscallGate, filter_program, others_in
from interpreter.runtimes.state import numbers

if TYPE_CHECKING:
    from interpreter.runtimes.python import Python
    from interpreter.runtimes.shell.language import Shell


TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
MEMORY = "/dev/shm"
MIN_FREE_MEMORY = 1024 * 1024 * 1024  # bytes that must be free where files are held in memory
MAX_ATTEMPTS = 3  # places to try for a layer: not every file system can hold one
LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs")  # can be below a layer
LOCK = "lock"
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
        self.place = 0  # the id of its mount namespace
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
                layers, place = answer.get("layers") or {}, answer.get("place")
                if answer.get("failed") or place is None:
                    why = answer.get("failed") or "it can't be entered"
                    raise NotPreviewableError(f"Can't make a copy-on-write view of the workspace: {why}.")
                offered = [
                    (root["path"], os.path.join(base, root["name"])) for root in plan["roots"] for base in root["bases"]
                ]
                if not all(any(is_offered(layer, each) for each in offered) for layer in layers.items()):
                    raise BadFrame("a layer that it was not offered")
                self.layers, self.place = layers, place
                self.read_only = [root["path"] for root in plan["roots"] if root["path"] not in layers]
                gate.close(self.place)
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
        return {"roots": roots, "shared": self.shared, "filter": filter_program().hex(), "machine": platform.machine()}

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
    (path, upper), (root, place) = layer, offer
    is_part = path.startswith(f"{root}/") and os.path.realpath(path) == path
    parts = r"(\.\d+)+" if is_part else ""
    return (path == root or is_part) and re.fullmatch(re.escape(place) + parts + "/upper", str(upper)) is not None


def mounts() -> dict[str, str]:
    kinds = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            facts, _, more = line.partition(" - ")
            path = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), facts.split()[4])
            kinds[path] = more.split()[0]
    return kinds


# -- Python ------------------------------------------------------------------------------------------------------------

NO_COPY = "Can't copy the Python session right now, which a dry run needs."


class PythonDryRun:
    """A dry run in a fork of the worker, until one of the two processes is chosen."""

    def __init__(self, language: Python, overlay: Overlay) -> None:
        self.lost: list[str] = []  # what could not be copied: connections, threads, pipes
        self.active = language  # runs the block, so `stop` must act on it
        self._overlay = overlay
        self._done: Frame | None = None
        self._over = False
        self._runtime = runtime = language.start()
        language.check_idle("A Python block is running. Try the preview again when it has finished.")
        language.gate = language.gate or SyscallGate()
        self._gate = language.gate
        if not runtime.alive:
            language.known_cwd, language.known_env = runtime.launch.cwd, {}  # where the first worker started
        runtime.have_worker()
        if runtime.query({"op": "leave_view"}, TIMEOUT, early=True) is None:  # not ready, or cannot be copied
            raise NotPreviewableError(NO_COPY)
        if language.state is not None:  # a snapshot, so that the block can be undone after it was kept
            runtime.snapshots.take(language.present, language.most_snapshots)
        ours, theirs = socket.socketpair()
        with theirs:
            replaced = runtime.snapshots.suspend_worker(next(numbers), theirs.fileno())
        if not replaced:
            ours.close()
            raise NotPreviewableError(NO_COPY)
        try:
            outside = overlay.enter(ours, self._gate)
            ready = runtime.snapshots.first_words()
            if ready is None:
                raise NotPreviewableError(NO_COPY)
            if ready["unknown_threads"]:
                raise NotPreviewableError(
                    "A library in the Python session has threads that can't be copied, so a dry run is not possible."
                )
        except BaseException:
            self.drop()
            raise
        self.lost = [*ready["lost"], *outside]

    def run(self, code: str) -> Iterator[Step]:
        """Run the block and yield its chunks; an interrupt ends it as usual."""
        language, runtime = self.active, self._runtime
        language.stopped = False
        fields = language.run_fields()
        runtime.calls.tools = DryRunTools()
        runtime.settle(runtime.block)
        block = runtime.begin(code, language.channels(), fields, language.context.timeout)
        if language.was_stopped():
            runtime.interrupt()
        try:
            for event in block.events(runtime.interrupt):
                match event["event"]:
                    case "done":
                        self._done = event
                        yield language.closing(event.get("exit_code"), how_done(event))
                    case "exited" | "detached":
                        end = event.get("how", "it was moved to the background")
                        yield notice(
                            f"The copy of the Python session for this dry run has ended ({end}). The session itself is "
                            "not affected.\n"
                        )
                        ended = "timed_out" if event.get("why") == "timed_out" else "died"
                        yield language.closing(event.get("code"), ended)
                    case _:
                        yield from language.chunks(event)
        finally:
            runtime.leave(block)

    @property
    def died(self) -> bool:
        """Check whether the copy has ended, so that it cannot be kept."""
        return self._over or self._done is None or not self._runtime.alive

    @property
    def denied(self) -> list[Denied]:
        report = (self._done or {}).get("denied") or {}
        hosts = [Denied("network", "python", host) for host in report.get("hosts") or ()]
        paths = [Denied("write", "python", path) for path in report.get("paths") or ()]
        denied = self._gate.denied
        if hosts:  # these name more precisely what Python tried to reach
            denied = [
                each for each in denied if each.what != "network" or each.target or not each.by.startswith("python")
            ]
        return [*denied, *hosts, *paths]

    # -- the choice ----------------------------------------------------------------------------------------------

    def keep(self) -> list[str]:
        """Continue with the copy, in the real file system. Returns what was lost."""
        self._over = True
        self._gate.open(self._overlay.place)
        runtime, place = self._runtime, self._overlay.place
        left = [f"{each}, which stays where it was" for each in others_in(place, runtime.pid)]
        answer = runtime.query({"op": "leave_view"}, TIMEOUT, early=True)  # the copy returns to the real files
        if answer is None or not runtime.alive:
            runtime.snapshots.end_dry_run(keep=False, place=place)
            return ["the variables, which stay as they were before the block"]
        runtime.snapshots.end_dry_run(keep=True)
        self.active.state_before = self.active.leave_state()
        self.active.apply_changes(self._done or {})
        return [*self.lost, *(each for each in answer.get("lost") or () if each not in self.lost), *left]

    def drop(self) -> None:
        """Kill the copy and everything that it started, and leave the runtime as it was."""
        if self._over:
            return
        self._over = True
        self._runtime.settle(self._runtime.block)
        self._runtime.snapshots.end_dry_run(keep=False, place=self._overlay.place)
        self._gate.open(self._overlay.place)


# -- the shell ---------------------------------------------------------------------------------------------------------


class ShellDryRun:
    """A dry run in a new shell, until the live one takes over its state or not."""

    def __init__(self, language: Shell, overlay: Overlay) -> None:
        language.check_idle("A shell block is running. Try the preview again when it has finished.")
        self.lost: list[str] = []
        self._language, self._overlay, self._gate = language, overlay, SyscallGate()
        self._code, self._ended, self._over = "", "", False
        with tempfile.TemporaryDirectory(prefix="interpreter-") as folder, socket.socket(socket.AF_UNIX) as door:
            door.bind(f"{folder}/door")
            door.listen(1)
            door.settimeout(TIMEOUT)
            self.active = language.in_overlay(f"{folder}/door")
            copy = self.active.start()
            self.active.known_cwd, self.active.known_env = None, {}  # its state may be older than both
            overlay.shared.append(str(copy.folder))
            try:
                line, _ = door.accept()
                overlay.enter(line, self._gate)
            except BaseException as error:
                self.drop()
                if isinstance(error, TimeoutError):
                    raise NotPreviewableError("Can't start a shell for the dry run.") from error
                raise

    def run(self, code: str) -> Iterator[Step]:
        self._code = code
        for step in self.active.run(code):
            if not isinstance(step, Question):
                self._ended = step.get("ended", self._ended)
            yield step

    @property
    def died(self) -> bool:
        return self._over or self._ended in ("", "died", "background")

    @property
    def denied(self) -> list[Denied]:
        return self._gate.denied

    def keep(self) -> list[str]:
        """Transfer to the live shell what a state can hold, which excludes background jobs. Returns what was lost."""
        language, copy = self._language, self.active.runtime
        state, context = self.active.saved_state(), self.active.context
        left = others_in(self._overlay.place, copy.pid if copy is not None else None)
        self.drop()
        if state is None:
            return ["the shell's variables"]
        language.take_over(state, self._code)
        language.context.cwd = context.cwd
        language.context.exported.update(context.exported)
        language.known_cwd, language.known_env = context.cwd, dict(language.context.exported)
        return [f"{each}, which was stopped" for each in left]

    def drop(self) -> None:
        self._over = True
        self.active.terminate()
        self._gate.open(self._overlay.place)


# A copy of a runtime in an overlay: the block runs in the copy, then either the copy or the original is kept.
DryRun = PythonDryRun | ShellDryRun
