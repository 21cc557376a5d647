"""Ollama's native chat, the one in which the length of the conversation can be asked for (`num_ctx`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interpreter.errors import BrokenStreamError, LocalServerError, RepeatingReplyError, RequestRefusedError
from interpreter.llm.http import plain_client
from interpreter.llm.providers import Endpoint

if TYPE_CHECKING:
    import httpx

    from interpreter.llm.http import Sent


# What Ollama calls the parameters of a request; it takes them in `options`.
_OPTIONS = {
    "temperature": "temperature",
    "max_tokens": "num_predict",
    "num_ctx": "num_ctx",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
# After so many equal tokens Ollama gives up; until late in 2026 it did so without a last line.
_EQUAL_TOKENS = 30


class OllamaChat:
    """The wire format of `/api/chat`."""

    path = "/api/chat"

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body; what is not set is not sent."""
        options = {theirs: params[ours] for ours, theirs in _OPTIONS.items() if params.get(ours) is not None}
        body: dict[str, Any] = {
            "model": endpoint.model,
            "messages": [_message(message) for message in params["messages"]],
            "stream": True,
            "options": options,
        }
        if params.get("tools"):
            body["tools"] = params["tools"]
        return body

    def adapt(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """It does not say what it objects to, so there is nothing to leave out."""
        return False

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer, one object a line; the last one says that it is."""
        done = False
        calls = 0
        equal = _EqualTokens()
        for line in events:
            try:
                told = json.loads(line)
            except ValueError as error:
                raise BrokenStreamError("Ollama sent something that is no JSON. Try again.") from error
            chunk = _chunk(told, calls)
            calls += len((told.get("message") or {}).get("tool_calls") or ())
            done = done or bool(told.get("done"))
            if told.get("error"):
                equal.check()
            equal.count(told)
            yield chunk
        if not done:
            equal.check()
            raise BrokenStreamError("Ollama ended its reply in the middle. Try again.")

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """An answer in one piece."""
        if "message" not in answer:
            raise KeyError("message")
        return _chunk({**answer, "done": True}, 0)


class _EqualTokens:
    """How often the last token has come in a row: what tells a reply that Ollama gave up from a broken one."""

    def __init__(self) -> None:
        self._last, self._times = "", 0

    def count(self, told: Mapping[str, Any]) -> None:
        message = told.get("message") or {}
        token = str(message.get("content") or message.get("thinking") or "").strip()
        self._times = self._times + 1 if token == self._last else 1
        self._last = token

    def check(self) -> None:
        if self._times >= _EQUAL_TOKENS:
            raise RepeatingReplyError(
                "The model said the same word over and over, so Ollama cut its reply off. "
                "Say it in other words or in smaller steps, or use a larger model."
            )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of ours in Ollama's form: words and images apart, the arguments of a call as an object."""
    content = message.get("content") or ""
    out: dict[str, Any] = {"role": message["role"], "content": content}
    if isinstance(content, list):
        out["content"] = "\n".join(part["text"] for part in content if part.get("type") == "text")
        urls = [part["image_url"]["url"] for part in content if part.get("type") == "image_url"]
        if urls:
            out["images"] = [url.partition("base64,")[2] for url in urls]
    if message.get("tool_calls"):
        out["tool_calls"] = [{"function": _call(call["function"])} for call in message["tool_calls"]]
    if message["role"] == "tool" and message.get("name"):
        out["tool_name"] = message["name"]
    return out


def _call(function: Mapping[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = {}
    return {"name": function.get("name"), "arguments": arguments}


def _chunk(told: Mapping[str, Any], calls: int) -> dict[str, Any]:
    """A line of Ollama's in OpenAI's shape; `calls` tool calls came before it."""
    if told.get("error"):
        return {"error": {"message": str(told["error"])}}
    message = told.get("message") or {}
    delta: dict[str, Any] = {"content": message.get("content") or ""}
    if message.get("thinking"):
        delta["reasoning_content"] = message["thinking"]
    if message.get("tool_calls"):
        delta["tool_calls"] = [_called(call, calls + n) for n, call in enumerate(message["tool_calls"])]
    chunk: dict[str, Any] = {"choices": [{"delta": delta, "finish_reason": None}]}
    if told.get("done"):
        chunk["choices"][0]["finish_reason"] = told.get("done_reason") or "stop"
        # A prompt that Ollama still remembers whole is not counted.
        if told.get("prompt_eval_count") is not None:
            read, written = told["prompt_eval_count"], told.get("eval_count") or 0
            chunk["usage"] = {"prompt_tokens": read, "completion_tokens": written}
    return chunk


def _called(call: Mapping[str, Any], index: int) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "index": index,
        "id": call.get("id") or f"call_{index}",
        "type": "function",
        "function": {"name": function.get("name"), "arguments": text},
    }


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
