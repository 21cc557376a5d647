"""On a busy machine, a worker that can't run gets more time before it is killed."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from interpreter.runtimes import block
from interpreter.runtimes.block import Clock


def interrupted(clock: Clock) -> Clock:
    """A clock whose worker was interrupted and is about to be killed."""
    for _ in range(3):
        clock.advance()
    assert clock.stage == "pressed"
    return clock


def test_scheduled_times_include_waiting() -> None:
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("this system has no /proc/self/schedstat")
    ran, waited = block.scheduled_times(os.getpid())[str(threading.get_native_id())]
    assert ran > 0 and waited >= 0
    assert block.scheduled_times(-1) == {}


def test_child_processes_of_the_worker_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as program:
        waited = iter((0.0, 10.0))
        times = lambda pid: {"1": (0.0, next(waited))} if pid == program.pid else {}  # noqa: E731
        monkeypatch.setattr(block, "scheduled_times", times)
        assert interrupted(Clock(None, os.getpid)).in_grace_period()
        program.kill()


def test_a_worker_that_was_not_starved_gets_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "scheduled_times", lambda pid: {"1": (1.0, 1.0)})  # the code waits for something
    assert not interrupted(Clock(None, os.getpid)).in_grace_period()


def test_a_starved_worker_gets_more_time_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = iter(range(0, 10_000, 10))
    monkeypatch.setattr(block, "scheduled_times", lambda pid: {"1": (0.0, float(next(waited)))})
    monkeypatch.setattr(block, "STARVED_DELAYS", 5)
    clock = interrupted(Clock(None, os.getpid))
    assert [clock.in_grace_period() for _ in range(6)] == [True] * 5 + [False]
    remaining = clock.remaining()
    assert remaining is not None and remaining > 0


def test_a_stuck_worker_that_could_run_gets_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stuck code runs whenever it can."""
    seconds = iter(range(0, 10_000, 10))
    monkeypatch.setattr(block, "scheduled_times", lambda pid: {"1": (float(second := next(seconds)), float(second))})
    assert not interrupted(Clock(None, os.getpid)).in_grace_period()
