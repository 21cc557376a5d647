"""The cost of recording and resuming a session."""

from __future__ import annotations

from typing import Any

from bench.subject import Subject, once, probe
from bench.table import Measurement


@once
def opened(subject: Subject) -> dict[str, Any]:
    runs = [probe(subject.python, "session", blocks=10_000, sessions=1_000) for _ in range(3)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


MEASUREMENTS = [
    Measurement("open a session of 10,000 blocks", "s", lambda it: opened(it)["seconds"], budget=1),
    Measurement("the same, memory per byte of its journal", "x", lambda it: opened(it)["per_byte"], budget=4),
    Measurement("list 1,000 sessions that were not closed", "s", lambda it: opened(it)["listing"], budget=0.5),
]
