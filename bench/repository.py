"""Work in a repository: the diff on the card, an edit, a commit."""

from __future__ import annotations

from typing import Any

from bench.subject import OURS, Subject, once, probe
from bench.table import Measurement


@once
def repository(subject: Subject) -> dict[str, Any]:
    return probe(subject.python, "repository", timeout=300)


MEASUREMENTS = [
    Measurement(
        "card: until it is shown with its diff (bare: without)",
        "s",
        lambda it: repository(it)["card"],
        lambda: repository(OURS)["words"],
        budget=0.3,
    ),
    Measurement(
        "card: from the yes to the end, applied (bare: run)",
        "s",
        lambda it: repository(it)["applied"],
        lambda: repository(OURS)["run"],
        budget=0.05,
    ),
    Measurement("edit: files.replace", "s", lambda it: repository(it)["edit"]),
    Measurement(
        "commit: one file of 1,000 (bare: git commit -a)",
        "s",
        lambda it: repository(it)["commit"],
        lambda: repository(OURS)["git"],
    ),
]
