"""When to ask again, and how long to wait before."""

from __future__ import annotations

import random
from collections.abc import Mapping

from interpreter.errors import ModelError

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
