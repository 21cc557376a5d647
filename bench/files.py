"""The cost of file undo, compared with git-stash-style checkpoints."""

from __future__ import annotations

from typing import Any

from bench import repository
from bench.subject import OURS, Subject, once, probe
from bench.table import Measurement


@once
def files(subject: Subject) -> dict[str, Any]:
    runs = [probe(subject.python, "files", files=10_000) for _ in range(3)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


@once
def large(subject: Subject) -> dict[str, Any]:
    return probe(subject.python, "large_workspace", timeout=600, files=200_000)


def compared_with_git(what: str, key: str, budget: float | None = None) -> Measurement:
    """Measure a row whose bare limit is a checkpoint in a separate git directory, without ignored files and times."""
    return Measurement(
        f"undo: {what} (bare: git)", "s", lambda it: files(it)[key], lambda: files(OURS)[f"git_{key}"], budget=budget
    )


MEASUREMENTS = [
    compared_with_git("block in a workspace of 10 files", "small", budget=0.001),
    compared_with_git("block in an unchanged tree of 10,000 files", "unchanged", budget=0.060),
    Measurement(
        "undo: the same (bare: lstat of each, twice)",
        "s",
        lambda it: files(it)["unchanged"],
        lambda: files(OURS)["bare"],
    ),
    compared_with_git("block that changes 100 of them", "changed"),
    compared_with_git("undo of these 100", "undo"),
    Measurement(
        "undo: 1,000 files through descriptors (bare: written by path)",
        "s",
        lambda it: files(it)["restored"],
        lambda: files(OURS)["by_path"],
    ),
    Measurement(
        "undo: block in 200,000 files and 20 GB (bare: lstat of each, twice)",
        "s",
        lambda it: large(it)["block"],
        lambda: large(OURS)["bare"],
        budget=0.060,
    ),
    Measurement("undo: first scan of these 200,000 files, in the background", "s", lambda it: large(it)["first"]),
    compared_with_git("first copy of 10,000 files", "first"),
    Measurement("undo: disk space of this copy", "MB", lambda it: files(it)["megabytes"]),
    *repository.MEASUREMENTS,
]
