"""What models cost and how much they can read, and what the requests of a session have used.

The prices come from prices.json, which scripts/make_prices.py writes.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from interpreter.errors import BudgetExceededError
from interpreter.llm.context import estimate_request, most_tokens
from interpreter.llm.providers import ROWS, identify

# -- prices ------------------------------------------------------------------------------------------------------

# Providers that sell the models of another one.
_SAME_AS = {"vertex_ai": "gemini", "codestral": "mistral", "cohere_chat": "cohere"}


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; `steps` are the prices of requests that read at least so many tokens."""

    read: float
    written: float
    cached: float | None = None
    to_cache: float | None = None
    steps: tuple[tuple[int, Price], ...] = ()
    is_certain: bool = True  # False for a model behind a proxy, which may have its own price

    def cost(self, read: int, written: int, cached: int = 0, to_cache: int = 0) -> float:
        """Return what one request costs; `cached` and `to_cache` are parts of `read`."""
        price = next((step for start, step in reversed(self.steps) if read > start), self)
        from_cache = price.read if price.cached is None else price.cached
        into_cache = price.read if price.to_cache is None else price.to_cache
        plain = max(0, read - cached - to_cache)
        spent = plain * price.read + cached * from_cache + to_cache * into_cache + written * price.written
        return spent / 1_000_000


@dataclass(frozen=True)
class KnownModel:
    """A model's entry in the list; `price` and `window` are None if unknown."""

    name: str
    price: Price | None = None
    window: int | None = None


def look_up(model: str, api_base: str | None = None) -> KnownModel:
    """Look up a model string; neither price nor window is set if it isn't in the list."""
    provider, name = identify(model, api_base)
    row = ROWS.get(provider)
    if row is not None and row.is_local:
        return KnownModel(name, Price(0, 0))
    if provider == "litellm":
        provider, name = identify(name)
    entry = _find(provider, name.removeprefix("responses/"))
    if entry is None and "/" in name and (api_base or provider == "litellm_proxy"):
        entry = _find(*identify(name))  # a proxy's name for another provider's model
    return _known(entry, is_certain=not api_base) if entry is not None else KnownModel(name)


def known_models(provider: str) -> list[KnownModel]:
    return [_known(row) for row in _rows(_SAME_AS.get(provider, provider))]


def _find(provider: str, name: str) -> list[Any] | None:
    provider = _SAME_AS.get(provider, provider)
    name = name.lower()
    dated = re.sub(r"-(20\d{2})(\d{2})(\d{2})$", r"-\1-\2-\3", name)
    rows = [row for each in (provider, *_tables().get(provider, {}).get("also", ())) for row in _rows(each)]
    spelled = ((row, each) for each in dict.fromkeys([name, dated]) for row in rows)
    fitting = (row for row, each in spelled if any(_matches(pattern, each) for pattern in row[1] or row[:1]))
    return next(fitting, None)


def _matches(pattern: str, name: str) -> bool:
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        return re.search(pattern[1:-1], name) is not None
    if pattern[-1:] == "*":
        inside = pattern.strip("*")
        return inside in name if pattern[0] == "*" else name.startswith(inside)
    return name.endswith(pattern[1:]) if pattern[:1] == "*" else name == pattern


def _known(row: list[Any], is_certain: bool = True) -> KnownModel:
    name, _, window, base, *steps = row

    def price(values: list[float], steps: tuple[tuple[int, Price], ...] = ()) -> Price:
        read, written, *cache = values
        cached, to_cache, *_ = [*cache, None, None]
        return Price(read, written, cached, to_cache, steps, is_certain)

    later = zip(steps[::2], steps[1::2], strict=True)
    return KnownModel(name, price(base, tuple((start, price(values)) for start, values in later)), window)


def _rows(prefix: str) -> list[list[Any]]:
    table = _tables().get(prefix)
    return table["models"] if table else []


@cache
def _tables() -> Mapping[str, Any]:
    text = (Path(__file__).parent / "prices.json").read_text(encoding="utf-8")
    tables: Mapping[str, Any] = json.loads(text)["providers"]
    return tables


# -- usage and budget --------------------------------------------------------------------------------------------

# What a budget in dollars is worth in tokens of a model with an unknown price.
TOKENS_PER_DOLLAR = 100_000
_USUAL_REPLY = 500
_MAX_REPLY, _MIN_REPLY = 8192, 256  # tokens of a reply, if only a budget limits it


def limit_reply(params: dict[str, Any], dollars: float) -> float:
    """Return the most that a request can cost, after limiting its reply to what this many dollars pay for."""
    read, price = most_tokens(params), look_up(params["model"], params.get("api_base")).price
    unit = price.cost(0, 1) if price is not None else 1 / TOKENS_PER_DOLLAR
    reading = max(price.cost(read, 0), price.cost(read, 0, 0, read)) if price is not None else read / TOKENS_PER_DOLLAR
    if not params.get("max_tokens"):
        affordable = int((dollars - reading) / unit) if unit else _MAX_REPLY
        params["max_tokens"] = max(_MIN_REPLY, min(_MAX_REPLY, affordable))
    most: int = params["max_tokens"]
    return reading + unit * most


@dataclass(frozen=True)
class Usage:
    """Usage of a number of requests; `estimated` if any of it is not from the server or the price list."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0  # US dollars, of the requests whose price is known
    unpriced_tokens: int = 0  # of requests with an unknown price
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name != "estimated"
        }
        return Usage(**sums, estimated=self.estimated or other.estimated)


class UsageTracker:
    """Counts what the session and its current turn have used, and stops a request that would exceed the budget."""

    def __init__(self) -> None:
        self.session = Usage()
        self.turn = Usage()
        self._counting = threading.Lock()  # several requests may run at once
        self._correction = 1.0  # the server's count of the last request, over our estimate

    def record(self, counted: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Count one request and return its usage for the user, with its cost if the price is known."""
        read, written, cached = counted["input_tokens"], counted["output_tokens"], counted.get("cached_tokens", 0)
        if not counted["estimated"] and (size := estimate_request(params)):
            self._correction = read / size
        price, usage = look_up(params["model"], params.get("api_base")).price, dict(counted)
        to_cache = usage.pop("cache_creation_tokens", 0)
        estimated = counted["estimated"] or (price is not None and not price.is_certain)
        if price is not None:
            usage |= {"cost": price.cost(read, written, cached, to_cache), "cost_estimated": estimated}
        unpriced = 0 if price is not None else read + written
        used = Usage(1, read, written, cached, usage.get("cost", 0.0), unpriced, estimated)
        with self._counting:
            self.session += used
            self.turn += used
        return usage

    def check(self, params: Mapping[str, Any], dollars: float | None, tokens: int | None) -> None:
        """Raise an error if the request that is about to be sent might exceed the budget."""
        if dollars is None and tokens is None:
            return
        spent = self.session
        read = round(estimate_request(params) * self._correction)
        written = params.get("max_tokens") or (
            spent.output_tokens // spent.requests if spent.requests else _USUAL_REPLY
        )
        price = look_up(params["model"], params.get("api_base")).price
        next_cost = price.cost(read, written) if price is not None else 0
        if dollars is not None and next_cost and spent.cost + next_cost > dollars:
            about = "about " if spent.estimated else ""
            raise BudgetExceededError(
                f"Stopped at the budget of {in_dollars(dollars)}: {about}{in_dollars(spent.cost)} spent on "
                f"{spent.requests} requests, and the next one may cost {in_dollars(next_cost)}. Raise --max_budget "
                f"(in Python: interpreter.llm.max_budget), or use "
                "a cheaper model.",
                spent=spent,
            )
        why, used, limit, setting = "", spent.tokens, tokens, "max_budget_tokens"
        if tokens is None and dollars is not None and price is None:
            why = f"The price of {params['model']!r} is unknown, so the budget counts its tokens. "
            limit = round(max(0.0, dollars - spent.cost) * TOKENS_PER_DOLLAR)
            used, setting = spent.unpriced_tokens, "max_budget"
        if limit is not None and used + read + written > limit:
            raise BudgetExceededError(
                f"{why}Stopped at the budget of {limit:,} tokens: {used:,} used, and the next request may take "
                f"{read + written:,}. Raise --{setting} (in Python: interpreter.llm.{setting}).",
                spent=spent,
            )


def in_dollars(amount: float) -> str:
    """Format an amount of money, with more digits if it is less than a cent."""
    if not amount or amount >= 0.1:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.00005 else f"${amount:.2g}"
