"""From what a server answers when it fails to a typed error that says what to do.

Told apart by the status and by the fields `code`, `type` and `param`; words are only passed on, never read.
"""

from __future__ import annotations

import json
import random
import ssl
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
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from interpreter.llm.providers import Endpoint

_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error"})
_KEY = frozenset(
    {"invalid_api_key", "api_key_invalid", "authentication_error", "invalid_authentication", "permission_error"}
)
_MODEL = frozenset({"model_not_found", "model_not_available", "unknown_model", "deploymentnotfound"})
_CONTEXT = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "request_too_large"}
)
_CONTEXT_PARAMS = frozenset({"input_tokens", "input_text"})  # of vLLM: no request has such a field
_RATE = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "rate_limit_reached"})
_OVERLOADED = frozenset({"overloaded_error", "server_error", "internal_server_error", "api_error", "engine_overloaded"})
_DECLINED = frozenset({"refusal", "content_filter", "content_policy_violation"})
_TIMEOUT = frozenset({"timeout_error"})


@dataclass(frozen=True)
class Failure:
    """What a server said about its failure."""

    status: int | None = None
    codes: frozenset[str] = frozenset()
    params: frozenset[str] = frozenset()
    detail: str = ""
    is_structured: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    window: int | None = None
    """The model's window, from a server that tells it with a request that is too long."""


def read_failure(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """The failure that a response with an error status tells of."""
    try:
        data = json.loads(body)
    except ValueError:
        kind = headers.get("content-type", "").partition(";")[0]
        return Failure(
            status, detail="" if "html" in kind else _short(body.decode("utf-8", "replace")), headers=headers
        )
    return failure_of(data, status, headers)


def failure_of(data: Any, status: int | None = None, headers: Mapping[str, str] | None = None) -> Failure:
    """The failure that an error object tells of; servers wrap theirs in several ways."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return Failure(status, detail=_short(str(data)), headers=headers or {})
    inner = data.get("error") or data
    fields = inner if isinstance(inner, dict) else {"message": inner}
    codes = {str(fields.get(key)).lower() for key in ("code", "type", "status") if fields.get(key)}
    codes |= {str(each["reason"]).lower() for each in _details(fields) if each.get("reason")}
    params = {str(fields["param"])} if fields.get("param") else set()
    detail = data.get("detail")
    if isinstance(detail, list):  # as FastAPI and pydantic tell of fields that they do not know
        params |= {str(part) for item in detail if isinstance(item, dict) for part in item.get("loc", ())}
    message = fields.get("message") or detail or ""
    if status is None and isinstance(fields.get("code"), int):
        status = fields["code"]
    words = message if isinstance(message, str) else json.dumps(message)
    window = fields["n_ctx"] if isinstance(fields.get("n_ctx"), int) else None
    return Failure(status, frozenset(codes), frozenset(params), _short(words), True, headers or {}, window)


def _details(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """As Google tells of a key that is wrong, with the status of a request that is."""
    details = fields.get("details")
    return [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []


def error_for(failure: Failure, endpoint: Endpoint) -> ModelError:
    """The error to raise."""
    status, codes = failure.status, failure.codes
    if codes & _DECLINED:
        return _error(ReplyDeclinedError, failure, f"{endpoint.model} declined to answer this. {_REPHRASE}")
    if status == 402 or codes & _QUOTA:
        return _error(QuotaExceededError, failure, f"The account at {endpoint.provider} has no quota left: {_PAY}")
    if codes & _CONTEXT or status == 413 or failure.params & _CONTEXT_PARAMS:
        return _too_long(failure, endpoint)
    if codes & _MODEL or (status == 404 and (failure.is_structured or "model" in failure.params)):
        return _error(UnknownModelError, failure, _unknown_model(endpoint))
    if status in (401, 403) or codes & _KEY:
        return _key_error(failure, endpoint)
    if status == 429 or codes & _RATE:
        return _error(RateLimitedError, failure, f"{_who(endpoint)} takes no more requests for now. {_LATER}")
    if status == 408 or (status is None and codes & _TIMEOUT):
        return _error(ModelTimeoutError, failure, f"{_who(endpoint)} gave up waiting. {_LATER}")
    if (status is not None and status >= 500) or (status is None and codes & _OVERLOADED):
        return _error(
            ModelOverloadedError,
            failure,
            f"{_who(endpoint)} has a problem of its own{_http(status)}. {_LATER}",
        )
    if status is not None and (status < 400 or status == 404 or status == 405):
        return _error(NotAStreamError, failure, _wrong_address(endpoint, failure))
    return _refused(failure, endpoint)


def not_a_stream(endpoint: Endpoint, content_type: str) -> NotAStreamError:
    kind = content_type.partition(";")[0] or "something without a content type"
    return NotAStreamError(f"{_who(endpoint)} answered with {kind}, not with a model's reply. {_check_base(endpoint)}")


_PAY = "top it up at the provider, or use another model or key."
_LATER = "Try again later, or use another model."
_REPHRASE = "Put it in other words, or use another model."
_SHORTEN = "Start a new conversation, shorten it, or use a model with a larger window."


def _who(endpoint: Endpoint) -> str:
    return f"The server at {endpoint.base_url}"


def _http(status: int | None) -> str:
    return f" (HTTP {status})" if status else ""


def _error(kind: type[ModelError], failure: Failure, words: str) -> ModelError:
    wait = retry_after(failure.headers)
    error = kind(words, detail=failure.detail, status=failure.status, retry_after=wait)
    if failure.headers.get("x-should-retry") == "false":
        error.retryable = False
    return error


def _too_long(failure: Failure, endpoint: Endpoint) -> ModelError:
    words = f"The conversation is too long for {endpoint.model}. {_SHORTEN}"
    error = _error(ContextTooLongError, failure, words)
    assert isinstance(error, ContextTooLongError)
    error.window = failure.window
    return error


def _key_error(failure: Failure, endpoint: Endpoint) -> ModelError:
    if not endpoint.key:
        words = f"{_who(endpoint)} wants a key. Pass --api_key (in Python: interpreter.llm.api_key)."
        return _error(MissingKeyError, failure, words)
    words = (
        f"{_who(endpoint)} refuses the key{_http(failure.status)}. Check the key and what it may be used "
        "for, then set it in the environment or pass --api_key (in Python: interpreter.llm.api_key)."
    )
    return _error(WrongKeyError, failure, words)


def _unknown_model(endpoint: Endpoint) -> str:
    if endpoint.provider.startswith("ollama"):
        name = endpoint.model
        return f"Ollama has no model named {name!r}. Get it with `ollama pull {name}`, or see `ollama list`."
    return (
        f"{_who(endpoint)} has no model named {endpoint.model!r}, or your key may not use it. "
        f"{_close_names(endpoint)}Its list is "
        f"at {endpoint.base_url}/models; choose one with --model (in Python: interpreter.llm.model)."
    )


def _close_names(endpoint: Endpoint) -> str:
    """The models of the provider that somebody who wrote this name may have meant."""
    from difflib import get_close_matches

    from interpreter.llm.providers import ROWS
    from interpreter.llm.usage import known_models

    row = ROWS.get(endpoint.provider)
    if row is None or row.base_url != endpoint.base_url:
        return ""  # somebody's own server has models of its own
    names = [known.name for known in known_models(endpoint.provider)]
    close = get_close_matches(endpoint.model.lower(), names, n=3)
    return f"Did you mean {' or '.join(close)}? " if close else ""


def _wrong_address(endpoint: Endpoint, failure: Failure) -> str:
    moved = failure.headers.get("location")
    if moved:
        return f"{_who(endpoint)} sends its visitors on to {moved}. Set api_base to the address it moved to."
    return f"There is no model server at {endpoint.base_url}{_http(failure.status)}. {_check_base(endpoint)}"


def _check_base(endpoint: Endpoint) -> str:
    return "Check --api_base (in Python: interpreter.llm.api_base); most addresses end in /v1."


def _refused(failure: Failure, endpoint: Endpoint) -> RequestRefusedError:
    words = f"{_who(endpoint)} does not take the request{_http(failure.status)}. Check the settings of the model."
    error = RequestRefusedError(words, detail=failure.detail, status=failure.status)
    error.params = failure.params
    return error


def _short(text: str, limit: int = 500) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def unreachable(endpoint: Endpoint, failure: Exception) -> ModelUnreachableError:
    """The error for a connection that httpx could not make."""
    import httpx

    tls = _tls_failure(failure)
    if tls is not None:
        return _without_trust(endpoint, tls)
    if isinstance(failure, httpx.ProxyError):
        return ModelUnreachableError(
            f"The proxy {_proxy(endpoint)} does not let us through to {endpoint.base_url} ({failure}). "
            f"Check {_VARIABLES}; NO_PROXY names the servers that need none."
        )
    error = ModelUnreachableError(f"Nothing answers at {endpoint.base_url} ({failure}). {_advice(endpoint)}")
    error.retryable = not endpoint.is_loopback  # a server that is not there will not come by waiting
    return error


_VARIABLES = "HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment"


def _without_trust(endpoint: Endpoint, tls: ssl.SSLError) -> ModelUnreachableError:
    if isinstance(tls, ssl.SSLCertVerificationError):
        words = (
            f"The certificate of {endpoint.base_url} is not trusted ({tls.verify_message}). If a firewall of "
            "your company stands in between, set SSL_CERT_FILE to the file with its certificate; else check "
            "the address and the clock of this machine."
        )
    else:
        words = (
            f"No secure connection to {endpoint.base_url} could be made ({tls.reason or tls}). If the server "
            "speaks plain HTTP, write http:// in --api_base; else something in between may be in the way."
        )
    error = ModelUnreachableError(words)
    error.retryable = False
    error.reason = "no secure connection"
    return error


def _tls_failure(failure: BaseException | None) -> ssl.SSLError | None:
    """The failure of the encryption that is behind another one, if that is what it was."""
    while failure is not None:
        if isinstance(failure, ssl.SSLError):
            return failure
        failure = failure.__cause__ or failure.__context__
    return None


def _advice(endpoint: Endpoint) -> str:
    if endpoint.provider.startswith("ollama"):
        return "Is Ollama running? Start it with `ollama serve`."
    if endpoint.is_loopback:
        return "Start the model server, or check --api_base."
    if proxy := _proxy(endpoint):
        return f"Requests go through the proxy {proxy}: check that it runs, and {_VARIABLES}."
    return "Check the network, and --api_base if you set it."


def _proxy(endpoint: Endpoint) -> str:
    """The proxy that requests to the endpoint go through, without a password in its address."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    address = urlsplit(endpoint.base_url)
    if proxy_bypass(address.hostname or ""):
        return ""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all") or ""
    scheme, found, rest = proxy.rpartition("://")
    return scheme + found + rest.rpartition("@")[2]


FIRST_WAIT = 0.5


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds that a server asks for: in milliseconds, in seconds, or as a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    if said is None:
        return None
    seconds = _number(said)
    return seconds if seconds is not None else _seconds_until(said)


def wait_before_retry(error: ModelError, attempt: int, most: float) -> float | None:
    """How long to wait before attempt number `attempt`; None if that would be too long."""
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= most else None
    backed_off: float = FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
    return min(most, backed_off)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if number == number else None


def _seconds_until(date: str) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
