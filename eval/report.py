"""The results: one row per task, per kind of task, and in total."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from bench.table import layout

from eval.outcome import Message

HEADINGS = ["task", "done", "blocks", "tokens in", "tokens out", "seconds", "why not"]


@dataclass(frozen=True)
class Run:
    """One run of a task by one subject; `why` is empty if it succeeded."""

    subject: str
    task: str
    why: str
    blocks: int
    tokens_in: int
    tokens_out: int
    seconds: float
    messages: list[Message]

    @property
    def done(self) -> bool:
        return not self.why

    @property
    def kind(self) -> str:
        return self.task.partition("/")[0]


def report(runs: Sequence[Run]) -> str:
    """Write the tables of all subjects, and their comparison."""
    subjects = list(dict.fromkeys(run.subject for run in runs))
    parts = [_of_one(subject, [run for run in runs if run.subject == subject]) for subject in subjects]
    if len(subjects) == 2:
        ours, theirs = (_share(run for run in runs if run.subject == subject) for subject in subjects)
        ratio = f"{ours / theirs:.2f} times" if theirs else "against none of"
        parts.append(f"{subjects[0]} {ours:.0%}, {subjects[1]} {theirs:.0%}: {ratio} the original's score")
    return "\n\n".join(parts)


def line(run: Run) -> str:
    """One run in a line, to show progress."""
    return f"{run.subject:6} {run.task:20} {'done' if run.done else run.why:60.60} {run.seconds:6.1f} s"


def _of_one(subject: str, runs: Sequence[Run]) -> str:
    by_task = [_row(name, list(group)) for name, group in groupby(runs, attrgetter("task"))]
    kinds = [
        ", ".join(
            f"{kind} {sum(run.done for run in runs if run.kind == kind)}/{sum(run.kind == kind for run in runs)}"
            for kind in dict.fromkeys(run.kind for run in runs)
        )
    ]
    return "\n\n".join([f"## {subject}", layout([HEADINGS, *by_task, _row("total", runs, total=True)]), *kinds])


def _row(name: str, runs: Sequence[Run], total: bool = False) -> list[str]:
    done = sum(run.done for run in runs)
    share = f"{done}/{len(runs)}" if total or len(runs) > 1 else "yes" if done else "NO"
    per = 1 if total else len(runs)
    sums = [sum(getattr(run, field) for run in runs) / per for field in ("blocks", "tokens_in", "tokens_out")]
    why = f"{done / len(runs):.0%}" if total else "; ".join(dict.fromkeys(run.why for run in runs if run.why))
    seconds = sum(run.seconds for run in runs) / per
    return [name, share, *(f"{each:,.0f}" for each in sums), f"{seconds:,.1f}", why[:90].replace("|", "/")]


def _share(runs: Iterable[Run]) -> float:
    marks = [run.done for run in runs]
    return sum(marks) / len(marks)
