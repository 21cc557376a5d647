"""Measures the memory that is left, for code that starts many sessions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def available_megabytes() -> int | None:
    """Return what can be used, of the machine or of the container; None where the system doesn't say."""
    known = []
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text("ascii")
        known.append(int(text.split("MemAvailable:")[1].split()[0]) // 1024)
    with suppress(OSError, ValueError):
        most, used = (Path("/sys/fs/cgroup", name).read_text("ascii") for name in ("memory.max", "memory.current"))
        known.append((int(most) - int(used)) // 1024**2)
    return min(known, default=None)
