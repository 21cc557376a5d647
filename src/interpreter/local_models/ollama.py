"""Ollama: its native chat as a wire format, and its API for models.

The native chat is the one in which the length of the conversation can be requested (`num_ctx`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from interpreter.errors import LocalServerError, RepeatingReplyError
from interpreter.llm.failures import MALFORMED
from interpreter.llm.http import Exchange, Replies, fetch_json, json_lines, loads, plain_client
from interpreter.llm.providers import Endpoint

# -- the chat ----------------------------------------------------------------------------------------------------

# The names that Ollama has for the parameters of a request; they go into `options`.
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
# After this many equal tokens Ollama gives up; until late in 2026 it sent no last line then.
_EQUAL_TOKENS = 30


class OllamaChat(Exchange):
    """The wire format of `/api/chat`: one object a line, and the last one says that it is."""

    path = "/api/chat"

    def __init__(self, endpoint: Endpoint, params: Mapping[str, Any], replies: Replies) -> None:
        super().__init__(endpoint, params, replies)
        self._calls = self._repeated = 0
        self._last = ""

    def make_body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "model": self.endpoint.model,
            "messages": [_message(message) for message in params["messages"]],
            "stream": True,
            "options": {theirs: params[ours] for ours, theirs in _OPTIONS.items() if params.get(ours) is not None},
            **({"tools": params["tools"]} if params.get("tools") else {}),
        }

    def read(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        message = event.get("message") or {}
        self.has_ended = self.has_ended or bool(event.get("done"))
        if event.get("error"):
            self._check_repetition()
        chunk = _chunk(event, self._calls)
        self._calls += len(message.get("tool_calls") or ())
        token = str(message.get("content") or message.get("thinking") or "").strip()
        self._repeated = self._repeated + 1 if token == self._last else 1
        self._last = token
        return [chunk]

    def read_whole(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        return [_chunk({**answer, "message": answer["message"], "done": True}, 0)]

    def finish(self) -> None:
        if not self.has_ended:
            self._check_repetition()
        super().finish()

    def _check_repetition(self) -> None:
        if self._repeated >= _EQUAL_TOKENS:
            raise RepeatingReplyError(
                "The model kept repeating the same word, so Ollama cut its reply off. Rephrase the request, split it "
                "into smaller steps, or use a larger model."
            )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message to Ollama's form: text and images separate, the arguments of a call as an object."""
    content = message.get("content") or ""
    out: dict[str, Any] = {"role": message["role"], "content": content}
    if isinstance(content, list):
        out["content"] = "\n".join(part["text"] for part in content if part.get("type") == "text")
        urls = [part["image_url"]["url"] for part in content if part.get("type") == "image_url"]
        if urls:
            out["images"] = [url.partition("base64,")[2] for url in urls]
    for call in message.get("tool_calls") or ():
        try:
            arguments = json.loads(call["function"].get("arguments") or "{}")
        except ValueError:
            arguments = {}
        function = {"name": call["function"].get("name"), "arguments": arguments}
        out.setdefault("tool_calls", []).append({"function": function})
    if message["role"] == "tool" and message.get("name"):
        out["tool_name"] = message["name"]
    return out


def _chunk(event: Mapping[str, Any], calls: int) -> dict[str, Any]:
    """Convert a line of Ollama's to OpenAI's shape; `calls` tool calls came before it."""
    if event.get("error"):
        return {"error": {"message": str(event["error"])}}
    message = event.get("message") or {}
    delta: dict[str, Any] = {"content": message.get("content") or ""}
    if message.get("thinking"):
        delta["reasoning_content"] = message["thinking"]
    for index, call in enumerate(message.get("tool_calls") or (), calls):
        function = call.get("function") or {}
        arguments = function.get("arguments") or {}
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        delta.setdefault("tool_calls", []).append(
            {
                "index": index,
                "id": call.get("id") or f"call_{index}",
                "type": "function",
                "function": {"name": function.get("name"), "arguments": text},
            }
        )
    chunk: dict[str, Any] = {"choices": [{"delta": delta, "finish_reason": None}]}
    if event.get("done"):
        chunk["choices"][0]["finish_reason"] = event.get("done_reason") or "stop"
        # A prompt that is completely in Ollama's cache is not counted.
        if event.get("prompt_eval_count") is not None:
            read, written = event["prompt_eval_count"], event.get("eval_count") or 0
            chunk["usage"] = {"prompt_tokens": read, "completion_tokens": written}
    return chunk


# -- its models --------------------------------------------------------------------------------------------------

# By default Ollama reads only 2,048 or 4,096 tokens of any model, and silently drops the beginning.
WINDOW = 16384
_MAX_SILENCE = 600.0  # seconds of a download; checking a large file takes minutes
_MAX_LAYERS = 1000  # files of a model
WINDOW_WITH_LITTLE_MEMORY = 8192
_LITTLE_MEMORY = 12 * 1024**3


@dataclass(frozen=True)
class OllamaModel:
    """Ollama's description of a model; `window` is its maximum, `set_window` the value that its maker set."""

    window: int | None = None
    set_window: int | None = None
    parameters: str = ""  # such as `7.6B`


def show(address: str, model: str) -> OllamaModel:
    import httpx

    try:
        status, shown = fetch_json("POST", f"{address}/api/show", 10, {"model": model}, connect=3)
    except httpx.HTTPError as error:
        raise _unreachable(address, error) from error
    if status >= 300 or not shown:
        raise _refused(address, status, shown)
    info, details = (shown.get(name) for name in ("model_info", "details"))
    windows = (
        [value for key, value in info.items() if key.endswith(".context_length")] if isinstance(info, dict) else []
    )
    window = next((value for value in windows if isinstance(value, int)), None)
    set_windows = re.findall(r"(?m)^\s*num_ctx\s+(\d{1,9})\s*$", str(shown.get("parameters")))
    parameters = str(details.get("parameter_size") or "") if isinstance(details, dict) else ""
    return OllamaModel(window, int(set_windows[0]) if set_windows else None, parameters)


def window_for(shown: OllamaModel, wanted: int | None = None) -> int:
    """Return how many tokens to request: what the user wants, or what its maker set, or a good amount."""
    memory = _LITTLE_MEMORY
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    usual = WINDOW_WITH_LITTLE_MEMORY if memory < _LITTLE_MEMORY else WINDOW
    return min(wanted or shown.set_window or usual, shown.window or wanted or WINDOW)


def pull(address: str, model: str) -> Iterator[tuple[int, int]]:
    """Have Ollama download a model, and report how many bytes it has, and of how many, in the layers seen so far.

    Leaving the iteration stops it for now.
    """
    import httpx

    layers: dict[str, tuple[int, int]] = {}
    ended = False
    try:
        with (
            plain_client(httpx.Timeout(_MAX_SILENCE, connect=3)) as client,
            client.stream("POST", f"{address}/api/pull", json={"model": model, "stream": True}) as response,
        ):
            for line in json_lines(response.iter_raw()):
                try:
                    event = {**loads(line)}
                    if digest := event.get("digest"):
                        layers[digest] = (event.get("completed") or 0, event.get("total") or 0)
                        if len(layers) > _MAX_LAYERS or not all(0 <= size < 2**63 for size in layers[digest]):
                            raise ValueError("no model is like this")
                    done, total = (sum(column) for column in zip(*layers.values(), strict=True)) if layers else (0, 0)
                except MALFORMED as error:
                    raise LocalServerError(f"The server at {address} is not Ollama.") from error
                if not response.is_success:
                    raise _refused(address, response.status_code, event)
                if event.get("error"):
                    raise LocalServerError(
                        f"Ollama could not download {model}. Check its name at https://ollama.com/library, and your "
                        "network.",
                        detail=str(event["error"]),
                    )
                ended = event.get("status") == "success"
                yield done, total
    except httpx.HTTPError as error:
        raise _unreachable(address, error) from error
    if not ended:
        raise LocalServerError(
            f"The connection to Ollama at {address} was lost. Try again; it resumes where it stopped."
        )


def _refused(address: str, status: int, answer: Mapping[str, Any]) -> LocalServerError:
    detail = answer.get("error")
    text = f"Ollama at {address} answered {status}." if status >= 300 else f"The server at {address} is not Ollama."
    return LocalServerError(text, detail=detail if isinstance(detail, str) else "", status=status)


def _unreachable(address: str, error: Exception) -> LocalServerError:
    return LocalServerError(f"Nothing answers at {address} ({error}). Is Ollama running? Start it with `ollama serve`.")
