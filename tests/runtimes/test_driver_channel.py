"""The driver's connection to the host, when a signal handler prints at the worst moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interpreter.runtimes.python.driver.channel import Channel
from interpreter.runtimes.python.driver.interrupts import Interrupts


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """The driver's end of a connection to a host that reads and answers."""
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


class InterruptedOnce:
    """Wraps an object, and calls a function right after the first call of one method."""

    def __init__(self, wrapped: Any, method: str, interrupt: Callable[[], None]) -> None:
        self._wrapped, self._method, self._interrupt = wrapped, method, interrupt

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        return self._called if name == self._method else found

    def _called(self, *arguments: Any) -> Any:
        result = getattr(self._wrapped, self._method)(*arguments)
        interrupt, self._interrupt = self._interrupt, lambda: None
        interrupt()
        return result


@pytest.mark.parametrize(
    ("doing", "part", "moment"),
    [
        ("sync", "_receiving", "acquire"),
        ("sync", "_readable", "poll"),
        ("sync", "_receiving", "release"),
        ("send", "_socket", "sendall"),
    ],
)
def test_a_signal_handler_that_prints_causes_no_deadlock(
    connection: socket.socket, doing: str, part: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[str] = []

    def wait() -> None:
        channel = Channel(connection.fileno(), Interrupts())

        def interrupt() -> None:
            channel.sync()
            times.append("within")

        monkeypatch.setattr(channel, part, InterruptedOnce(getattr(channel, part), moment, interrupt))
        channel.sync() if doing == "sync" else channel.send({"event": "stream"})
        times.append("after")
        channel._socket.detach()

    driver = threading.Thread(target=wait, daemon=True)
    driver.start()
    driver.join(60)
    assert times == ["within", "after"]
