"""Ollama's own interface: its models, what they are, fetching one, and the window to ask for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interpreter.errors import LocalServerError

if TYPE_CHECKING:
    import httpx

# Ollama takes 2,048 or 4,096 tokens whatever the model can do, and drops the beginning without a word.
WINDOW = 16384
WINDOW_WITH_LITTLE_MEMORY = 8192
_LITTLE_MEMORY = 12 * 1024**3


@dataclass(frozen=True)
class Shown:
    """What Ollama says of a model; `window` is the longest it can do, `set_window` what its maker set."""

    window: int | None = None
    set_window: int | None = None
    capabilities: tuple[str, ...] = ()
    parameters: str = ""
    quantization: str = ""


@dataclass(frozen=True)
class Pulled:
    """How far fetching a model is; the numbers are bytes of all layers seen so far."""

    status: str
    done: int = 0
    total: int = 0


def tags(address: str) -> list[dict[str, Any]]:
    """The models that Ollama has, newest first."""
    models: list[dict[str, Any]] = _json(_request("GET", address, "/api/tags")).get("models") or []
    return models


def show(address: str, model: str) -> Shown:
    """What is known of a model."""
    told = _json(_request("POST", address, "/api/show", {"model": model}))
    info: Mapping[str, Any] = told.get("model_info") or {}
    details: Mapping[str, Any] = told.get("details") or {}
    window = next((value for key, value in info.items() if key.endswith(".context_length")), None)
    return Shown(
        window=window if isinstance(window, int) else None,
        set_window=_parameter(told.get("parameters") or "", "num_ctx"),
        capabilities=tuple(told.get("capabilities") or ()),
        parameters=details.get("parameter_size") or "",
        quantization=details.get("quantization_level") or "",
    )


def window_for(shown: Shown, wanted: int | None = None) -> int:
    """How many tokens to ask for: what the user wants, else what its maker set, else a good amount."""
    most = shown.window or wanted or WINDOW
    usual = WINDOW_WITH_LITTLE_MEMORY if _memory() < _LITTLE_MEMORY else WINDOW
    return min(wanted or shown.set_window or usual, most)


def pull(address: str, model: str) -> Iterator[Pulled]:
    """Have Ollama fetch a model, and tell how far it is; leaving the iteration stops it for now."""
    layers: dict[str, tuple[int, int]] = {}
    failed = f"Ollama could not get {model}. Check its name at https://ollama.com/library, and the network."
    for event in _events(address, "/api/pull", {"model": model, "stream": True}, failed):
        if digest := event.get("digest"):
            layers[digest] = (event.get("completed") or 0, event.get("total") or 0)
        done, total = (sum(column) for column in zip(*layers.values(), strict=True)) if layers else (0, 0)
        yield Pulled(event.get("status") or "", done, total)


def create(address: str, name: str, base: str, window: int) -> Iterator[str]:
    """Make a model of another one with a window of its own, for programs that cannot ask for one."""
    body = {"model": name, "from": base, "parameters": {"num_ctx": window}, "stream": True}
    for event in _events(address, "/api/create", body, f"Ollama could not make {name} of {base}."):
        yield event.get("status") or ""


def _events(address: str, path: str, body: dict[str, Any], failed: str) -> Iterator[dict[str, Any]]:
    import httpx

    ended = False
    try:
        with _client(None) as client, client.stream("POST", address + path, json=body) as response:
            if not response.is_success:
                response.read()
                raise _refused(response)
            for line in response.iter_lines():
                event = _parsed(line, address) if line.strip() else {}
                if event.get("error"):
                    raise LocalServerError(failed, detail=str(event["error"]))
                ended = event.get("status") == "success"
                yield event
    except httpx.HTTPError as error:
        raise _unreachable(address, error) from error
    if not ended:
        words = f"Ollama at {address} broke off in the middle. Try again: it goes on where it stopped."
        raise LocalServerError(words)


def _request(method: str, address: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
    import httpx

    try:
        with _client(10) as client:
            response = client.request(method, address + path, json=body)
    except httpx.HTTPError as error:
        raise _unreachable(address, error) from error
    if not response.is_success:
        raise _refused(response)
    return response


def _client(timeout: float | None) -> httpx.Client:
    import httpx

    from interpreter.llm.local.servers import plain_client

    return plain_client(httpx.Timeout(timeout, connect=3))


def _json(response: httpx.Response) -> dict[str, Any]:
    return _parsed(response.text, str(response.url))


def _parsed(text: str, address: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise LocalServerError(f"What answers at {address} is not Ollama.") from error
    return told if isinstance(told, dict) else {}


def _refused(response: httpx.Response) -> LocalServerError:
    try:
        told = response.json()
    except ValueError:
        told = {}
    detail = told.get("error") if isinstance(told, dict) else ""
    where = f"{response.url.scheme}://{response.url.netloc.decode()}"
    return LocalServerError(
        f"Ollama at {where} answers {response.status_code}.",
        detail=detail if isinstance(detail, str) else "",
        status=response.status_code,
    )


def _unreachable(address: str, error: Exception) -> LocalServerError:
    return LocalServerError(f"Nothing answers at {address} ({error}). Is Ollama running? Start it with `ollama serve`.")


def _parameter(text: str, name: str) -> int | None:
    """A number out of the lines `name value` in which Ollama tells a model's parameters."""
    for line in text.splitlines():
        match line.split():
            case [key, value] if key == name and value.isdigit():
                return int(value)
    return None


def _memory() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _LITTLE_MEMORY
