"""What it costs to run a block."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from bench.subject import Subject, once, probe
from bench.table import Measurement

LANGUAGES = {"python": "Python", "shell": "shell", "javascript": "JavaScript"}
BUDGETS = {"python": 0.002, "shell": 0.003, "javascript": 0.002}


@once
def blocks(subject: Subject, language: str) -> dict[str, Any]:
    runs = [_blocks_once(subject, language) for _ in range(1 if subject.is_original else 3)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


def _blocks_once(subject: Subject, language: str) -> dict[str, Any]:
    return probe(subject.python, "blocks", language=language, repeats=5 if subject.is_original else 200)


@once
def bare_blocks() -> dict[str, Any]:
    return probe(Path(sys.executable), "bare_blocks")


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
        "100,000 lines of 80 characters from Python",
        "s",
        lambda it: lines(it)["seconds"],
        lambda: bare_blocks()["lines"],
        budget=0.5,
    ),
    Measurement("the same, growth of our memory", "MB", lambda it: lines(it)["megabytes"], budget=10),
]
