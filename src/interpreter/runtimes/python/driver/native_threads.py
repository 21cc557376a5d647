"""Threads that are not Python's: the pools of numerical libraries, of which a fork takes none along."""

from __future__ import annotations

import os
from _thread import _count

from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

GNU, OTHERS = "libgomp", ("libomp", "libiomp5")  # the others end all pools, those of other threads too
PAUSE_HARD = 2
COME_BACK = (b"jemalloc_bg_thd",)  # its library starts it anew
LOOKS = 20  # at a thread that is on its way out


def python_threads() -> int:
    """How many threads Python has started that still run."""
    return _count()


class OpenMP:
    """The OpenMP libraries of this process, whose pools end when asked to and come again on need."""

    def __init__(self) -> None:
        self._libraries: Dict[str, Any] = {}
        self._seen = 0

    def pause(self) -> None:
        """Without this, the GNU one waits in a forked child for threads that are not there."""
        threads = native_threads(os.getpid(), python_threads())
        if threads <= 0:
            return
        if threads != self._seen:
            self._seen = threads
            self._find()
        for name, pause in self._libraries.items():
            if name.startswith(GNU) or not python_threads():
                pause(PAUSE_HARD)

    def _find(self) -> None:
        for path in loaded_files():
            name = os.path.basename(path)
            if name.startswith((GNU, *OTHERS)) and name not in self._libraries:
                library = trusted_import("ctypes").CDLL(path)
                pause = getattr(library, "omp_pause_resource_all", None)  # GNU's has it from version 9 on
                if pause is not None:
                    self._libraries[name] = pause


def loaded_files() -> List[str]:
    """The files that are mapped into this process."""
    try:
        with open("/proc/self/maps") as file:
            return sorted({line[line.index("/") :].rstrip("\n") for line in file if "/" in line})
    except OSError:
        return []


def native_threads(pid: int, pythons: int) -> int:
    """How many threads of a process are neither the main one nor Python's, nor know what to do after a fork."""
    folder = "/proc/%d/task/" % pid
    try:
        tasks = os.listdir(folder)
    except OSError:
        return 0
    if len(tasks) - 1 - pythons <= 0:
        return 0
    return sum(name_of(folder + task) not in COME_BACK for task in tasks) - 1 - pythons


def name_of(task: str) -> bytes:
    try:
        with open(task + "/comm", "rb") as file:
            return file.read().rstrip()
    except OSError:
        return b""  # it ended just now; if not, it is counted once more


def remaining_threads(pid: int, pythons: int) -> int:
    """The same of a process that stands still, after those that were ending have ended."""
    for _ in range(LOOKS):
        count = native_threads(pid, pythons)
        if count <= 0:
            return 0
        os.sched_yield()
    return count
