"""The results of a batch: each once, whatever ends it, and continued where it ended."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batch.conftest import Batches, Gate, children_of, echo, is_alive, task_of
from interpreter.batch.store import Store, spending
from interpreter.errors import InterpreterError, UsageError
from model_server import error, text, tool_call, usage

pytestmark = pytest.mark.usefixtures("no_strays")
Make = Callable[..., Batches]


def wait_until(check: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_each_task_has_a_session_a_folder_and_a_result(batches: Make, home: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "user":
            name = task_of(body)
            return tool_call("python", f"open('made.txt', 'w').write('{name}')").then(usage(100, 10))
        return text("Written.").then(usage(100, 10))

    batch = batches(answer)
    batch.write("a", "b/../c")
    done = batch.run()
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith("2 of 2 done")
    for row in batch.results:
        assert (row["status"], row["value"], row["tokens"]) == ("done", "Written.", 220)
        assert Path(row["folder"], "made.txt").read_text() == row["id"]
        assert Path(row["folder"]).is_relative_to(batch.folder / "results.jsonl.files")
    sessions = {path.name for path in home.rglob("conversations/*") if path.is_dir()}
    assert {row["session"] for row in batch.results} == sessions


def test_a_second_start_runs_only_what_is_missing(batches: Make) -> None:
    batch = batches()
    batch.write("a", "b", "c")
    assert batch.run("--sample", "1").returncode == 0
    assert batch.ids == ["a"]
    assert batch.run().returncode == 0
    assert (batch.ids, batch.requests) == (["a", "b", "c"], ["a", "b", "c"])
    assert batch.run().returncode == 0  # nothing is left
    assert len(batch.requests) == 3


def test_a_batch_with_other_tasks_or_another_model_is_refused(batches: Make) -> None:
    batch = batches()
    batch.write("a", "b")
    assert batch.run().returncode == 0
    refused = batch.run("--model", "openai/gpt-4o-mini")
    assert (refused.returncode, len(batch.requests)) == (2, 2)
    assert "belongs to a batch with other model" in refused.stderr
    batch.write("a", "other")
    assert "other tasks" in batch.run().stderr


def test_only_one_process_writes_the_results(batches: Make) -> None:
    gate = Gate()
    batch = batches(gate)
    batch.write("a")
    first = batch.start()
    gate.wait_for(1)
    second = batch.run()
    assert second.returncode == 2
    assert "A batch is already writing" in second.stderr
    state = subprocess.run(
        [sys.executable, "-m", "interpreter", "batch", "status", str(batch.out)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert state.stdout.strip() == "0 of 1 done · 1 running"
    gate.opened.set()
    assert first.wait(60) == 0
    assert (batch.ids, batch.requests) == (["a"], ["a"])


def test_a_killed_batch_continues_without_losing_or_repeating_a_result(batches: Make) -> None:
    gate, seen = Gate(), set[str]()

    def answer(body: dict[str, Any]) -> Any:
        if task_of(body) in ("c", "d") and task_of(body) not in seen:
            seen.add(task_of(body))
            return gate(body)
        return echo(body)

    batch = batches(answer)
    batch.write("a", "b", "c", "d")
    first = batch.start()
    gate.wait_for(2)
    wait_until(lambda: len(batch.results) == 2)
    workers = children_of(first.pid)
    first.kill()
    first.wait()
    gate.opened.set()
    with batch.out.open("a") as file:
        file.write('{"id": "c", "status": "do')  # as if it had been killed in the middle of a line
    wait_until(lambda: not any(map(is_alive, workers)))
    done = batch.run()
    assert done.returncode == 0, done.stderr
    assert batch.ids == ["a", "b", "c", "d"]
    assert batch.requests == ["a", "b", "c", "c", "d", "d"]
    assert {row["id"]: row["attempt"] for row in batch.results} == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_the_tasks_of_a_killed_worker_run_again(batches: Make) -> None:
    gate, killed = Gate(), list[str]()

    def answer(body: dict[str, Any]) -> Any:
        if not killed and not gate.opened.is_set():
            return gate(body)
        return echo(body)

    batch = batches(answer)
    batch.write("a", "b")
    running = batch.start()
    gate.wait_for(2)
    for worker in children_of(running.pid):
        os.kill(worker, signal.SIGKILL)
    gate.opened.set()
    assert running.wait(90) == 0
    assert batch.ids == ["a", "b"]
    assert all(row["attempt"] == 2 for row in batch.results)


def test_ctrl_c_finishes_what_runs_and_a_second_one_stops_it(batches: Make) -> None:
    gate = Gate()
    batch = batches(gate)
    batch.write(*"abcdef")
    running = batch.start("--concurrency", "2")
    gate.wait_for(2)
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    gate.opened.set()
    assert running.wait(60) == 130
    assert len(batch.results) == len(batch.requests) == 2
    gate.opened.clear()
    running = batch.start("--concurrency", "2")
    gate.wait_for(2)
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert len(batch.results) == 2
    gate.opened.set()


def test_failed_tasks_have_a_reason_and_run_again_on_request(batches: Make) -> None:
    failing = True

    def answer(body: dict[str, Any]) -> Any:
        return error(400, "no") if failing and task_of(body) == "b" else echo(body)

    batch = batches(answer)
    batch.write("a", "b")
    done = batch.run()
    assert done.returncode == 1
    assert "--retry_failed" in done.stderr
    [failed] = [row for row in batch.results if row["status"] == "failed"]
    assert (failed["id"], failed["value"]) == ("b", None)
    assert "no" in failed["error"]
    failing = False
    assert batch.run("--retry-failed").returncode == 0
    assert batch.ids == ["a", "b"]
    assert {row["status"] for row in batch.results} == {"done"}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_results_can_be_a_table_in_the_order_of_the_tasks(batches: Make, form: str) -> None:
    batch = batches()
    batch.write("c", "a", "b")
    assert batch.run(out=f"results.{form}").returncode == 0
    target = batch.folder / f"results.{form}"
    if form == "csv":
        rows: list[Any] = list(csv.DictReader(target.read_text().splitlines()))
    else:
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(target).to_pylist()
    assert [(row["id"], row["value"]) for row in rows] == [("c", "Did c"), ("a", "Did a"), ("b", "Did b")]


def test_values_fit_a_schema(batches: Make) -> None:
    answers = iter(["not JSON", '{"n": 4}'])
    batch = batches(lambda body: text(next(answers)))
    batch.write("a")
    (batch.folder / "schema.json").write_text(json.dumps({"type": "object", "required": ["n"]}))
    assert batch.run("--output_schema", str(batch.folder / "schema.json")).returncode == 0
    assert batch.results[0]["value"] == {"n": 4}


def test_check_sends_nothing_and_code_needs_permission(batches: Make) -> None:
    batch = batches()
    batch.write("a", "b")
    assert "2 tasks, nothing wrong" in batch.run("--check").stdout
    asking = [each for each in batch.command() if each != "-y"]
    refused = subprocess.run(asking, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--mode auto-in-sandbox" in refused.stderr
    assert batch.requests == []
    assert not batch.out.exists()


def test_a_full_disk_costs_no_result_that_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.jsonl")
    store.begin({"tasks": "x"}, 2)
    assert store.commit({"id": "a", "status": "done"})
    assert not store.commit({"id": "a", "status": "done", "value": "later"})  # the first one counts
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "r.jsonl").stat().st_size + 5, before[1]))
    try:
        with pytest.raises(InterpreterError, match="can't be written"):
            store.commit({"id": "b", "status": "done"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [json.loads(line)["id"] for line in (tmp_path / "r.jsonl").read_text().splitlines()] == ["a"]
    assert store.commit({"id": "b", "status": "done"})
    store.close()
    again = Store(tmp_path / "r.jsonl")
    assert list(again.results) == ["a", "b"]
    again.close()


def test_a_request_without_an_answer_counts_with_all_it_can_cost() -> None:
    entries = [{"reserve": 1, "cost": 0.5}, {"settle": 1, "cost": 0.1}, {"reserve": 2, "cost": 0.3}]
    assert spending(entries) == (pytest.approx(0.4), 2)


def test_results_of_something_else_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": "mine"}\n')
    store = Store(tmp_path / "r.jsonl")
    with pytest.raises(UsageError, match="results of something else"):
        store.begin({"tasks": "x"}, 1)
    store.close()
    assert (tmp_path / "r.jsonl").read_text() == '{"id": "mine"}\n'


@pytest.mark.full
def test_random_kills_lose_and_repeat_nothing(batches: Make) -> None:
    batch = batches()
    names = [f"t{number}" for number in range(300)]
    batch.write(*names)
    chance = random.Random(1)
    for _ in range(12):
        running = batch.start("--concurrency", "8")
        time.sleep(chance.uniform(0.8, 3.0))
        victims = [running.pid, *children_of(running.pid)]
        with_signal = chance.choice([signal.SIGKILL, signal.SIGTERM])
        os.kill(chance.choice(victims), with_signal)
        try:
            running.wait(4)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        wait_until(partial(lambda workers: not any(map(is_alive, workers)), victims[1:]))
        assert len(batch.ids) == len(set(batch.ids))
    assert batch.run().returncode == 0
    assert batch.ids == sorted(names)
