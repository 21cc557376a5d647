"""Transient failures are retried after an announced wait, but never once text has arrived."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from interpreter.errors import ModelOverloadedError, RateLimitedError, WrongKeyError
from interpreter.llm.failures import retry_after, wait_before_retry
from model_server import broken, error, text
from scripted_llm import Start, folded


def test_a_rate_limit_waits_as_long_as_the_server_asks(asking: Start) -> None:
    limited = error(429, "slow down", {"retry-after-ms": "20"})
    chunks = asking(limited, limited, text("Hi")).chunks()
    assert [chunk["content"] for chunk in chunks[:2]] == [
        {"reason": "rate limit", "seconds": 0.02, "attempt": 1},
        {"reason": "rate limit", "seconds": 0.02, "attempt": 2},
    ]
    assert folded(chunks) == ["Hi"]


@pytest.mark.parametrize("status", [500, 502, 503, 529, 408])
def test_server_errors_are_retried(asking: Start, status: int) -> None:
    chunks = asking(error(status, headers={"Retry-After": "0"}), text("Hi")).chunks()
    assert [chunk["type"] for chunk in chunks] == ["status", "message"]


def test_retrying_stops_after_max_retries(asking: Start) -> None:
    model = asking(*[error(503, headers={"Retry-After": "0"})] * 3, max_retries=2)
    chunks, _ = model.until_error(ModelOverloadedError)
    assert [chunk["content"]["attempt"] for chunk in chunks] == [1, 2]
    assert len(model.server.requests) == 3


def test_a_wait_longer_than_allowed_raises_an_error_at_once(asking: Start) -> None:
    chunks, caught = asking(error(429, headers={"Retry-After": "3600"})).until_error(RateLimitedError)
    assert chunks == []
    assert caught.retry_after == 3600


def test_permanent_failures_are_not_retried(asking: Start) -> None:
    model = asking(error(401), text("no"))
    model.until_error(WrongKeyError)
    model.server.add()
    refused = asking(error(500, headers={"x-should-retry": "false"}), text("no"))
    refused.until_error(ModelOverloadedError)
    assert len(model.server.requests) == len(refused.server.requests) == 1


def test_a_reply_that_breaks_after_text_is_not_retried(asking: Start) -> None:
    model = asking(text("Hel").then(broken()), text("Hello"))
    with pytest.raises(Exception, match="was lost"):
        model.chunks()
    assert len(model.server.requests) == 1


def test_cancel_ends_the_wait(asking: Start) -> None:
    model = asking(error(429, headers={"Retry-After": "100"}))
    chunks = model.stream()
    assert next(chunks)["content"]["seconds"] == 100
    threading.Timer(0.05, model.llm.cancel).start()
    assert list(chunks) == []


def test_retry_after_headers_are_parsed() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    long_ago = "Wed, 21 Oct 2015 07:28:00 GMT"
    assert retry_after({}) is None
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert 45 < (retry_after({"retry-after": soon}) or 0) <= 50
    assert retry_after({"retry-after": long_ago}) == retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "soon"}) is retry_after({"retry-after": "nan"}) is None


def test_waits_grow_without_a_retry_after_header() -> None:
    overloaded = ModelOverloadedError("x")
    waits = [wait_before_retry(overloaded, attempt, 120) or 0 for attempt in (1, 2, 3, 4, 20)]
    assert 0.3 < waits[0] < waits[1] < waits[2] < waits[3] < waits[4] == 120
