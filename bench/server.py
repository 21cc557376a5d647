"""The server's capacity: live sessions, stored sessions, and readers, compared with a Jupyter server."""

from __future__ import annotations

from typing import Any

from bench.subject import OURS, ProbeFailure, Subject, once, probe
from bench.table import Measurement

JUPYTER_KERNELS = 10  # each needs 100 MB


@once
def server(subject: Subject, what: str, sessions: int = 0, preload: bool = False) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("has one session")
    more = {"readers": 1000, "streaming": 20, "lines": 50} if what == "readers" else {}
    return probe(subject.python, "server", 900, what=what, sessions=sessions, preload=preload, **more)


def jupyter(key: str) -> float:
    return float(server(OURS, "jupyter", JUPYTER_KERNELS)[key])


MEASUREMENTS = [
    Measurement(
        "server: memory of each of 10 live sessions (bare: a Jupyter kernel)",
        "MB",
        lambda it: server(it, "live", 10)["each"],
        lambda: jupyter("each"),
    ),
    Measurement(
        "server: warm block with 10 live sessions (bare: a Jupyter kernel)",
        "s",
        lambda it: server(it, "live", 10)["median"],
        lambda: jupyter("median"),
        budget=0.05,
    ),
    Measurement("server: first list of 10,000 stored sessions", "s", lambda it: server(it, "stored", 10_000)["first"]),
    Measurement(
        "server: first search, which reads all of them", "s", lambda it: server(it, "stored", 10_000)["reading"]
    ),
    Measurement(
        "server: later lists of stored sessions", "s", lambda it: server(it, "stored", 10_000)["listing"], budget=0.25
    ),
    Measurement(
        "server: search in stored sessions", "s", lambda it: server(it, "stored", 10_000)["searching"], budget=0.25
    ),
    Measurement(
        "server: memory added by stored sessions", "MB", lambda it: server(it, "stored", 10_000)["grown"], budget=20
    ),
    Measurement(
        "server: memory of each of 1,000 idle readers", "MB", lambda it: server(it, "readers")["each"], budget=0.2
    ),
    Measurement(
        "server: delivery of an event while 20 sessions stream, p99",
        "s",
        lambda it: server(it, "readers")["slowest"],
        budget=0.1,
    ),
]

MANY = [  # minutes
    Measurement(
        "server: memory of 200 live sessions from a warm parent, all processes",
        "MB",
        lambda it: server(it, "live", 200, True)["total"],
        budget=1500,
    ),
    Measurement(
        "server: warm block with 200 live sessions, median",
        "s",
        lambda it: server(it, "live", 200, True)["median"],
        budget=0.05,
    ),
    Measurement("server: the same, p99", "s", lambda it: server(it, "live", 200, True)["slowest"]),
]
