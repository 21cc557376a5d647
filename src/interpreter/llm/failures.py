"""Failures of model servers: a typed error that says what to do, and how long to wait before a retry.

The status and the fields `code`, `type` and `param` tell failures apart. Messages are passed on, never parsed.
"""

from __future__ import annotations

import contextlib
import json
import random
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interpreter.errors import (
    ContextTooLongError,
    MissingKeyError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    NotAStreamError,
    QuotaExceededError,
    RateLimitedError,
    ReplyDeclinedError,
    ReplyTooLargeError,
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from interpreter.llm.providers import ROWS, Endpoint

# What servers call their failures.
_CODES: Mapping[type[ModelError], set[str]] = {
    QuotaExceededError: {
        "insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error",
    },
    WrongKeyError: {
        "invalid_api_key", "api_key_invalid", "authentication_error", "invalid_authentication", "permission_error",
    },
    UnknownModelError: {"model_not_found", "model_not_available", "unknown_model", "deploymentnotfound"},
    ContextTooLongError: {
        "context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "request_too_large",
    },
    RateLimitedError: {"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "rate_limit_reached"},
    ModelOverloadedError: {
        "overloaded_error", "server_error", "internal_server_error", "api_error", "engine_overloaded",
    },
    ReplyDeclinedError: {"refusal", "content_filter", "content_policy_violation"},
    ModelTimeoutError: {"timeout_error"},
}  # fmt: skip
_CONTEXT_PARAMS = frozenset({"input_tokens", "input_text"})  # of vLLM: no request has such a field


@dataclass(frozen=True)
class ModelFailure:
    status: int | None = None
    codes: frozenset[str] = frozenset()
    params: frozenset[str] = frozenset()
    detail: str = ""
    is_structured: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    window: int | None = None  # the model's window, which some servers report when a request is too long


def read_failure(status: int, headers: Mapping[str, str], body: bytes) -> ModelFailure:
    try:
        return failure_of(json.loads(body), status, headers)
    except MALFORMED:
        is_page = "html" in headers.get("content-type", "")
        return ModelFailure(
            status, detail="" if is_page else one_line(body.decode("utf-8", "replace")), headers=headers
        )


def failure_of(data: Any, status: int | None = None, headers: Mapping[str, str] | None = None) -> ModelFailure:
    """Parse an error object, which servers wrap differently."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return ModelFailure(status, detail=one_line(str(data)), headers=headers or {})
    inner = data.get("error") or data
    fields = inner if isinstance(inner, dict) else {"message": inner}
    codes = {str(fields.get(key)).lower() for key in ("code", "type", "status") if fields.get(key)}
    details = fields.get("details")
    if isinstance(details, list):  # Google reports a wrong key there, with the status of a wrong request
        codes |= {str(each["reason"]).lower() for each in details if isinstance(each, dict) and each.get("reason")}
    params = {str(fields["param"])} if fields.get("param") else set()
    detail = data.get("detail")
    if isinstance(detail, list):  # the unknown fields that FastAPI and pydantic report
        params |= {str(part) for item in detail if isinstance(item, dict) for part in item.get("loc", ())}
    message = fields.get("message") or detail or ""
    if status is None and isinstance(fields.get("code"), int):
        status = fields["code"]
    text = message if isinstance(message, str) else json.dumps(message)
    window = fields["n_ctx"] if isinstance(fields.get("n_ctx"), int) else None
    return ModelFailure(status, frozenset(codes), frozenset(params), one_line(text), True, headers or {}, window)


# What a reader raises when a reply is not of the shape that it should have.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, zlib.error)


def malformed(server: str, error: Exception) -> NotAStreamError:
    why = f"{type(error).__name__}: {one_line(str(error), 100)}"
    return NotAStreamError(f"{server} sent a malformed reply ({why}). Try again, or use another model or server.")


def too_large(what: str) -> ReplyTooLargeError:
    return ReplyTooLargeError(f"The model's reply has {what}, so it was cut off. Try again, or use another model.")


_LATER = "Try again later, or use another model."
_CHECK_BASE = "Check --api_base (in Python: interpreter.llm.api_base). Most URLs end in /v1."


def error_for(failure: ModelFailure, endpoint: Endpoint) -> ModelError:
    status, model = failure.status, endpoint.model
    named = {kind for kind, codes in _CODES.items() if codes & failure.codes}
    server, http = f"The server at {endpoint.base_url}", f" (HTTP {status})" if status else ""
    is_unknown_model = UnknownModelError in named or (
        status == 404 and (failure.is_structured or "model" in failure.params)
    )
    wants_key = status in (401, 403) or WrongKeyError in named
    is_overloaded = status >= 500 if status is not None else ModelOverloadedError in named
    is_elsewhere = status is not None and (status < 400 or status in (404, 405))
    moved = one_line(failure.headers.get("location", ""))
    # The first row that applies counts.
    rows: tuple[tuple[object, type[ModelError], str], ...] = (
        (
            ReplyDeclinedError in named,
            ReplyDeclinedError,
            f"{model} declined to answer this. Rephrase it, or use another model.",
        ),
        (
            status == 402 or QuotaExceededError in named,
            QuotaExceededError,
            f"Your {endpoint.provider} account has no quota left. Top it up, or use another model or key.",
        ),
        (
            ContextTooLongError in named or status == 413 or failure.params & _CONTEXT_PARAMS,
            ContextTooLongError,
            f"The conversation is too long for {model}. Start a new one, shorten it, or use a model with a larger "
            f"context window.",
        ),
        (
            is_unknown_model and endpoint.provider.startswith("ollama"),
            UnknownModelError,
            f"Ollama has no model named {model!r}. Get it with `ollama pull {model}`, or see `ollama list`.",
        ),
        (
            is_unknown_model,
            UnknownModelError,
            f"{server} has no model named {model!r}, or your key doesn't have access to it. "
            f"{_close_names(endpoint)}See {endpoint.base_url}/models for a list, and pick one with --model (in "
            f"Python: interpreter.llm.model).",
        ),
        (
            wants_key and not endpoint.key,
            MissingKeyError,
            f"{server} requires a key. Pass --api_key (in Python: interpreter.llm.api_key).",
        ),
        (
            wants_key,
            WrongKeyError,
            f"{server} rejected the key{http}. Check the key and its permissions, then set it in the environment or "
            f"pass --api_key (in Python: interpreter.llm.api_key).",
        ),
        (
            status == 429 or RateLimitedError in named,
            RateLimitedError,
            f"{server} is limiting requests right now. {_LATER}",
        ),
        (
            status == 408 or (status is None and ModelTimeoutError in named),
            ModelTimeoutError,
            f"{server} timed out. {_LATER}",
        ),
        (
            is_overloaded,
            ModelOverloadedError,
            f"{server} returned an error{http}. {_LATER}",
        ),
        (
            is_elsewhere and moved,
            NotAStreamError,
            f"{server} redirects to {moved}. Set api_base to the new URL.",
        ),
        (
            is_elsewhere,
            NotAStreamError,
            f"There is no model server at {endpoint.base_url}{http}. {_CHECK_BASE}",
        ),
    )
    refused = f"{server} rejected the request{http}. Check the model settings."
    kind, text = next(((kind, text) for applies, kind, text in rows if applies), (RequestRefusedError, refused))
    error = kind(text, detail=failure.detail, status=status, retry_after=retry_after(failure.headers))
    if failure.headers.get("x-should-retry") == "false":
        error.retryable = False
    if isinstance(error, ContextTooLongError):
        error.window = failure.window
    if isinstance(error, RequestRefusedError):
        error.params = failure.params
    return error


def _close_names(endpoint: Endpoint) -> str:
    from difflib import get_close_matches

    from interpreter.llm.usage import known_models

    row = ROWS.get(endpoint.provider)
    if row is None or row.base_url != endpoint.base_url:
        return ""  # the provider's list says nothing about another server
    close = get_close_matches(endpoint.model.lower(), [known.name for known in known_models(endpoint.provider)], n=3)
    return f"Did you mean {' or '.join(close)}? " if close else ""


def not_a_stream(endpoint: Endpoint, content_type: str) -> NotAStreamError:
    kind = content_type.partition(";")[0] or "something without a content type"
    return NotAStreamError(
        f"The server at {endpoint.base_url} answered with {kind} instead of a model's reply. {_CHECK_BASE}"
    )


def one_line(text: str, limit: int = 500) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


_PROXY_VARIABLES = "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment"


def unreachable(endpoint: Endpoint, failure: Exception) -> ModelUnreachableError:
    import httpx

    cause: BaseException | None = failure
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        text = (
            f"Can't make a secure connection to {endpoint.base_url} ({cause.reason or cause}). If the server uses "
            "plain HTTP, write http:// in --api_base. Otherwise, a proxy or firewall may be interfering."
        )
        if isinstance(cause, ssl.SSLCertVerificationError):
            text = (
                f"The certificate of {endpoint.base_url} is not trusted ({cause.verify_message}). Behind a company "
                "firewall, set SSL_CERT_FILE to the firewall's certificate file. Otherwise, check the URL and this "
                "machine's clock."
            )
        error = ModelUnreachableError(text)
        error.retryable, error.reason = False, "no secure connection"
        return error
    if isinstance(failure, httpx.ProxyError):
        return ModelUnreachableError(
            f"The proxy {_proxy(endpoint)} blocks the connection to {endpoint.base_url} ({failure}). Check "
            f"{_PROXY_VARIABLES}. To bypass the proxy for a server, add it to NO_PROXY."
        )
    if endpoint.provider.startswith("ollama"):
        advice = "Is Ollama running? Start it with `ollama serve`."
    elif endpoint.is_loopback:
        advice = "Start the model server, or check --api_base."
    elif proxy := _proxy(endpoint):
        advice = f"Requests go through the proxy {proxy}. Check that it is running, and check {_PROXY_VARIABLES}."
    else:
        advice = "Check your network, and --api_base if you set it."
    error = ModelUnreachableError(f"Nothing answers at {endpoint.base_url} ({failure}). {advice}")
    error.retryable = not endpoint.is_loopback  # waiting doesn't start a server on this machine
    return error


def _proxy(endpoint: Endpoint) -> str:
    """Return the proxy that requests to the endpoint go through, without the password in its address."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(endpoint.base_url)
    if proxy_bypass(address.hostname or ""):
        return ""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all") or ""
    scheme, separator, rest = proxy.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]


_FIRST_WAIT = 0.5


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that a server asks for: in milliseconds, in seconds, or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with contextlib.suppress(ValueError):
            seconds = float(headers.get(name) or "") * unit
            if seconds == seconds:  # not "nan"
                return max(0.0, seconds)
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(headers.get("retry-after") or "")
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def wait_before_retry(error: ModelError, attempt: int, most: float) -> float | None:
    """Return how long to wait before attempt number `attempt`; None if that would be too long."""
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= most else None
    backed_off: float = _FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
    return min(most, backed_off)
