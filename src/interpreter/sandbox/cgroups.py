"""Limits on all processes of a sandbox together, where we may make control groups: as root, or in one's own session.

Other limits hold for each process by itself, and the one on the number of processes does not hold for root.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from interpreter.sandbox.sandbox import MEGABYTE, Limits

ROOT = Path("/sys/fs/cgroup")
NAME = "interpreter-"

# by controller, the files of version 1 and of version 2
MEMORY = {1: "memory.limit_in_bytes", 2: "memory.max"}
PROCESSES = {1: "pids.max", 2: "pids.max"}


class Groups:
    """The control groups of one sandbox: as many as were to be had, perhaps none."""

    def __init__(self, limits: Limits) -> None:
        self.folders: list[Path] = []
        self.holds: set[str] = set()
        if limits.memory is not None:
            self._make("memory", MEMORY, limits.memory * MEGABYTE)
        if limits.processes is not None:
            self._make("pids", PROCESSES, limits.processes)

    def _make(self, controller: str, files: dict[int, str], value: int) -> None:
        for parent, version in parents(controller):
            folder = parent / f"{NAME}{os.getpid()}-{id(self):x}"
            try:
                drop_stale(parent)
                folder.mkdir(exist_ok=True)
                (folder / files[version]).write_text(f"{value}\n")
            except OSError:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                continue
            if folder not in self.folders:
                self.folders.append(folder)
            self.holds.add(controller)
            return

    @property
    def doors(self) -> list[str]:
        """The files that a process enters by writing its number to them."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def close(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                folder.rmdir()  # not while somebody is in it


def parents(controller: str) -> Iterator[tuple[Path, int]]:
    """Where a group with this controller might be made: beside ours or below it."""
    for line in own_groups():
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            yield ROOT / names.split(",")[0] / path.lstrip("/"), 1
            yield ROOT / controller, 1
        elif number == "0" and names == "":
            own = ROOT / path.lstrip("/")
            yield own.parent if own != ROOT else own, 2
            yield own, 2


def own_groups() -> list[str]:
    try:
        return Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []


def drop_stale(parent: Path) -> None:
    """Groups whose maker was killed."""
    for folder in parent.glob(f"{NAME}*"):
        pid = folder.name.removeprefix(NAME).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
