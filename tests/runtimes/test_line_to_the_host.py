"""The driver's line to the host, when a signal handler cuts in at the worst moment and prints."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interpreter.runtimes.python.driver.channel import Channel
from interpreter.runtimes.python.driver.interrupts import Interrupts


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


class Cut:
    """Does what another one does; right after the first call of one method, something cuts in."""

    def __init__(self, whole: Any, method: str, cut_in: Callable[[], None]) -> None:
        self._whole, self._method, self._cut_in = whole, method, cut_in

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._whole, name)
        return self._called if name == self._method else found

    def _called(self, *arguments: Any) -> Any:
        result = getattr(self._whole, self._method)(*arguments)
        cut_in, self._cut_in = self._cut_in, lambda: None
        cut_in()
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
def test_nothing_waits_for_itself(
    line: socket.socket, doing: str, part: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[str] = []

    def wait() -> None:
        line_to_host = Channel(line.fileno(), Interrupts())

        def cut_in() -> None:
            line_to_host.sync()
            times.append("within")

        monkeypatch.setattr(line_to_host, part, Cut(getattr(line_to_host, part), moment, cut_in))
        line_to_host.sync() if doing == "sync" else line_to_host.send({"event": "stream"})
        times.append("after")
        line_to_host._socket.detach()

    driver = threading.Thread(target=wait, daemon=True)
    driver.start()
    driver.join(60)
    assert times == ["within", "after"]
