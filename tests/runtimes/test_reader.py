"""The thread that reads what a session says ends whenever it is told to."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from interpreter.runtimes.protocol import OutputReader


class Talker:
    """Always has something to say, so that the thread is never asleep."""

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


def test_told_in_the_middle_of_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is awake may end before it is woken: nothing is written into a pipe that it has closed."""
    reader, talker, write = OutputReader("talker"), Talker(), os.write
    reader.watch(talker)

    def write_late(*args: Any) -> int:
        reader._thread.join(0.3)
        return write(*args)

    monkeypatch.setattr(os, "write", write_late)
    reader.stop()
    assert talker.over.is_set()


def test_told_by_several_at_once() -> None:
    for _ in range(50):
        reader = OutputReader("several")
        tellers = [threading.Thread(target=reader.stop) for _ in range(4)]
        for teller in tellers:
            teller.start()
        for teller in tellers:
            teller.join(30)
        assert not any(teller.is_alive() for teller in tellers)
