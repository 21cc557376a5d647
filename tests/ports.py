"""Ports for programs that are to listen later, and for nobody."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator


def free_ports(count: int) -> list[int]:
    """Not among those that the system gives to whoever wants any: somebody else could get one before it is used."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randint(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port at which nobody answers, and that nobody else can take meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
