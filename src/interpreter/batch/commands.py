"""`interpreter batch FILE --out FILE`, `batch status` and `batch-worker`, and `interpreter.batch(...)` in Python."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.api import OpenInterpreter
from interpreter.app import models
from interpreter.app.forks import fork
from interpreter.batch.run import Batch, Limits, Link, ProcessLink, Progress, ThreadLink
from interpreter.batch.store import Store, read_status
from interpreter.batch.tasks import Task, digest_of, read_tasks, tasks_of
from interpreter.batch.worker import MODES
from interpreter.config.setting import given_settings
from interpreter.console_text import visible
from interpreter.errors import InterpreterError, UsageError
from interpreter.frontends import exit_codes, flags
from interpreter.frontends.headless.run import OutputSchema
from interpreter.host.files import remove
from interpreter.host.memory import available_megabytes
from interpreter.llm.usage import in_dollars
from interpreter.policy.policy import mode_of
from interpreter.session import Do

if TYPE_CHECKING:
    from interpreter.batch.run import Inbox

MAX_PROCESSES = 4
TASKS_PER_CORE = 8
TASK_MEGABYTES = 50  # a session with pandas loaded
UNATTENDED = (
    "A batch can't ask before it runs code. Use -y, --mode auto, or --mode auto-in-sandbox with --sandbox workspace."
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="interpreter batch FILE --out FILE",
        description="Run each row of FILE as a task in a session of its own, and write each result once.",
        epilog="All other flags of `interpreter` work as well, such as --model, -y, --sandbox and --output_schema. "
        "--max_budget is for the whole batch.",
        allow_abbrev=False,
        add_help=False,
    )
    add = made.add_argument
    add("--out", required=True, help="the results: a .jsonl, .csv or .parquet file")
    add("--prompt", help="what to ask about each row, with its columns in braces: 'Summarise {text}'")
    add("--sample", type=int, help="run only the first N tasks, then estimate what all would take")
    add("--check", action="store_true", help="check everything without sending a request")
    add("--retry_failed", action="store_true", help="run the tasks again that failed")
    add("--concurrency", type=int, help="how many tasks run at once (default: by cores and free memory)")
    add("--deadline", type=float, default=600.0, help="seconds for one task (default: 600)")
    add("--max_failures", type=int, help="stop when more tasks than this have failed")
    add("--requests_per_minute", type=float, help="how many requests may be sent in a minute")
    add("--tokens_per_minute", type=float, help="how many tokens may be used in a minute")
    return made


def print_help(arguments: list[str]) -> int:
    print(parser().format_help(), end="")
    return 0


def start(arguments: list[str]) -> int:
    """Run a batch as the command line says; return the exit code."""
    given, rest = parser().parse_known_args([_with_underscores(each) for each in arguments[2:]])
    parsed = flags.parse(rest)
    if parsed.message is not None:
        raise UsageError(f"{parsed.message!r} is no flag. The prompt of a batch is given with --prompt.")
    from interpreter.frontends.start import configured

    interpreter, _ = configured(parsed)
    tasks, out = read_tasks(Path(arguments[1]), given.prompt), Path(given.out)
    schema_file = parsed.actions.get("output_schema")
    schema = OutputSchema.read_file(schema_file).schema if schema_file is not None else None
    for task in tasks:
        if task.schema is not None:
            OutputSchema(task.schema, f"The schema of {task.id}")
    _check(interpreter)
    chosen = tasks[: given.sample] if given.sample else tasks
    if given.check:
        print(f"{len(tasks):,} tasks, nothing wrong. Nothing was sent.")
        return exit_codes.DONE
    limits = Limits(
        given.concurrency or default_concurrency(),
        interpreter.llm.max_budget,
        given.requests_per_minute,
        given.tokens_per_minute,
        given.deadline,
        given.max_failures,
    )
    store = _opened(interpreter, tasks, out, schema, given.retry_failed)
    line = StatusLine()
    batch = _local(interpreter, chosen, store, schema, limits, line.show)
    try:
        with _interrupts(batch):
            for _ in batch.run():
                pass
    finally:
        line.end()
        store.finish(task.id for task in tasks)
        store.close()
    progress = batch.progress()
    print(summary(progress, out, len(chosen)), file=sys.stderr)
    if given.sample:
        print(estimate(store, chosen, len(tasks), limits), file=sys.stderr)
    if batch.was_stopped:
        return exit_codes.INTERRUPTED
    return exit_codes.ERROR if progress.failed else exit_codes.DONE


def status(arguments: list[str]) -> int:
    """Print how far a batch is."""
    if len(arguments) != 3:
        raise UsageError("interpreter batch status FILE: name the file with the results.")
    state = read_status(Path(arguments[2]))
    progress = Progress(state["tasks"], state["done"], state["failed"], state["running"], state["cost"],
                        state["tokens"])  # fmt: skip
    print(described(progress) + ("" if state["is_running"] else " · not running"))
    return exit_codes.DONE


def _with_underscores(argument: str) -> str:
    name, equals, value = argument.partition("=")
    known = {option for action in parser()._actions for option in action.option_strings}
    plain = name.replace("-", "_").replace("__", "--", 1)
    return f"{plain}{equals}{value}" if plain in known else argument


def default_concurrency() -> int:
    """Return how many tasks can run at once here: they mostly wait for the model, so memory decides."""
    free = available_megabytes()
    most = TASKS_PER_CORE * (os.cpu_count() or 1)
    return most if free is None else max(1, min(most, int(free / 2 / TASK_MEGABYTES)))


def _check(interpreter: OpenInterpreter) -> None:
    """Make sure that a batch can run with these settings; an error says what to change."""
    if mode_of(interpreter) not in MODES:
        raise UsageError(UNATTENDED)
    if not models.is_model_named(interpreter):
        models.choose_by_key(interpreter)
    if (problem := models.model_problem(interpreter)) is not None:
        raise problem
    interpreter.computer.runtimes.apply_sandbox()


def _opened(
    interpreter: OpenInterpreter, tasks: list[Task], out: Path, schema: Any, retry_failed: bool = False
) -> Store:
    llm = interpreter.llm
    depends_on = {
        "model": (llm.model, llm.api_base),
        "schema": schema,
        "mode and sandbox": (mode_of(interpreter), interpreter.sandbox),
        "instructions": (interpreter.system_message, interpreter.custom_instructions),
    }
    store = Store(out, retry_failed)
    try:
        store.begin(digest_of(tasks, depends_on), len(tasks))
    except BaseException:
        store.close()
        raise
    return store


def _local(
    interpreter: OpenInterpreter,
    tasks: list[Task],
    store: Store,
    schema: Any,
    limits: Limits,
    show: Callable[[Progress], None] = lambda progress: None,
    from_here: bool = False,
) -> Batch:
    """Make a batch whose workers are processes here, or with `from_here` threads with forks of this session."""
    if from_here:

        def begin(inbox: Inbox) -> Link:
            return ThreadLink(inbox, lambda folder: _forked(interpreter, folder))

        return Batch(tasks, store, limits, {"schema": schema}, begin, 1, show)
    settings = sendable_settings(interpreter)
    settings.pop("llm.max_budget", None)
    hello = {"settings": settings, "schema": schema}
    return Batch(tasks, store, limits, hello, ProcessLink, min(os.cpu_count() or 1, MAX_PROCESSES), show)


def _forked(interpreter: OpenInterpreter, folder: str) -> OpenInterpreter:
    """Make the session of a task from this one: its files, variables and conversation."""
    making = Do("fork", lambda: fork(interpreter, folder), recorded=False)
    made: OpenInterpreter = interpreter.session.perform(making, interpreter.user).result()
    if made.forked is not None:
        made.computer.closing.append(partial(remove, made.forked.folder))
    return made


def sendable_settings(interpreter: OpenInterpreter) -> dict[str, Any]:
    """Return the settings for a worker as JSON values. UsageError names those that JSON can't represent."""
    settings: dict[str, Any] = {}
    for name, given in given_settings(interpreter).items():
        if name in ("messages", "workspace", "conversation_filename"):
            continue
        try:
            settings[name] = json.loads(json.dumps(given))
        except (TypeError, ValueError):
            if given[1] != "default":
                raise UsageError(
                    f"A batch runs in other processes, which {name} can't be sent to. Use from_here=True."
                ) from None
    return settings


# -- what is shown -----------------------------------------------------------------------------------------------------


class StatusLine:
    """One line that is written again on a terminal, and now and then a line elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown, self._next = "", 0.0

    def show(self, progress: Progress) -> None:
        text, now = visible(described(progress)), time.monotonic()
        if text == self._shown or (now < self._next and not progress.notice):
            return
        self._shown, self._next = text, now + (0.1 if self._is_terminal else 30.0)
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{text[:width]}")
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._is_terminal and self._shown:
            sys.stderr.write("\r\x1b[K")


def described(progress: Progress) -> str:
    parts = [f"{progress.done:,} of {progress.tasks:,} done"]
    parts += [f"{progress.failed:,} failed"] if progress.failed else []
    parts += [f"{progress.running:,} running"] if progress.running else []
    parts += [in_dollars(progress.cost)] if progress.cost else []
    parts += [f"{progress.tokens:,} tokens"] if progress.tokens else []
    parts += [f"{_duration(progress.seconds_left)} left"] if progress.seconds_left else []
    parts += [progress.notice] if progress.notice else []
    return " · ".join(parts)


def summary(progress: Progress, out: Path, count: int) -> str:
    text = described(progress)
    if progress.failed:
        text += f"\nTo run the failed ones again, start it with --retry_failed. Their errors are in {out}."
    elif progress.done < count:
        text += "\nStart it again to run the rest."
    return visible(text)


def estimate(store: Store, sample: list[Task], count: int, limits: Limits) -> str:
    """Say what all tasks would take, from the results of a sample."""
    rows = [store.results[task.id] for task in sample if task.id in store.results]
    if not rows:
        return "No result yet, so there is no estimate."
    cost, seconds = (sum(row.get(name) or 0 for row in rows) / len(rows) * count for name in ("cost", "seconds"))
    money = f"{in_dollars(cost)}, " if cost else ""
    return (
        f"All {count:,} tasks would take about {money}{_duration(seconds / limits.at_once)}. Start it again without "
        "--sample to run the rest."
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60):,} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


@contextmanager
def _interrupts(batch: Batch) -> Iterator[None]:
    """Make Ctrl-C finish the running tasks, and a second Ctrl-C stop them."""
    presses = 0

    def pressed(*_: object) -> None:
        nonlocal presses
        presses += 1
        batch.drain() if presses == 1 else batch.stop()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, pressed)
    signal.signal(signal.SIGTERM, lambda *_: batch.stop())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- in Python ---------------------------------------------------------------------------------------------------------


class Results:
    """The results of a batch. Iterate over it for each one as it comes, or take them all as a list or a DataFrame."""

    def __init__(self, tasks: list[Task], rows: Generator[dict[str, Any]], batch: Batch, store: Store) -> None:
        self._tasks, self._rows, self._batch, self._store = tasks, rows, batch, store

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._rows

    def stop(self) -> None:
        """Stop the batch, from any thread. A new batch with the same `out` runs the remaining tasks."""
        self._batch.stop()

    @property
    def progress(self) -> Progress:
        return self._batch.progress()

    def list(self) -> list[dict[str, Any]]:
        """Wait for all results, and return them in the order of the tasks."""
        for _ in self._rows:
            pass
        return [self._store.results[task.id] for task in self._tasks if task.id in self._store.results]

    def frame(self) -> Any:
        """Wait for all results, and return them as a DataFrame."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError:
            raise InterpreterError("frame() needs pandas: pip install pandas. list() doesn't.") from None
        return pandas.DataFrame(self.list())


def batch(
    interpreter: OpenInterpreter,
    rows: Any,
    prompt: str | None = None,
    schema: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    from_here: bool = False,
    concurrency: int | None = None,
    max_budget: float | None = None,
    deadline: float = 600.0,
    max_failures: int | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
) -> Results:
    """Run each row as a task in a session of its own.

    `rows` are texts, dicts or a DataFrame; `prompt` may name their columns in braces. `out` keeps the results, so that
    the same batch continues where it ended. With `from_here`, each task begins with the files, variables and
    conversation of this session, in a fork of it.
    """
    _check(interpreter)
    if schema is not None:
        OutputSchema(schema)
    records = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    tasks = tasks_of(records, prompt, Path(interpreter.workspace))
    folder = tempfile.mkdtemp(prefix="batch-") if out is None else ""
    target = Path(out or os.path.join(folder, "results.jsonl"))
    limits = Limits(
        concurrency or default_concurrency(), max_budget, requests_per_minute, tokens_per_minute, deadline, max_failures
    )
    store = _opened(interpreter, tasks, target, schema)
    made = _local(interpreter, tasks, store, schema, limits, from_here=from_here)

    def committed() -> Generator[dict[str, Any]]:
        yield from [store.results[task.id] for task in tasks if task.id in store.results]
        try:
            yield from made.run()
        finally:
            with suppress(OSError):
                store.finish(task.id for task in tasks)
            store.close()

    results = Results(tasks, committed(), made, store)
    if folder:
        weakref.finalize(results, remove, folder)
    return results
