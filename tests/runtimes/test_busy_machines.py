"""A machine that is so busy that a worker does not get to run: it gets more time before it is killed."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from interpreter.runtimes import block
from interpreter.runtimes.block import Clock


def pressed(clock: Clock) -> Clock:
    """One whose worker was interrupted, and is about to be killed."""
    for _ in range(3):
        clock.advance()
    assert clock.stage == "pressed"
    return clock


def test_the_time_that_threads_wait_is_known() -> None:
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("this system does not tell")
    ran, waited = block.scheduled_times(os.getpid())[str(threading.get_native_id())]
    assert ran > 0 and waited >= 0
    assert block.scheduled_times(-1) == {}


def test_a_program_that_the_worker_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as program:
        waited = iter((0.0, 10.0))
        times = lambda pid: {"1": (0.0, next(waited))} if pid == program.pid else {}  # noqa: E731
        monkeypatch.setattr(block, "scheduled_times", times)
        assert pressed(Clock(None, os.getpid)).in_grace_period()
        program.kill()


def test_a_worker_that_could_run_gets_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "scheduled_times", lambda pid: {"1": (1.0, 1.0)})  # code that waits for something
    assert not pressed(Clock(None, os.getpid)).in_grace_period()


def test_a_worker_that_could_not_run_gets_more_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = iter(range(0, 10_000, 10))
    monkeypatch.setattr(block, "scheduled_times", lambda pid: {"1": (0.0, float(next(waited)))})
    monkeypatch.setattr(block, "STARVED_DELAYS", 5)
    patient = pressed(Clock(None, os.getpid))
    assert [patient.in_grace_period() for _ in range(6)] == [True] * 5 + [False]
    remaining = patient.remaining()
    assert remaining is not None and remaining > 0


def test_a_worker_that_had_its_time_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is stuck runs whenever it can."""
    seconds = iter(range(0, 10_000, 10))
    monkeypatch.setattr(block, "scheduled_times", lambda pid: {"1": (float(second := next(seconds)), float(second))})
    assert not pressed(Clock(None, os.getpid)).in_grace_period()
