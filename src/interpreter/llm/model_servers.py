"""What a server on this machine knows about its models, as `llm` asks for it; `local_models` has the answers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from interpreter.leaves import hosts, load
from interpreter.llm.http import Exchange
from interpreter.llm.providers import Endpoint

Watch = Callable[[socket.socket], None]  # gets a socket that another thread may shut down to end a wait


class ModelServers:
    """Servers that say nothing about their models."""

    formats: Mapping[str, type[Exchange]] = MappingProxyType({})  # further wire formats

    def ready(
        self, endpoint: Endpoint, window: int | None = None, watch: Watch | None = None
    ) -> tuple[Endpoint, dict[str, Any]]:
        """Return the endpoint to ask instead of this one, and more parameters for the request.

        Some models have to be loaded first, which takes seconds; `watch` gets the socket that this waits on.
        """
        for host in hosts(needed=True):
            if host.prefix == endpoint.provider:
                load(host.servers)
        return endpoint, {}

    def start(self, endpoint: Endpoint, window: int | None, watch: Watch) -> Iterator[dict[str, Any]]:
        """Load a model that is not loaded yet, and report it before and after; `watch` as for `ready`."""
        yield from ()

    def window(self, endpoint: Endpoint, wanted: int | None = None) -> int | None:
        """Return how many tokens the model reads, if that is known before a request."""
        return wanted

    def known_window(self, endpoint: Endpoint) -> int | None:
        """Return the same as `window`, but without contacting a server."""
        return None

    def size(self, endpoint: Endpoint) -> float | None:
        """Return the model's parameters in billions, if its server reports them or its name there contains them."""
        return None


def model_servers(wait: Callable[[Callable[[], Any]], Any]) -> ModelServers:
    """Make what knows the servers on this machine; `wait` returns a server's answer, or raises when cancelled."""
    for host in hosts():
        servers: ModelServers = load(host.servers)(wait)
        return servers
    return ModelServers()
