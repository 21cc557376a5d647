"""The cost of running a block."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

from bench.subject import OURS, ProbeFailure, Subject, once, probe
from bench.table import Measurement

OTHERS = {"r": "R", "ruby": "Ruby", "java": "Java", "fish": "fish", "sql": "SQL"}
PROGRAMS = {"r": "Rscript", "ruby": "ruby", "java": "jshell", "fish": "fish"}
KERNELS = {"python": ("Python", "ipykernel"), "r": ("R", "irkernel")}
LANGUAGES = {"python": "Python", "shell": "shell", "javascript": "JavaScript"}
BUDGETS = {"python": 0.005, "shell": 0.003, "javascript": 0.002}  # Python's with a snapshot


@once
def blocks(subject: Subject, language: str) -> dict[str, Any]:
    runs = [_blocks_once(subject, language) for _ in range(1 if subject.is_original else 3)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


@once
def cold_with_stack(subject: Subject) -> float:
    if subject.is_original:
        raise ProbeFailure("has none")
    runs = [probe(subject.python, "blocks", language="python", repeats=1, stack=True) for _ in range(3)]
    return min(float(run["cold"]) for run in runs)


def _blocks_once(subject: Subject, language: str) -> dict[str, Any]:
    repeats = 5 if subject.is_original else 200 if language in LANGUAGES else 30
    return probe(subject.python, "blocks", language=language, repeats=repeats)


@once
def many_sessions(subject: Subject, warm: bool, with_imports: bool, sessions: int = 10) -> dict[str, Any]:
    """New Python sessions, from a warm parent or not; with imports, each block needs numpy, pandas and matplotlib."""
    if subject.is_original:
        raise ProbeFailure("has none")
    code = "import numpy, pandas, matplotlib.pyplot" if with_imports else "1 + 1"
    return probe(subject.python, "many_sessions", timeout=900, warm=warm, code=code, sessions=sessions)


def other_blocks(language: str, subject: Subject) -> float:
    if subject.is_original:
        raise ProbeFailure("not measured")
    if language in PROGRAMS and shutil.which(PROGRAMS[language]) is None:
        raise ProbeFailure("not installed")
    return float(blocks(subject, language)["warm"])


@once
def bare_blocks() -> dict[str, Any]:
    return probe(Path(sys.executable), "bare_blocks")


@once
def snapshots(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("has none")
    runs = [probe(subject.python, "snapshots") for _ in range(3)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


@once
def kernel(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("has none")
    runs = [probe(subject.python, "kernel") for _ in range(3)]
    return {"added": sorted(run["added"] for run in runs)[1]}  # the median: the smallest would be luck


@once
def sandbox(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("has none")
    return probe(subject.python, "sandbox")


@once
def remote(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("has none")
    measured = probe(subject.python, "over_ssh")
    if "failure" in measured:
        raise ProbeFailure(str(measured["failure"]))
    return measured


@once
def preview(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("has none")
    return probe(subject.python, "preview")


def measured_seconds(measured: dict[str, Any], key: str) -> float:
    if key not in measured:
        raise ProbeFailure(str(measured.get(f"{key.partition('_')[0]}_failure", "was not measured")))
    return float(measured[key])


@once
def lines(subject: Subject) -> dict[str, Any]:
    runs = [probe(subject.python, "lines") for _ in range(1 if subject.is_original else 3)]
    return min(runs, key=lambda run: run["seconds"])


MEASUREMENTS = [
    Measurement(
        "first Python block, cold",
        "s",
        lambda it: blocks(it, "python")["cold"],
        lambda: bare_blocks()["cold"],
        budget=0.30,
    ),
    Measurement(
        "first Python block with the data stack (bare: without)",
        "s",
        cold_with_stack,
        lambda: blocks(OURS, "python")["cold"],
        budget_of_bare=1.2,
    ),
    *(
        Measurement(
            f"new Python session{' from a warm parent' if warm else ''}, {words}",
            "s",
            partial(lambda warm, imports, it: many_sessions(it, warm, imports)["median"], warm, imports),
        )
        for imports, words in ((False, "first block"), (True, "import numpy, pandas, matplotlib"))
        for warm in (False, True)
    ),
    *(
        Measurement(
            f"warm {label} block, median",
            "s",
            partial(lambda language, it: blocks(it, language)["warm"], language),
            partial(lambda language: bare_blocks()[language], language),
            budget=BUDGETS[language],
        )
        for language, label in LANGUAGES.items()
    ),
    Measurement(
        "warm Python block over ssh on loopback (bare: a local one)",
        "s",
        lambda it: remote(it)["there"],
        lambda: blocks(OURS, "python")["warm"],
    ),
    *(
        Measurement(
            f"{label} block, median",
            "s",
            partial(other_blocks, language),
            partial(lambda language: bare_blocks()[language], language),
        )
        for language, label in OTHERS.items()
    ),
    *(
        Measurement(
            f"{label} block (bare: its Jupyter kernel)",
            "s",
            partial(other_blocks, language),
            partial(lambda kernel: bare_blocks()[kernel], kernel),
        )
        for language, (label, kernel) in KERNELS.items()
    ),
    Measurement("HTML block with a screenshot, median", "s", partial(other_blocks, "html")),
    Measurement("session kernel overhead of a block", "s", lambda it: kernel(it)["added"], budget=0.0003),
    Measurement("warm Python block without a snapshot", "s", lambda it: snapshots(it)["without"], budget=0.002),
    Measurement("the same, 0.1 s after the previous block", "s", lambda it: snapshots(it)["paused"]),
    Measurement("snapshot overhead of a block", "s", lambda it: snapshots(it)["added"], budget=0.003),
    Measurement("the same with 1 GB resident", "s", lambda it: snapshots(it)["large"], budget=0.030),
    Measurement("snapshot overhead of a block without a pause before it", "s", lambda it: snapshots(it)["hurried"]),
    Measurement("from a crash to the next block's end", "s", lambda it: snapshots(it)["recovered"]),
    *(
        measurement
        for language, label in LANGUAGES.items()
        for measurement in (
            Measurement(
                f"sandbox overhead of starting {label}",
                "s",
                partial(lambda language, it: sandbox(it)[f"{language}_start"], language),
                budget=0.060,
            ),
            Measurement(
                f"sandbox overhead of a warm {label} block",
                "s",
                partial(lambda language, it: sandbox(it)[f"{language}_block"], language),
            ),
        )
    ),
    *(
        Measurement(
            f"{words} of a {label} block",
            "s",
            partial(lambda key, it: measured_seconds(preview(it), key), f"{name}_{what}"),
        )
        for name, label in (("python", "Python"), ("shell", "shell"))
        for what, words in (
            ("enter", "start a preview"),
            ("discard", "discard a preview"),
            ("apply", "apply a preview"),
        )
    ),
    Measurement(
        "overhead of granting a path to a Python block in a sandbox",
        "s",
        lambda it: measured_seconds(preview(it), "widened"),
    ),
    Measurement(
        "100,000 lines of 80 characters from Python",
        "s",
        lambda it: lines(it)["seconds"],
        lambda: bare_blocks()["lines"],
        budget=0.5,
    ),
    Measurement("the same, growth of our memory", "MB", lambda it: lines(it)["megabytes"], budget=10),
]

MANY = [  # minutes
    Measurement(
        "memory of each of 50 Python sessions with numpy, pandas and matplotlib",
        "MB",
        lambda it: many_sessions(it, False, True, 50)["megabytes"],
    ),
    Measurement(
        "memory of each of 50 Python sessions from a warm parent",
        "MB",
        lambda it: many_sessions(it, True, True, 50)["megabytes"],
    ),
]
