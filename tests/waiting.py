"""Waiting for what another thread or process is about to do: by its effect, never by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import psutil

from interpreter.runtimes.runtime import Runtime

LIMIT = 60.0  # seconds: only something that never comes takes so long


def until(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """Look again and again, and fail when it takes too long."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"waited {limit:g} s for {what}"
        threading.Event().wait(0.01)


def in_thread(function: Callable[..., Any], *args: Any, **named: Any) -> tuple[threading.Thread, list[Any]]:
    """Call a function in a thread; its result comes into the list, or the error that it raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function(*args, **named))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def until_ended(processes: Iterable[psutil.Process | int]) -> None:
    """Processes, or their numbers, of which some may have ended long ago; whether anybody reaps them is another matter."""
    left = list(processes)

    def have_ended() -> bool:
        left[:] = [process for process in left if is_running(process)]
        return not left

    until(have_ended, f"the end of {left}")


def worker_of(runtime: Runtime | None) -> psutil.Process:
    """The worker of a runtime: a supervisor that waits for its turn may name it later than its first block ends."""
    assert runtime is not None
    until(lambda: runtime.pid is not None, "the number of the worker")
    return psutil.Process(runtime.pid)


def is_running(process: psutil.Process | int) -> bool:
    try:
        process = psutil.Process(process) if isinstance(process, int) else process
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
