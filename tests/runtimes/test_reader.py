"""The thread that reads the output of a runtime can be stopped at any time."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from interpreter.runtimes.protocol import OutputReader


class BusySource:
    """A source that always has output, so that the thread never sleeps."""

    order = 0

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.write(write, b"x")
        os.close(write)
        self.over = threading.Event()

    def fileno(self) -> int:
        return self._read

    def ready(self) -> bool:
        return True

    def ended(self) -> None:
        os.close(self._read)
        self.over.set()


def test_a_busy_reader_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy thread may end before it is woken; then nothing may be written to the pipe that it closed."""
    reader, source, write = OutputReader("talker"), BusySource(), os.write
    reader.watch(source)

    def write_late(*args: Any) -> int:
        reader._thread.join(0.3)
        return write(*args)

    monkeypatch.setattr(os, "write", write_late)
    reader.stop()
    assert source.over.is_set()


def test_several_threads_can_stop_the_reader_at_once() -> None:
    for _ in range(50):
        reader = OutputReader("several")
        stoppers = [threading.Thread(target=reader.stop) for _ in range(4)]
        for stopper in stoppers:
            stopper.start()
        for stopper in stoppers:
            stopper.join(30)
        assert not any(stopper.is_alive() for stopper in stoppers)
