"""What it takes to start a sub-agent: a fork of the session in a sandbox."""

from __future__ import annotations

from typing import Any

from bench.subject import OURS, Subject, once, probe
from bench.table import Measurement


@once
def forked(subject: Subject) -> dict[str, Any]:
    return probe(subject.python, "sub_agent", megabytes=512, runs=3)


@once
def small(subject: Subject) -> dict[str, Any]:
    return probe(subject.python, "sub_agent", megabytes=1, runs=3)


# The bare limit is a fork with an overlay mount. Ours moves the variables into a sandbox, which takes a copy of them.
MEASUREMENTS = [
    Measurement(
        "a sub-agent's copy of a small session", "s", lambda it: small(it)["seconds"], lambda: small(OURS)["bare"]
    ),
    Measurement("and of one with 512 MB", "s", lambda it: forked(it)["seconds"], lambda: forked(OURS)["bare"]),
    Measurement("memory of an idle sub-agent", "MB", lambda it: small(it)["megabytes"]),
]
