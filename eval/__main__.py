"""Run the tasks with a local model, and print which ones succeeded: `make eval`, `make eval-original`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from eval.gauge import Gauge
from eval.outcome import Outcome
from eval.report import Run, line, report
from eval.subjects import Chat, Limits, Original, Ours, Subject, can_contain, python_with, served
from eval.task import Task
from eval.tasks import TASKS
from interpreter.errors import InterpreterError

TIME_LIMIT = 120  # seconds for a task
say = partial(print, file=sys.stderr, flush=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m eval", description=__doc__)
    add = parser.add_argument
    add("--model", default="builtin/qwen2.5-coder-1.5b", help="a built-in model: builtin/NAME or builtin/PATH.gguf")
    add("--packages", choices=("ours", "none", "data"), default="ours", help="the Python packages that code finds")
    add("--only", action="append", default=[], metavar="NAME", help="only tasks whose name contains this; repeatable")
    add("--repeat", type=int, default=1, metavar="N", help="run every task N times")
    add("--json", type=Path, metavar="FILE", help="write all results and conversations to FILE")
    add("--original", action="store_true", help="also run 0.4.3, installing it once")
    add("--original-profile", metavar="FILE", help="use one of 0.4.3's own profiles, such as local.py")
    add("--skip-ours", action="store_true", help="only the original")
    add("--time-limit", type=float, default=TIME_LIMIT, metavar="SECONDS", help=f"for one task (default: {TIME_LIMIT})")
    add("--block-limit", type=int, default=12, metavar="N", help="for one turn (default: 12)")
    add("--fresh", action="store_true", help="no prompt cache: slower, and the same from run to run")
    add("--list", action="store_true", help="print the tasks and exit")
    return parser.parse_args()


def do(task: Task, subject: Subject, gauge: Gauge, limits: Limits) -> Run:
    """Run the task in a fresh folder, and check the result."""
    with tempfile.TemporaryDirectory(prefix="eval-", ignore_cleanup_errors=True) as home:
        folder = Path(home).resolve() / "work"
        folder.mkdir()
        task.prepare(folder)
        gauge.take()
        chat = subject.chat(task.words, folder, limits)
        why = _unended(chat, len(task.words), limits) or task.verdict(Outcome(folder, chat.messages))
    tokens = gauge.take()
    return Run(subject.name, task.name, why, chat.blocks, tokens.read, tokens.written, chat.seconds, chat.messages)


def _unended(chat: Chat, turns: int, limits: Limits) -> str:
    """Why the task counts as failed regardless of its effect: the user would still be waiting."""
    if chat.broke == "time":
        return f"not at its end after {limits.seconds:g} s"
    if chat.broke == "blocks" or chat.blocks > limits.blocks * turns:
        return f"not at its end after {limits.blocks} blocks"
    return chat.broke


def runs(given: argparse.Namespace) -> Iterator[Run]:
    limits = Limits(given.time_limit, given.block_limit)
    chosen = [task for task in TASKS if not given.only or any(name in task.name for name in given.only)]
    with served(given.model, given.fresh) as (file, gauge):
        subjects: list[Subject] = [] if given.skip_ours else [Ours(file, python_with(given.packages))]
        if given.original or given.skip_ours:
            subjects.append(Original(gauge, given.original_profile))
        for subject in subjects:
            for task in chosen:
                for _ in range(given.repeat):
                    run = do(task, subject, gauge, limits)
                    say(line(run))
                    yield run


def write(path: Path, model: str, measured: Sequence[Run]) -> None:
    content = {"model": model, "runs": [asdict(run) | {"done": run.done} for run in measured]}
    path.write_text(json.dumps(content, indent=1, default=str), encoding="utf-8")


def main() -> int:
    given = options()
    if given.list:
        print("\n".join(f"{task.name:20} {' / '.join(task.words)}" for task in TASKS))
        return 0
    measured: list[Run] = []
    try:
        for run in runs(given):
            measured.append(run)
            if given.json:
                write(given.json, given.model, measured)  # after each run: an interrupt loses nothing
    except InterpreterError as error:
        say(error)
        return 1
    if not measured:
        say("No task has that in its name; --list shows them all.")
        return 2
    print(f"\n{conditions(given)}\n\n{report(measured)}")
    if not given.skip_ours:
        print("\nours ran " + ("in a sandbox" if can_contain() else "without a sandbox: bubblewrap is not there"))
    return 0


def conditions(given: argparse.Namespace) -> str:
    """Describe the conditions of the measurement on one line."""
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    cache = "no prompt cache" if given.fresh else "prompt cache on"
    limit = "" if given.time_limit == TIME_LIMIT else f", {given.time_limit:g} s for a task"
    return f"{given.model}, packages: {given.packages}, temperature 0, {cache}{limit}; {machine}"


if __name__ == "__main__":
    sys.exit(main())
