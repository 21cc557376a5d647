"""The limits of a batch: the budget of all, the pace that servers ask for, deadlines and failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from batch.conftest import Batches, echo, task_of
from model_server import error, stall, text, usage

pytestmark = pytest.mark.usefixtures("no_strays")
Make = Callable[..., Batches]
PRICE = 1000 * 2.5e-6 + 100 * 10e-6  # of one answer of `echo`, by gpt-4o's prices


def test_the_budget_of_all_is_exceeded_by_no_request(batches: Make) -> None:
    batch = batches()
    batch.write(*[f"t{number}" for number in range(12)])
    done = batch.run("--max_budget", "0.02", "--max_tokens", "100", "--concurrency", "6")
    assert done.returncode == 5, done.stderr
    assert 0 < len(batch.requests) * PRICE <= 0.02
    assert len(batch.results) == len(batch.requests)
    assert done.stderr.splitlines()[-1].startswith("interpreter: The batch has spent")
    assert batch.run("--max_budget", "10", "--max_tokens", "100").returncode == 0
    assert len(batch.ids) == len(batch.requests) == 12


def test_a_server_that_limits_requests_is_waited_for(batches: Make) -> None:
    refused, lock = set[str](), threading.Lock()

    def answer(body: dict[str, Any]) -> Any:
        with lock:
            if task_of(body) not in refused:
                refused.add(task_of(body))
                return error(429, "slow down", headers={"retry-after": "0.2"})
        return echo(body)

    batch = batches(answer)
    batch.write(*"abcde")
    assert batch.run("--max_retries", "0").returncode == 0
    assert batch.ids == list("abcde")
    assert {row["status"] for row in batch.results} == {"done"}


def test_requests_are_paced(batches: Make) -> None:
    times: list[float] = []

    def answer(body: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        return echo(body)

    batch = batches(answer)
    batch.write(*"abcdefghij")
    assert batch.run("--requests_per_minute", "300").returncode == 0
    assert max(times) - min(times) >= 1.0  # ten requests, a fifth of a second apart; the first may be slow


def test_a_task_that_takes_too_long_fails_alone(batches: Make) -> None:
    def answer(body: dict[str, Any]) -> Any:
        return text("A").then(stall()) if task_of(body) == "slow" else echo(body)

    batch = batches(answer)
    batch.write("slow", "fast")
    assert batch.run("--deadline", "4").returncode == 1
    assert {row["id"]: (row["status"], row["error"]) for row in batch.results if row["status"] == "failed"} == {
        "slow": ("failed", "It took longer than 4 seconds.")
    }


def test_a_batch_in_which_everything_fails_stops(batches: Make) -> None:
    batch = batches(lambda body: error(400, "broken"))
    batch.write(*[f"t{number}" for number in range(40)])
    done = batch.run("--max_failures", "3", "--concurrency", "2")
    assert done.returncode == 5
    assert "--max_failures is 3" in done.stderr
    assert len(batch.results) < 10


def test_one_task_is_not_tried_for_ever(batches: Make) -> None:
    batch = batches(lambda body: error(503, "down"))
    batch.write("a")
    assert batch.run("--max_retries", "0").returncode == 1
    assert batch.requests == ["a"] * 3


def test_a_row_has_a_budget_of_its_own(batches: Make) -> None:
    batch = batches(lambda body: echo(body))
    batch.write("a", budget=0.00001)
    assert batch.run().returncode == 1
    assert "budget" in batch.results[0]["error"]
    assert batch.requests == []


def test_usage_of_a_lost_answer_counts(batches: Make) -> None:
    from interpreter.batch.store import read_status

    batch = batches(lambda body: text("Did it").then(usage(1000, 100)))
    batch.write("a")
    assert batch.run().returncode == 0
    assert read_status(batch.out)["cost"] == pytest.approx(PRICE)
