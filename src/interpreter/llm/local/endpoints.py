"""The last step before a local model is asked: its engine started, its window known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interpreter.errors import LocalServerError
from interpreter.llm.providers import Endpoint, resolve

if TYPE_CHECKING:
    from interpreter.llm.local.engine import Watch

BUILTIN = "builtin"
OLLAMA_WIRE = "ollama"


class LocalEndpoints:
    """Makes endpoints of models on this machine ready; what Ollama said of a model is asked for once."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str, int | None], int] = {}
        self._sizes: dict[tuple[str, str], str] = {}
        self._not_ollama: set[str] = set()

    def ready(
        self, endpoint: Endpoint, window: int | None = None, watch: Watch | None = None
    ) -> tuple[Endpoint, dict[str, Any]]:
        """The endpoint to ask in place of this one, and what else to put into the request.

        A built-in model's engine is started, in some seconds; `watch` is told the socket that this waits on.
        """
        if endpoint.provider == BUILTIN:
            return _builtin(endpoint, window, watch), {}
        if _is_ollama(endpoint):
            return self._ollama(endpoint, window)
        return endpoint, {}

    def start(self, endpoint: Endpoint, window: int | None, watch: Watch) -> Iterator[dict[str, Any]]:
        """Load a built-in model that is not loaded yet: says so before and after; `watch` as for `ready`."""
        from interpreter.llm.local import engine, weights

        file = weights.file_of(endpoint.model)
        if not engine.is_running(file, window):
            yield {"model": endpoint.model, "done": False}
            engine.running(file, window, watch)
            yield {"model": endpoint.model, "done": True}

    def window(self, endpoint: Endpoint, wanted: int | None = None) -> int | None:
        """How many tokens the model will take, as far as that is known before it is asked."""
        if endpoint.provider == BUILTIN:
            from interpreter.llm.local.engine import CONTEXT

            return wanted or CONTEXT
        if _is_ollama(endpoint):
            return self._ollama(endpoint, wanted)[1].get("num_ctx", wanted)
        return wanted

    def size(self, endpoint: Endpoint, wanted: int | None = None) -> str:
        """How many parameters Ollama says that a model has, such as `7.6B`; it is asked what it is asked anyway."""
        if not _is_ollama(endpoint):
            return ""
        self._ollama(endpoint, wanted)
        return self._sizes.get((endpoint.base_url.removesuffix("/v1"), endpoint.model), "")

    def told(self, endpoint: Endpoint) -> int | None:
        """The same, without asking."""
        if endpoint.provider == BUILTIN:
            return self.window(endpoint)
        return self._windows.get((endpoint.base_url.removesuffix("/v1"), endpoint.model, None))

    def _ollama(self, endpoint: Endpoint, wanted: int | None) -> tuple[Endpoint, dict[str, Any]]:
        """Ollama's own chat, with a window of our choice; what only looks like Ollama is asked as before."""
        from interpreter.llm.local import ollama

        address = endpoint.base_url.removesuffix("/v1")
        native = replace(endpoint, base_url=address, wire=OLLAMA_WIRE)
        known = (address, endpoint.model, wanted)
        if address in self._not_ollama:
            return endpoint, {}
        if known not in self._windows:
            try:
                shown = ollama.show(address, endpoint.model)
            except LocalServerError as error:
                if error.status == 404 and error.detail:
                    return native, {}  # refused in Ollama's own way; the chat tells the user what is wrong
                if error.status is not None:
                    self._not_ollama.add(address)
                return endpoint, {}
            self._windows[known] = ollama.window_for(shown, wanted)
            self._sizes[address, endpoint.model] = shown.parameters
        return native, {"num_ctx": self._windows[known]}


def _is_ollama(endpoint: Endpoint) -> bool:
    """Named as one, or asked over OpenAI's interface at the port where Ollama is."""
    if endpoint.provider.startswith("ollama"):
        return True
    if endpoint.provider != "openai" or endpoint.wire != "chat" or not endpoint.is_loopback:
        return False
    return _port(endpoint.base_url) == _port(resolve("ollama/any", os.environ).base_url)


def _port(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition(":")[2]


def _builtin(endpoint: Endpoint, window: int | None, watch: Watch | None) -> Endpoint:
    from interpreter.llm.local import engine, weights

    served = engine.running(weights.file_of(endpoint.model), window, watch)
    return replace(endpoint, model=served.name, base_url=served.base_url, key=served.key)
