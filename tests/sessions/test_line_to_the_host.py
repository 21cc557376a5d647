"""The driver's line to the host, when a signal handler cuts in at the worst moment and prints."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from interpreter.languages.python.driver.channel import Channel
from interpreter.languages.python.driver.interrupts import Interrupts


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """The driver's end; at the other one a host reads and answers."""
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with theirs, theirs.makefile("rb") as frames:
            for frame in frames:
                if b'"sync"' in frame:
                    theirs.sendall(b'{"op":"synced"}\n')

    host = threading.Thread(target=answer)
    host.start()
    yield ours
    ours.shutdown(socket.SHUT_RDWR)
    ours.close()
    host.join()


@pytest.mark.parametrize(
    ("doing", "moment"), [("sync", "acquire"), ("sync", "poll"), ("sync", "release"), ("send", "write")]
)
def test_nothing_waits_for_itself(line: socket.socket, doing: str, moment: str) -> None:
    times: list[str] = []

    def wait() -> None:
        channel = Channel(line.fileno(), Interrupts())

        def cut_in(frame: FrameType, event: str, called: Any) -> None:
            if event == "c_return" and called.__name__ == moment:
                sys.setprofile(None)
                channel.sync()
                times.append("within")

        sys.setprofile(cut_in)
        channel.sync() if doing == "sync" else channel.send({"event": "stream"})
        times.append("after")
        channel._socket.detach()

    driver = threading.Thread(target=wait, daemon=True)
    driver.start()
    driver.join(60)
    assert times == ["within", "after"]
