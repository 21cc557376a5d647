"""Finding the model servers that run on this machine: all of them at once, and what they serve."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from interpreter.errors import LocalServerError
from interpreter.llm.local import ollama
from interpreter.llm.providers import resolve

if TYPE_CHECKING:
    import httpx

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


def plain_client(timeout: httpx.Timeout, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """A client for this machine: no proxy, and no certificates read for plain HTTP."""
    import ssl

    import httpx

    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.Client(timeout=timeout, headers=dict(headers or {}), trust_env=False, verify=trust)


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
