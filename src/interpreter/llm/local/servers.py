"""Finding the model servers that run on this machine: all of them at once, and what they serve."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from interpreter.errors import LocalServerError, ModelError
from interpreter.llm import ollama
from interpreter.llm.http import plain_client
from interpreter.llm.model_profile import size_of
from interpreter.llm.providers import Endpoint, resolve
from interpreter.llm.usage import window_of

if TYPE_CHECKING:
    import httpx

    from interpreter.llm.local.engine import Watch


_CONNECT = 0.5
_ANSWER = 3.0


@dataclass(frozen=True)
class Model:
    """A model that a server has; `context` is the longest conversation it takes, if the server tells."""

    name: str
    context: int | None = None
    size: int | None = None
    is_loaded: bool = False


@dataclass(frozen=True)
class Kind:
    """A program that serves models: where it listens unless told otherwise, and how its models are called."""

    name: str
    title: str
    address: str
    prefix: str = "openai/"
    key_variable: str = ""


@dataclass(frozen=True)
class Server:
    """A server that answers. `problem` says why its models are not known, in words for the user."""

    kind: Kind
    models: tuple[Model, ...] = ()
    problem: str = ""

    @property
    def api_base(self) -> str:
        return f"{self.kind.address}/v1"

    def model_string(self, model: Model) -> str:
        """What `llm.model` is set to."""
        return self.kind.prefix + model.name


KINDS: tuple[Kind, ...] = (
    Kind("ollama", "Ollama", "http://127.0.0.1:11434", "ollama/"),
    Kind("lm_studio", "LM Studio", "http://127.0.0.1:1234", "lm_studio/", "LM_STUDIO_API_KEY"),
    Kind("jan", "Jan", "http://127.0.0.1:1337", "jan/", "JAN_API_KEY"),
    Kind("llama.cpp", "llama.cpp or llamafile", "http://127.0.0.1:8080", "openai/"),
    Kind("vllm", "vLLM", "http://127.0.0.1:8000", "openai/", "VLLM_API_KEY"),
)


def known_kinds(environ: Mapping[str, str] = os.environ) -> tuple[Kind, ...]:
    """The kinds, each where the environment says it is."""
    return tuple(_placed(kind, environ) for kind in KINDS)


def find(
    kinds: Sequence[Kind] | None = None, environ: Mapping[str, str] = os.environ, patience: float = _ANSWER
) -> list[Server]:
    """The servers that answer within `patience` seconds, in the order of the kinds; all are asked at once."""
    import httpx  # noqa: F401 - loaded once here, not by each thread

    kinds = known_kinds(environ) if kinds is None else kinds
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(kinds) or 1, "find-server") as threads:
        found = threads.map(lambda kind: look(kind, environ, patience), kinds)
        return [server for server in found if server is not None]


def look(kind: Kind, environ: Mapping[str, str] = os.environ, patience: float = _ANSWER) -> Server | None:
    """The server of this kind, if there is one."""
    import httpx

    key = environ.get(kind.key_variable) if kind.key_variable else None
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with plain_client(httpx.Timeout(patience, connect=_CONNECT), headers) as client:
            ask = _Asker(client, kind.address)
            models = _LISTS.get(kind.name, _openai_models)(ask)
    except _Locked:
        return Server(kind, problem=f"{kind.title} wants its key: set {kind.key_variable or 'api_key'}.")
    except (httpx.HTTPError, _NotThere):
        return None
    problem = "" if models else f"{kind.title} is running and has no model yet."
    return Server(kind, tuple(models), problem)


class _NotThere(Exception):
    """Something answers, and it is not a model server."""


class _Locked(Exception):
    """It wants a key."""


class _Asker:
    def __init__(self, client: httpx.Client, address: str) -> None:
        self._client, self._address = client, address

    def __call__(self, path: str) -> dict[str, Any]:
        response = self._client.get(self._address + path)
        if response.status_code in (401, 403):
            raise _Locked
        try:
            told = response.json() if response.is_success else None
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise _NotThere
        return told

    def maybe(self, path: str) -> dict[str, Any]:
        """The answer, or nothing from a server that does not have this path."""
        try:
            return self(path)
        except _NotThere:
            return {}


def _rows(told: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = told.get(key)
    if not isinstance(rows, list):
        raise _NotThere
    return [row for row in rows if isinstance(row, dict)]


def _openai_models(ask: _Asker) -> list[Model]:
    return [
        Model(str(row["id"]), context=_number(row.get("max_model_len")))
        for row in _rows(ask("/v1/models"), "data")
        if row.get("id") and not _embeds(str(row["id"]))
    ]


def _llama_cpp_models(ask: _Asker) -> list[Model]:
    """The one model it serves, with the window it was started with."""
    window = _number((ask.maybe("/props").get("default_generation_settings") or {}).get("n_ctx"))
    models = []
    for row in _rows(ask("/v1/models"), "data"):
        meta = row.get("meta") or {}
        context = _number(meta.get("n_ctx")) or window
        models.append(Model(str(row.get("id")), context, _number(meta.get("size")), is_loaded=True))
    return models


def _lm_studio_models(ask: _Asker) -> list[Model]:
    """Its own list tells windows and leaves out what cannot chat; older versions have only OpenAI's."""
    rows = ask.maybe("/api/v0/models").get("data")
    if not isinstance(rows, list):
        return _openai_models(ask)
    return [
        Model(
            str(row["id"]),
            context=_number(row.get("loaded_context_length")) or _number(row.get("max_context_length")),
            is_loaded=row.get("state") == "loaded",
        )
        for row in rows
        if row.get("type") in ("llm", "vlm")
    ]


def _ollama_models(ask: _Asker) -> list[Model]:
    return [
        Model(str(row.get("name") or row.get("model")).removesuffix(":latest"), size=_number(row.get("size")))
        for row in _rows(ask("/api/tags"), "models")
        if not _embeds(str(row.get("name")))
    ]


_LISTS: Mapping[str, Callable[[_Asker], list[Model]]] = {
    "ollama": _ollama_models,
    "lm_studio": _lm_studio_models,
    "llama.cpp": _llama_cpp_models,
}


def context_of(server: Server, model: Model, wanted: int | None = None) -> int | None:
    """How long a conversation the model takes there; Ollama is asked, since its list does not tell."""
    if server.kind.name != "ollama":
        return min(wanted, model.context) if wanted and model.context else wanted or model.context
    try:
        return ollama.window_for(ollama.show(server.kind.address, model.name), wanted)
    except LocalServerError:
        return wanted


def contexts_of(server: Server, models: Sequence[Model]) -> list[int | None]:
    """The same for many models, asked at once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8, "ask-window") as threads:
        return list(threads.map(lambda model: context_of(server, model), models))


def _placed(kind: Kind, environ: Mapping[str, str]) -> Kind:
    if kind.name == "ollama" and environ.get("OLLAMA_HOST"):
        base = resolve("ollama/x", environ).base_url
        return replace(kind, address=base.removesuffix("/v1"))
    if kind.name == "lm_studio" and environ.get("LM_STUDIO_API_BASE"):
        return replace(kind, address=environ["LM_STUDIO_API_BASE"].rstrip("/").removesuffix("/v1"))
    return kind


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _embeds(name: str) -> bool:
    """Whether a model only turns text into vectors, as its name tells; no list says so."""
    return "embed" in name.lower()


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
        from interpreter.llm import ollama

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


SMALLEST = 1500  # tokens: no window is so small that a shorter request fills it


_CONNECT_of_window, _ANSWER_of_window = 0.5, 3.0
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

    try:
        with plain_client(httpx.Timeout(_ANSWER_of_window, connect=_CONNECT_of_window), endpoint.headers) as client:
            response = client.request(method, url, json=body)
            told = response.json() if response.is_success else {}
    except (httpx.HTTPError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
