"""LiteLLM, for models of providers without a row in providers.py. It is loaded at the first request to one.

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

# Its list of prices is fetched from the net when it is imported, unless this is set before.
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR"}

# By the names of LiteLLM's exception classes, subclasses before their base classes.
_KINDS: tuple[tuple[str, type[ModelError], str], ...] = (
    ("ContextWindowExceededError", ContextTooLongError, "The conversation is too long for {model}."),
    ("ContentPolicyViolationError", ReplyDeclinedError, "{model} declined to answer this."),
    ("AuthenticationError", WrongKeyError, "The provider of {model} rejected the key, or no key is set."),
    ("PermissionDeniedError", WrongKeyError, "Your key doesn't have access to {model}."),
    ("NotFoundError", UnknownModelError, "The provider has no model named {model}."),
    ("RateLimitError", RateLimitedError, "The provider of {model} is limiting requests right now."),
    ("Timeout", ModelTimeoutError, "No reply from the server of {model} in time."),
    ("ServiceUnavailableError", ModelOverloadedError, "The server of {model} returned an error."),
    ("BadGatewayError", ModelOverloadedError, "The server of {model} returned an error."),
    ("InternalServerError", ModelOverloadedError, "The server of {model} returned an error."),
    ("MidStreamFallbackError", BrokenStreamError, "The reply of {model} was cut off."),
    ("APIConnectionError", ModelUnreachableError, "Can't reach {model} through LiteLLM."),
    ("APIResponseValidationError", NotAStreamError, "The response is not a reply from {model}."),
    ("BadRequestError", RequestRefusedError, "{model} rejected the request."),
    ("UnprocessableEntityError", RequestRefusedError, "{model} rejected the request."),
    ("APIError", ModelOverloadedError, "The server of {model} returned an error."),
)


def ask(
    endpoint: Endpoint,
    params: Mapping[str, Any],
    cancelled: threading.Event,
    timeout: float,
    watch: Callable[[socket.socket, threading.Event], None],
) -> Iterator[dict[str, Any]]:
    """Yield the chunks of the reply in OpenAI's shape, or raise a typed error; end silently when cancelled."""
    request = {
        **{name: value for name, value in params.items() if value is not None},
        "model": endpoint.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "timeout": timeout,
        "num_retries": 0,
        "max_retries": 0,
        "drop_params": True,
        "_skip_mcp_handler": True,  # it would require a package that LiteLLM doesn't install
    }
    # Each chunk rings the bell; shutting the bell ends the wait.
    bell, rope = socket.socketpair()
    came: deque[dict[str, Any]] = deque()
    failures: list[Exception] = []

    def read() -> None:
        try:
            for chunk in _load().completion(**request):
                came.append(chunk.model_dump(exclude_none=True))
                rope.send(b".")
        except Exception as error:  # noqa: BLE001 - raised again, as one of ours, where the reply is read
            failures.append(error)
        finally:
            rope.close()

    watch(bell, cancelled)
    with bell:  # a thread that still reads notices the closed socket at its next chunk
        threading.Thread(target=read, daemon=True, name="litellm").start()
        while bell.recv(1) and not cancelled.is_set():
            yield came.popleft()
    if failures and not cancelled.is_set():
        raise _error(failures[0], endpoint.model) from failures[0]


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
    for name, kind, template in _KINDS:
        if name in names:
            text = f"{template.format(model=model)} {_ADVICE.get(kind, 'Try again later, or use another model.')}"
            return kind(text, detail=detail, status=status, retry_after=retry_after(headers))
    return ModelError(f"LiteLLM failed to call {model}: {type(failure).__name__}.", detail=detail)


_CHECK_NAME = "Check --model (in Python: interpreter.llm.model)."
_ADVICE: Mapping[type[ModelError], str] = {
    ContextTooLongError: "Start a new one, shorten it, or use a model with a larger context window.",
    ReplyDeclinedError: "Rephrase it, or use another model.",
    WrongKeyError: "See LiteLLM's documentation for the variables that the provider needs, or pass --api_key.",
    UnknownModelError: _CHECK_NAME,
    RequestRefusedError: _CHECK_NAME,
}
