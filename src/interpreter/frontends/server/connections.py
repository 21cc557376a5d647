"""Limits for connections, so that clients without a token can't use up the server's descriptors.

A connection waits while it carries no request with a right token. A waiting connection has a deadline, and when there
are too many of them, the oldest one is closed. Half of the process's descriptors stay free for the sessions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Peer = tuple[str, int]

REQUEST_TIMEOUT = 20.0  # seconds for the TLS handshake, and for the headers of a request
KEEP_ALIVE = 75  # seconds; longer than browsers and proxies wait between requests: a POST is not tried again
MAX_WAITING, MAX_WAITING_OF_ADDRESS = 256, 64
ACCEPTED_AT_ONCE = 32  # before the event loop gets to close others
_DESCRIPTORS = 65_536  # if the system sets no limit


class Connection(socket.socket):
    def __init__(self, accepted: socket.socket, peer: Peer, on_close: Callable[[Connection], None]) -> None:
        super().__init__(fileno=accepted.detach())  # as TCP: of others, asyncio would delay small answers by 40 ms
        self.peer, self._on_close = peer, on_close
        self.requests = 0  # with a right token, that are being answered

    def close(self) -> None:
        super().close()
        self._on_close(self)


class Listener(socket.socket):
    """A listening socket whose connections have these limits. Only the thread of the event loop may use it."""

    def __init__(self, bound: socket.socket) -> None:
        super().__init__(fileno=bound.detach())
        self._most = _max_descriptors() // 2
        self._open: dict[Peer, Connection] = {}
        self._deadlines: dict[Peer, asyncio.TimerHandle] = {}  # of those that wait, the oldest first

    def listen(self, backlog: int = 0, /) -> None:
        # asyncio accepts as many connections in one go as it asks the system to hold.
        super().listen(2048)

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            accepted, address = super().accept()
            peer = address[:2]
            connection = Connection(accepted, peer, self._forget)
            if len(self._open) >= self._most:
                if not self._deadlines:
                    connection.close()
                    continue
                self._cut(next(iter(self._deadlines)))
            self._stop_waiting(peer)  # a client can reset a connection and come back from the same port at once
            self._open[peer] = connection
            self._wait(peer, REQUEST_TIMEOUT)
            return connection, address

    def begin(self, peer: Peer) -> Connection | None:
        """Lift the deadline: a request with a right token has come; `end` takes what this returns."""
        if (connection := self._open.get(peer)) is not None:
            connection.requests += 1
            self._stop_waiting(peer)
        return connection

    def end(self, connection: Connection) -> None:
        """Wait for the next request, unless it has already arrived."""
        connection.requests -= 1
        if not connection.requests and self._open.get(connection.peer) is connection:
            self._wait(connection.peer, KEEP_ALIVE + REQUEST_TIMEOUT)

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

    def _forget(self, connection: Connection) -> None:
        if self._open.get(connection.peer) is connection:
            self._stop_waiting(connection.peer)
            del self._open[connection.peer]


def _max_descriptors() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _DESCRIPTORS
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _DESCRIPTORS if limit == resource.RLIM_INFINITY else limit
