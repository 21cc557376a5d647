"""What it costs to be able to undo what blocks do to files; and what git-stash-style checkpoints cost instead."""

from __future__ import annotations

from typing import Any

from bench.subject import OURS, Subject, once, probe
from bench.table import Measurement


@once
def files(subject: Subject) -> dict[str, Any]:
    runs = [probe(subject.python, "files", files=10_000) for _ in range(3)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


MEASUREMENTS = [
    Measurement(
        "file record: block in an unchanged tree of 10,000 files",
        "s",
        lambda it: files(it)["unchanged"],
        lambda: files(OURS)["bare"],
        budget=0.060,
    ),
    Measurement("git stash: the same, before the block alone", "s", lambda it: files(it)["git_unchanged"]),
    Measurement("file record: block that changes 100 of them", "s", lambda it: files(it)["changed"]),
    Measurement("git stash: the same, before the block alone", "s", lambda it: files(it)["git_changed"]),
    Measurement("file record: undo of these 100", "s", lambda it: files(it)["undo"]),
    Measurement("file record: first copy of 10,000 files", "s", lambda it: files(it)["first"]),
    Measurement("git add: the same, in a new repository", "s", lambda it: files(it)["git_first"]),
]
