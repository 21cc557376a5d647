"""LiteLLM, for models of providers without a row in providers.py. It is loaded when the first of them is asked.

It reads in a separate thread, since its reads can't be interrupted.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from interpreter.errors import (
    BrokenStreamError,
    ContextTooLongError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    NotAStreamError,
    RateLimitedError,
    ReplyDeclinedError,
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from interpreter.llm.failures import retry_after
from interpreter.llm.providers import Endpoint

Watch = Callable[[socket.socket, threading.Event], None]

# Its list of prices is fetched from the net when it is imported, unless this is set before.
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR"}

# By the names of LiteLLM's exception classes, the most special first, since some are kinds of others.
_KINDS: tuple[tuple[str, type[ModelError], str], ...] = (
    ("ContextWindowExceededError", ContextTooLongError, "The conversation is too long for {model}."),
    ("ContentPolicyViolationError", ReplyDeclinedError, "{model} declined to answer this."),
    ("AuthenticationError", WrongKeyError, "The provider of {model} refuses the key, or there is none."),
    ("PermissionDeniedError", WrongKeyError, "Your key may not use {model}."),
    ("NotFoundError", UnknownModelError, "The provider has no model named {model}."),
    ("RateLimitError", RateLimitedError, "The provider of {model} takes no more requests for now."),
    ("Timeout", ModelTimeoutError, "The server of {model} kept silent for too long."),
    ("ServiceUnavailableError", ModelOverloadedError, "The server of {model} has a problem of its own."),
    ("BadGatewayError", ModelOverloadedError, "The server of {model} has a problem of its own."),
    ("InternalServerError", ModelOverloadedError, "The server of {model} has a problem of its own."),
    ("MidStreamFallbackError", BrokenStreamError, "The reply of {model} broke off."),
    ("APIConnectionError", ModelUnreachableError, "{model} cannot be reached through LiteLLM."),
    ("APIResponseValidationError", NotAStreamError, "What came back is not a reply of {model}."),
    ("BadRequestError", RequestRefusedError, "{model} does not take the request."),
    ("UnprocessableEntityError", RequestRefusedError, "{model} does not take the request."),
    ("APIError", ModelOverloadedError, "The server of {model} has a problem of its own."),
)


def ask(
    endpoint: Endpoint,
    params: Mapping[str, Any],
    cancelled: threading.Event,
    timeout: float,
    watch: Watch,
) -> Iterator[dict[str, Any]]:
    """The chunks of the reply in OpenAI's shape, or a typed error. Ends silently when cancelled."""
    request = {name: value for name, value in params.items() if value is not None}
    request |= {"model": endpoint.model, "stream": True, "stream_options": {"include_usage": True}}
    request |= {"timeout": timeout, "num_retries": 0, "max_retries": 0, "drop_params": True}
    request["_skip_mcp_handler"] = True  # it would want a package that it does not install
    reader = _Reader(request)
    watch(reader.bell, cancelled)
    with reader.bell:  # a thread that still reads notices the closed socket at its next chunk
        for chunk in reader.chunks():
            if cancelled.is_set():
                return
            yield chunk
        if cancelled.is_set():
            return
    if reader.failure is not None:
        raise _error(reader.failure, endpoint.model) from reader.failure


class _Reader:
    """Reads in a thread. Each chunk rings the bell; shutting the bell ends the wait."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.bell, self._rope = socket.socketpair()
        self.failure: Exception | None = None
        self._request = request
        self._came: deque[dict[str, Any]] = deque()
        self._thread = threading.Thread(target=self._read, daemon=True, name="litellm")

    def chunks(self) -> Iterator[dict[str, Any]]:
        self._thread.start()
        while self.bell.recv(1):
            yield self._came.popleft()

    def _read(self) -> None:
        try:
            for chunk in _load().completion(**self._request):
                self._came.append(chunk.model_dump(exclude_none=True))
                self._rope.send(b".")
        except Exception as error:  # noqa: BLE001 - raised again, as one of ours, where the reply is read
            self.failure = error
        finally:
            self._rope.close()


def _load() -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True  # it prints advice otherwise
    litellm.drop_params = True
    return litellm


def _error(failure: Exception, model: str) -> ModelError:
    names = {kind.__name__ for kind in type(failure).__mro__}
    status = getattr(failure, "status_code", None)
    headers = getattr(getattr(failure, "response", None), "headers", None) or {}
    detail = str(getattr(failure, "message", "") or failure)
    for name, kind, words in _KINDS:
        if name in names:
            said = f"{words.format(model=model)} {_ADVICE.get(kind, 'Try again later, or use another model.')}"
            return kind(said, detail=detail, status=status, retry_after=retry_after(headers))
    return ModelError(f"LiteLLM could not ask {model}: {type(failure).__name__}.", detail=detail)


_CHECK_NAME = "Check --model (in Python: interpreter.llm.model)."
_ADVICE: Mapping[type[ModelError], str] = {
    ContextTooLongError: "Start a new conversation, shorten it, or use a model with a larger window.",
    ReplyDeclinedError: "Put it in other words, or use another model.",
    WrongKeyError: "LiteLLM's documentation says which variables the provider wants; or pass --api_key.",
    UnknownModelError: _CHECK_NAME,
    RequestRefusedError: _CHECK_NAME,
}
