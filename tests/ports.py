"""Free ports for programs to listen on, and closed ports."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator


def free_ports(count: int) -> list[int]:
    """Ports outside the ephemeral range, so that no other process gets one before it is used."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.SystemRandom().randint(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.append(port)
    return ports


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """Reserve a port without a listener, so that no other process can take it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
