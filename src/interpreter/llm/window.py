"""What a server on this machine tells of a model's window, and of how many tokens a text has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from interpreter.errors import ModelError
from interpreter.llm.local.endpoints import BUILTIN, LocalEndpoints
from interpreter.llm.model_profile import size_of
from interpreter.llm.prices import window_of
from interpreter.llm.providers import Endpoint

SMALLEST = 1500  # tokens: no window is so small that a shorter request fills it


_CONNECT, _ANSWER = 0.5, 3.0
_WINDOW_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length")


class NearServers:
    """Asks each server once for what does not change; one that does not know is not asked again."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], int | None] = {}
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._cannot_count: set[str] = set()

    def window(self, endpoint: Endpoint) -> int | None:
        """How many tokens the model takes, if its server tells."""
        known = (endpoint.base_url, endpoint.model)
        if known not in self._windows:
            self._windows[known] = _window(self._row(endpoint)) or _window_in_props(endpoint)
        return self._windows[known]

    def size(self, endpoint: Endpoint) -> float | None:
        """How many billion parameters the model has, if its server tells, or the name that it has there does."""
        if not _is_near(endpoint):
            return None
        row = self._row(endpoint)
        count = (row.get("meta") or {}).get("n_params")
        return count / 1e9 if _is_count(count) else size_of(str(row.get("root") or ""))

    def _row(self, endpoint: Endpoint) -> dict[str, Any]:
        """What the server lists of the model."""
        known = (endpoint.base_url, endpoint.model)
        if known not in self._rows:
            rows = _ask(endpoint, "GET", endpoint.base_url + "/models").get("data")
            fitting = (row for row in rows or () if isinstance(row, dict) and row.get("id") == endpoint.model)
            self._rows[known] = next(fitting, {}) if isinstance(rows, list) else {}
        return self._rows[known]

    def told(self, endpoint: Endpoint) -> int | None:
        """The same, without asking."""
        return self._windows.get((endpoint.base_url, endpoint.model))

    def count(self, endpoint: Endpoint, text: str) -> int | None:
        """How many tokens a text has, as llama.cpp counts them; None if the server does not say."""
        if endpoint.base_url in self._cannot_count:
            return None
        told = _ask(endpoint, "POST", _root(endpoint) + "/tokenize", {"content": text})
        tokens = told.get("tokens")
        if not isinstance(tokens, list):
            self._cannot_count.add(endpoint.base_url)
            return None
        return len(tokens)


class Window:
    """The window of the model that is asked now; `endpoint` finds where that is."""

    def __init__(
        self,
        near: NearServers,
        local: LocalEndpoints,
        endpoint: Callable[[], Endpoint] | None,
        setting: int | None,
    ) -> None:
        self._near, self._local, self._find, self._setting = near, local, endpoint, setting

    def known(self, tokens: int) -> int | None:
        """The window, as far as it matters for a request of so many tokens; the setting goes first."""
        endpoint = self._endpoint() if tokens >= SMALLEST else None
        if endpoint is None:
            return self._setting
        told = self._local.window(endpoint, self._setting)
        if told is None and _is_near(endpoint):
            told = self._near.window(endpoint)
        return told if told is not None else window_of(f"{endpoint.provider}/{endpoint.model}")

    def count(self, text: str) -> int | None:
        """The tokens of a text, from a server on this machine that counts them."""
        endpoint = self._endpoint()
        return self._near.count(endpoint, text) if endpoint is not None and _is_near(endpoint) else None

    def _endpoint(self) -> Endpoint | None:
        try:
            return self._find() if self._find is not None else None
        except ModelError:
            return None  # asking the model says what is wrong


def _is_near(endpoint: Endpoint) -> bool:
    """Whether the server is of a kind that may know, and costs nothing to ask."""
    # Where the built-in engine listens is not known before it runs; Ollama counts nothing beforehand.
    is_own = endpoint.provider == BUILTIN or endpoint.provider.startswith("ollama")
    return endpoint.is_loopback and endpoint.wire == "chat" and not is_own


def _window(row: Mapping[str, Any]) -> int | None:
    told = [row.get(name) for name in _WINDOW_FIELDS] + [(row.get("meta") or {}).get("n_ctx")]
    return next((int(each) for each in told if _is_count(each)), None)


def _window_in_props(endpoint: Endpoint) -> int | None:
    settings = _ask(endpoint, "GET", _root(endpoint) + "/props").get("default_generation_settings")
    window = settings.get("n_ctx") if isinstance(settings, dict) else None
    return window if _is_count(window) else None


def _root(endpoint: Endpoint) -> str:
    return endpoint.base_url.removesuffix("/v1")


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _ask(endpoint: Endpoint, method: str, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer; nothing from a server that is not there or does not have this."""
    import httpx

    from interpreter.llm.local.servers import plain_client

    try:
        with plain_client(httpx.Timeout(_ANSWER, connect=_CONNECT), endpoint.headers) as client:
            response = client.request(method, url, json=body)
            told = response.json() if response.is_success else {}
    except (httpx.HTTPError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
