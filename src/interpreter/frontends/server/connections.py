"""Limits for connections, so that clients without a token can't use up the server's descriptors.

A connection waits while it carries no request with a right token. A waiting connection has a deadline, and when there
are too many of them, the oldest one is closed. Half of the process's descriptors stay free for the sessions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

Peer = tuple[str, int]

REQUEST_TIMEOUT = 20.0  # seconds for the TLS handshake, and for the headers of a request
KEEP_ALIVE = 75  # seconds; longer than browsers and proxies wait between requests: a POST is not tried again
MAX_WAITING, MAX_WAITING_OF_ADDRESS = 256, 64
ACCEPTED_AT_ONCE = 32  # before the event loop gets to close others
_DESCRIPTORS = 65_536  # if the system sets no limit


class _Connection(socket.socket):
    def __init__(self, accepted: socket.socket, on_close: Callable[[], None]) -> None:
        super().__init__(
            fileno=accepted.detach()
        )  # as TCP, because asyncio delays small answers on other sockets by 40 ms
        self._on_close = on_close
        self.requests = 0  # requests with a valid token that are being answered

    def close(self) -> None:
        super().close()
        self._on_close()


class Listener(socket.socket):
    """A listening socket whose connections have these limits. Only the thread of the event loop may use it."""

    def __init__(self, bound: socket.socket) -> None:
        super().__init__(fileno=bound.detach())
        self._most = _max_descriptors() // 2
        self._open: dict[Peer, _Connection] = {}
        self._deadlines: dict[Peer, asyncio.TimerHandle] = {}  # of those that wait, the oldest first

    def listen(self, backlog: int = 0, /) -> None:
        # asyncio accepts as many connections in one go as it asks the system to hold.
        super().listen(2048)

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            accepted, address = super().accept()
            peer = address[:2]
            connection = _Connection(accepted, partial(self._forget, peer))
            if len(self._open) >= self._most:
                if not self._deadlines:
                    connection.close()
                    continue
                self._cut(next(iter(self._deadlines)))
            self._open[peer] = connection
            self._wait(peer, REQUEST_TIMEOUT)
            return connection, address

    def begin(self, peer: Peer) -> None:
        """Lift the deadline, because a request with a valid token has arrived."""
        if peer in self._open:
            self._open[peer].requests += 1
            self._stop_waiting(peer)

    def end(self, peer: Peer) -> None:
        """Wait for the next request, unless it has arrived already."""
        if peer in self._open:
            self._open[peer].requests -= 1
            if not self._open[peer].requests:
                self._wait(peer, KEEP_ALIVE + REQUEST_TIMEOUT)

    def _wait(self, peer: Peer, seconds: float) -> None:
        self._deadlines[peer] = asyncio.get_running_loop().call_later(seconds, self._cut, peer)
        neighbours = [each for each in self._deadlines if each[0] == peer[0]]
        if len(neighbours) > MAX_WAITING_OF_ADDRESS:
            self._cut(neighbours[0])
        elif len(self._deadlines) > min(MAX_WAITING, self._most // 2):
            self._cut(next(iter(self._deadlines)))

    def _cut(self, peer: Peer) -> None:
        self._stop_waiting(peer)
        with suppress(OSError):
            self._open[peer].shutdown(socket.SHUT_RDWR)  # the event loop sees its end and closes it

    def _stop_waiting(self, peer: Peer) -> None:
        if (deadline := self._deadlines.pop(peer, None)) is not None:
            deadline.cancel()

    def _forget(self, peer: Peer) -> None:
        self._stop_waiting(peer)
        self._open.pop(peer, None)


def _max_descriptors() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _DESCRIPTORS
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _DESCRIPTORS if limit == resource.RLIM_INFINITY else limit
