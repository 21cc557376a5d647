"""Who is in a view besides the copy itself."""

from __future__ import annotations

import os

from interpreter.runtimes.trials.gate import mounts_of, program_of


def others_in(place: int, known: int | None) -> list[str]:
    """The processes that a block started in a view and that go on."""
    numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [f"{program_of(pid)} ({pid})" for pid in numbers if pid != known and mounts_of(pid) == place]
