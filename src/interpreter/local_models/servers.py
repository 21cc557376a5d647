"""Model servers on this machine: finding them, what they serve, and preparing a model there for a request."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from interpreter.errors import BrokenStreamError, LocalServerError
from interpreter.llm.failures import MALFORMED
from interpreter.llm.http import Exchange, fetch_json
from interpreter.llm.model_profile import size_of
from interpreter.llm.model_servers import ModelServers, Watch
from interpreter.llm.providers import Endpoint, resolve
from interpreter.local_models import ollama

S = TypeVar("S")
T = TypeVar("T")
_Get = Callable[[str], dict[str, Any]]  # the answer of a server to a path
_CONNECT_TIMEOUT = 0.5
_ANSWER_TIMEOUT = 3.0
_ALL_ANSWERS_TIMEOUT = 10.0  # of many requests
_THREADS = 8
_WINDOW_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length")
_MAX_NUMBER = 2**63  # of what a server says about a model; JSON also has infinity


@dataclass(frozen=True)
class Model:
    """A model that a server has, and what the server says about it.

    `context` is the longest conversation it takes, `size` the bytes of its file, `billions` the number of parameters.
    """

    name: str
    context: int | None = None
    size: int | None = None
    is_loaded: bool = False
    billions: float | None = None


@dataclass(frozen=True)
class ServerKind:
    """A program that serves models: its default address, and the prefix of its models."""

    name: str
    title: str
    address: str
    prefix: str = "openai/"
    key_variable: str = ""


@dataclass(frozen=True)
class LocalServer:
    """A server that answers. `problem` says why its models are unknown."""

    kind: ServerKind
    models: tuple[Model, ...] = ()
    problem: str = ""

    @property
    def api_base(self) -> str:
        return f"{self.kind.address}/v1"

    def model_string(self, model: Model) -> str:
        return self.kind.prefix + model.name


KINDS: tuple[ServerKind, ...] = (
    ServerKind("ollama", "Ollama", "http://127.0.0.1:11434", "ollama/"),
    ServerKind("lm_studio", "LM Studio", "http://127.0.0.1:1234", "lm_studio/", "LM_STUDIO_API_KEY"),
    ServerKind("jan", "Jan", "http://127.0.0.1:1337", "jan/", "JAN_API_KEY"),
    ServerKind("llama.cpp", "llama.cpp or llamafile", "http://127.0.0.1:8080", "openai/"),
    ServerKind("vllm", "vLLM", "http://127.0.0.1:8000", "openai/", "VLLM_API_KEY"),
)


def known_kinds(environ: Mapping[str, str] = os.environ) -> tuple[ServerKind, ...]:
    """Return the kinds, each at the address that the environment gives."""
    addresses = {}
    if environ.get("OLLAMA_HOST"):
        addresses["ollama"] = resolve("ollama/x", environ).base_url.removesuffix("/v1")
    if environ.get("LM_STUDIO_API_BASE"):
        addresses["lm_studio"] = environ["LM_STUDIO_API_BASE"].rstrip("/").removesuffix("/v1")
    return tuple(replace(kind, address=addresses.get(kind.name, kind.address)) for kind in KINDS)


def find(
    kinds: Sequence[ServerKind] | None = None, environ: Mapping[str, str] = os.environ, timeout: float = _ANSWER_TIMEOUT
) -> list[LocalServer]:
    """Return the servers that answer within `timeout` seconds, in the order of the kinds; all are asked at once."""
    import httpx  # noqa: F401 - loaded once here, not by each thread

    kinds = known_kinds(environ) if kinds is None else kinds
    return [
        server
        for server in _at_once(lambda kind: look(kind, environ, timeout), kinds, timeout + _CONNECT_TIMEOUT)
        if server is not None
    ]


def _at_once(ask: Callable[[S], T], items: Sequence[S], seconds: float) -> list[T | None]:
    """Ask about all items at once; None for an answer that takes too long. Doesn't wait for slow threads to end."""
    from concurrent.futures import Future, wait

    answers: list[Future[T]] = [Future() for _ in items]
    waiting = deque(zip(items, answers, strict=True))

    def work() -> None:
        with contextlib.suppress(IndexError):
            while True:
                item, answer = waiting.popleft()
                try:
                    answer.set_result(ask(item))
                except Exception as error:  # noqa: BLE001 - raised where it is waited for
                    answer.set_exception(error)

    for _ in range(min(_THREADS, len(items))):
        threading.Thread(target=work, name="ask-server", daemon=True).start()
    try:
        wait(answers, seconds)
    finally:
        waiting.clear()
    return [answer.result() if answer.done() else None for answer in answers]


def look(
    kind: ServerKind, environ: Mapping[str, str] = os.environ, timeout: float = _ANSWER_TIMEOUT
) -> LocalServer | None:
    import httpx

    key = environ.get(kind.key_variable) if kind.key_variable else None
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        models = _LISTS.get(kind.name, _openai_models)(lambda path: _get(kind.address + path, headers, timeout))
    except _Locked:
        return LocalServer(kind, problem=f"{kind.title} requires its key. Set {kind.key_variable or 'api_key'}.")
    except (httpx.HTTPError, *MALFORMED):
        return None
    return LocalServer(kind, tuple(models), "" if models else f"{kind.title} is running but has no model yet.")


class _Locked(Exception):
    """Raised if the server wants a key."""


def _get(url: str, headers: Mapping[str, str], seconds: float = _ANSWER_TIMEOUT) -> dict[str, Any]:
    """Return the answer; empty from a server that does not have this path."""
    status, answer = fetch_json("GET", url, seconds, headers=headers, connect=_CONNECT_TIMEOUT)
    if status in (401, 403):
        raise _Locked
    return answer if status < 300 else {}


def _rows(answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = answer.get(key)
    if not isinstance(rows, list):
        raise ValueError("this is not a list of models")
    return [row for row in rows if isinstance(row, dict)]


def _model(row: Mapping[str, Any]) -> Model:
    """Convert a row of OpenAI's list, with what vLLM, llama.cpp and LM Studio add to it."""
    meta = row["meta"] if isinstance(row.get("meta"), dict) else {}
    windows = [row.get(name) for name in _WINDOW_FIELDS] + [meta.get("n_ctx")]
    count = _number(meta.get("n_params"))
    return Model(
        str(row["id"]),
        context=next(filter(None, map(_number, windows)), None),
        size=_number(meta.get("size")),
        is_loaded=row.get("state") == "loaded",
        billions=count / 1e9 if count else size_of(str(row.get("root") or "")),
    )


def _openai_models(ask: _Get) -> list[Model]:
    return [_model(row) for row in _rows(ask("/v1/models"), "data") if row.get("id") and not _embeds(str(row["id"]))]


def _llama_cpp_models(ask: _Get) -> list[Model]:
    """Return the one model it serves, with the window it was started with."""
    return [
        replace(model, context=model.context or _started_with(ask("/props")), is_loaded=True)
        for model in _openai_models(ask)
    ]


def _started_with(props: Mapping[str, Any]) -> int | None:
    settings = props.get("default_generation_settings")
    return _number(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _lm_studio_models(ask: _Get) -> list[Model]:
    """Read LM Studio's own list, with windows and types of models; older versions have only OpenAI's list."""
    rows = ask("/api/v0/models").get("data")
    if not isinstance(rows, list):
        return _openai_models(ask)
    return [_model(row) for row in rows if row.get("type") in ("llm", "vlm")]


def _ollama_models(ask: _Get) -> list[Model]:
    return [
        Model(str(row.get("name") or row.get("model")).removesuffix(":latest"), size=_number(row.get("size")))
        for row in _rows(ask("/api/tags"), "models")
        if not _embeds(str(row.get("name")))
    ]


_LISTS: Mapping[str, Callable[[_Get], list[Model]]] = {
    "ollama": _ollama_models,
    "lm_studio": _lm_studio_models,
    "llama.cpp": _llama_cpp_models,
}


def context_of(server: LocalServer, model: Model, wanted: int | None = None) -> int | None:
    """Return how long a conversation the model accepts there. Ollama is asked, since its list doesn't say."""
    if server.kind.name != "ollama":
        return min(wanted, model.context) if wanted and model.context else wanted or model.context
    try:
        return ollama.window_for(ollama.show(server.kind.address, model.name), wanted)
    except LocalServerError:
        return wanted


def contexts_of(server: LocalServer, models: Sequence[Model]) -> list[int | None]:
    return _at_once(partial(context_of, server), models, _ALL_ANSWERS_TIMEOUT)


def _number(value: object) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if 0 < value < _MAX_NUMBER else None


def _embeds(name: str) -> bool:
    """Return whether a model only computes embeddings, judging by its name; no list has that information."""
    return "embed" in name.lower()


# -- preparing a model for a request -----------------------------------------------------------------------------

BUILTIN = "builtin"
OLLAMA_WIRE = "ollama"


class LocalServers(ModelServers):
    """What local servers report about their models. Each server is asked once, even if it doesn't know."""

    formats: Mapping[str, type[Exchange]] = MappingProxyType({OLLAMA_WIRE: ollama.OllamaChat})

    def __init__(self, wait: Callable[[Callable[[], Any]], Any] = lambda ask: ask()) -> None:
        self._wait = wait  # returns a server's answer, or raises an error when the user cancels
        self._ollama_models: dict[tuple[str, str], ollama.OllamaModel] = {}
        self._not_ollama: set[str] = set()
        self._models: dict[tuple[str, str], Model] = {}  # of other servers
        self._windows: dict[tuple[str, str], int | None] = {}  # of these models

    def ready(
        self, endpoint: Endpoint, window: int | None = None, watch: Watch | None = None
    ) -> tuple[Endpoint, dict[str, Any]]:
        if endpoint.provider == BUILTIN:
            from interpreter.local_models import engine, weights

            served = engine.running(weights.file_of(endpoint.model), window, watch)
            return replace(endpoint, model=served.name, base_url=served.base_url, key=served.key), {}
        shown = self._shown(endpoint)
        if shown is None:
            return endpoint, {}
        native = replace(endpoint, base_url=_root(endpoint), wire=OLLAMA_WIRE)
        return native, {"num_ctx": ollama.window_for(shown, window)}

    def start(self, endpoint: Endpoint, window: int | None, watch: Watch) -> Iterator[dict[str, Any]]:
        if endpoint.provider != BUILTIN:
            return
        from interpreter.local_models import engine, weights

        file = weights.file_of(endpoint.model)
        if not engine.is_running(file, window):
            yield {"model": endpoint.model, "done": False}
            engine.running(file, window, watch)
            yield {"model": endpoint.model, "done": True}

    def window(self, endpoint: Endpoint, wanted: int | None = None) -> int | None:
        if endpoint.provider == BUILTIN:
            from interpreter.local_models import engine

            return wanted or engine.CONTEXT
        if shown := self._shown(endpoint):
            return ollama.window_for(shown, wanted)
        if wanted is not None or not _is_near(endpoint):
            return wanted
        key = (endpoint.base_url, endpoint.model)
        if key not in self._windows:
            listed = self._model(endpoint).context
            self._windows[key] = listed or _started_with(self._ask(endpoint, _root(endpoint) + "/props"))
        return self._windows[key]

    def known_window(self, endpoint: Endpoint) -> int | None:
        if endpoint.provider == BUILTIN:
            return self.window(endpoint)
        shown = self._ollama_models.get((_root(endpoint), endpoint.model))
        return ollama.window_for(shown) if shown else self._windows.get((endpoint.base_url, endpoint.model))

    def size(self, endpoint: Endpoint) -> float | None:
        if shown := self._shown(endpoint):
            return size_of(shown.parameters)
        return self._model(endpoint).billions if _is_near(endpoint) else None

    def _shown(self, endpoint: Endpoint) -> ollama.OllamaModel | None:
        """Return what Ollama reports about the model; None if it isn't Ollama, or doesn't answer."""
        address = _root(endpoint)
        key = (address, endpoint.model)
        if not _is_ollama(endpoint) or address in self._not_ollama:
            return None
        if key not in self._ollama_models:
            try:
                self._ollama_models[key] = self._wait(partial(ollama.show, address, endpoint.model))
            except BrokenStreamError:
                return None
            except LocalServerError as error:
                if error.status == 404 and error.detail:
                    return ollama.OllamaModel()  # its chat tells the user that it doesn't have the model
                if error.status is not None:
                    self._not_ollama.add(address)
                return None
        return self._ollama_models[key]

    def _model(self, endpoint: Endpoint) -> Model:
        """Return what another server reports about the model."""
        key = (endpoint.base_url, endpoint.model)
        if key not in self._models:
            rows = self._ask(endpoint, endpoint.base_url + "/models").get("data")
            listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            matching = (_model(row) for row in listed if row.get("id") == endpoint.model)
            self._models[key] = next(matching, Model(endpoint.model))
        return self._models[key]

    def _ask(self, endpoint: Endpoint, url: str) -> dict[str, Any]:
        """Return the answer; empty if the server can't be reached or doesn't have this path."""
        import httpx

        try:
            answer: dict[str, Any] = self._wait(partial(_get, url, endpoint.headers))
        except (httpx.HTTPError, BrokenStreamError, _Locked):
            return {}
        return answer


def _is_ollama(endpoint: Endpoint) -> bool:
    """Return whether an endpoint is Ollama: by its name, or as an OpenAI endpoint at Ollama's port."""
    if endpoint.provider.startswith("ollama"):
        return True
    if endpoint.provider != "openai" or endpoint.wire != "chat" or not endpoint.is_loopback:
        return False
    urls = (endpoint.base_url, resolve("ollama/any", os.environ).base_url)
    port, ollama_port = (urlsplit(url).netloc.rpartition(":")[2] for url in urls)
    return port == ollama_port


def _is_near(endpoint: Endpoint) -> bool:
    """Return whether the server may know such things, and costs nothing to ask."""
    # The built-in engine has no address before it runs. Ollama counts nothing beforehand.
    is_own = endpoint.provider == BUILTIN or endpoint.provider.startswith("ollama")
    return endpoint.is_loopback and endpoint.wire == "chat" and not is_own


def _root(endpoint: Endpoint) -> str:
    return endpoint.base_url.removesuffix("/v1")
