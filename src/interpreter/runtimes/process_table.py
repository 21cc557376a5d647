"""Which processes came from a supervisor's; it runs this file on first need, and so on Python 3.8 too."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection


def descendants(apart: Collection[int], started_from: int = 0) -> list[int]:
    """Every process below this one that started at or after the given clock tick; not what is apart, nor its own."""
    parents, started = process_table()
    found: list[int] = []
    frontier = [os.getpid()]
    while frontier:
        above = frontier.pop()
        below = [pid for pid, parent in parents.items() if parent == above and pid not in apart]
        frontier += below
        found += below
    return [pid for pid in found if started.get(pid, started_from) >= started_from]


def name_of(pid: int) -> str:
    try:
        with open("/proc/%d/comm" % pid) as file:
            return file.read().strip()
    except OSError:
        return "process"


def process_table() -> tuple[dict[int, int], dict[int, int]]:
    if not os.path.exists("/proc/self/stat"):
        return process_table_by_ps()
    parents: dict[int, int] = {}
    started: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended while we looked
            parents[int(name)], started[int(name)] = int(fields[1]), int(fields[19])
    return parents, started


def process_table_by_ps() -> tuple[dict[int, int], dict[int, int]]:
    """Without /proc (macOS; untested): parents only, so a sweep takes every descendant."""
    rows = os.popen("ps -axo pid=,ppid=").read().split("\n")
    pairs = [row.split() for row in rows if row.strip()]
    return {int(pid): int(parent) for pid, parent in pairs}, {}
