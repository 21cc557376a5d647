"""Waiting for the effect of another thread or process, never for a fixed time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import psutil

from interpreter.runtimes.runtime import Runtime

LIMIT = 60.0  # seconds: only a hang takes this long


def until(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """Check repeatedly, and fail when it takes too long."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"waited {limit:g} s for {what}"
        threading.Event().wait(0.01)


def in_thread(function: Callable[..., Any], *args: Any, **named: Any) -> tuple[threading.Thread, list[Any]]:
    """Call a function in a thread; the list gets its result, or the error it raised."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(function(*args, **named))
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


def until_ended(processes: Iterable[psutil.Process | int]) -> None:
    """Wait for processes, or their ids, to end or become zombies; some may have ended long ago."""
    left = list(processes)

    def have_ended() -> bool:
        left[:] = [process for process in left if is_running(process)]
        return not left

    until(have_ended, f"the end of {left}")


def worker_of(runtime: Runtime | None) -> psutil.Process:
    """Return the worker of a runtime: a busy supervisor may report its id only after the first block ends."""
    assert runtime is not None
    until(lambda: runtime.pid is not None, "the worker's process id")
    return psutil.Process(runtime.pid)


def is_running(process: psutil.Process | int) -> bool:
    try:
        process = psutil.Process(process) if isinstance(process, int) else process
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
