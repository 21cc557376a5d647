"""What models cost and how much they can read, from a list that scripts/make_prices.py makes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from interpreter.llm.catalogue import ROWS
from interpreter.llm.providers import identify

_MILLION = 1_000_000
# Who sells the models of whom under another prefix.
_SAME_AS = {"vertex_ai": "gemini", "codestral": "mistral", "cohere_chat": "cohere"}
_COMPACT_DATE = re.compile(r"-(20\d{2})(\d{2})(\d{2})$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; `steps` are the prices of requests that read at least so many tokens."""

    read: float
    written: float
    cached: float | None = None
    to_cache: float | None = None
    steps: tuple[tuple[int, Price], ...] = ()
    is_certain: bool = True
    """Whether the model is asked where its price was written down; a proxy may have its own."""

    def cost(self, read: int, written: int, cached: int = 0, to_cache: int = 0) -> float:
        """What one request costs; `cached` and `to_cache` are parts of `read`."""
        price = next((step for start, step in reversed(self.steps) if read > start), self)
        from_cache = price.read if price.cached is None else price.cached
        into_cache = price.read if price.to_cache is None else price.to_cache
        plain = max(0, read - cached - to_cache)
        spent = plain * price.read + cached * from_cache + to_cache * into_cache + written * price.written
        return spent / _MILLION


@dataclass(frozen=True)
class Known:
    """What the list has on a model; `price` and `window` are None where it does not tell."""

    name: str
    price: Price | None = None
    window: int | None = None


FREE = Price(0, 0)


def look_up(model: str, api_base: str | None = None) -> Known | None:
    """What is known of a model string; None for one that nobody has a price for."""
    provider, name = identify(model, api_base)
    row = ROWS.get(provider)
    if row is not None and row.is_local:
        return Known(name, FREE)
    if provider == "litellm":
        provider, name = identify(name)
    found = _find(provider, name.removeprefix("responses/"))
    if found is None and "/" in name:  # a proxy's name for somebody else's model
        found = _find(*identify(name)) if api_base or provider == "litellm_proxy" else None
    if found is None:
        return None
    return _known(found, is_certain=not api_base)


def price_of(model: str, api_base: str | None = None) -> Price | None:
    """What a model costs, if that is known."""
    known = look_up(model, api_base)
    return known.price if known else None


def window_of(model: str, api_base: str | None = None) -> int | None:
    """How many tokens a model can read, if that is known."""
    known = look_up(model, api_base)
    return known.window if known else None


def models(provider: str) -> list[Known]:
    """What the list has on the models of a provider."""
    return [_known(row) for row in _rows(_SAME_AS.get(provider, provider))]


def _find(provider: str, name: str) -> list[Any] | None:
    table = _tables().get(_SAME_AS.get(provider, provider))
    if table is None:
        return None
    name = name.lower()
    dated = _COMPACT_DATE.sub(r"-\1-\2-\3", name)
    for spelled in dict.fromkeys([name, dated]):
        for prefix in (_SAME_AS.get(provider, provider), *table["also"]):
            for row in _rows(prefix):
                if any(_matches(pattern, spelled) for pattern in row[1] or row[:1]):
                    return row
    return None


def _matches(pattern: str, name: str) -> bool:
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        return re.search(pattern[1:-1], name) is not None
    if pattern[-1:] == "*":
        inside = pattern.strip("*")
        return inside in name if pattern[0] == "*" else name.startswith(inside)
    return name.endswith(pattern[1:]) if pattern[:1] == "*" else name == pattern


def _known(row: list[Any], is_certain: bool = True) -> Known:
    name, _, window, base, *steps = row
    later = zip(steps[::2], steps[1::2], strict=True)
    made = tuple((start, _price(prices, (), is_certain)) for start, prices in later)
    return Known(name, _price(base, made, is_certain), window)


def _price(prices: list[float], steps: tuple[tuple[int, Price], ...], is_certain: bool) -> Price:
    read, written, cached, to_cache, *_ = [*prices, None, None]
    assert read is not None and written is not None
    return Price(read, written, cached, to_cache, steps, is_certain)


def _rows(prefix: str) -> list[list[Any]]:
    table = _tables().get(prefix)
    return table["models"] if table else []


@cache
def _tables() -> Mapping[str, Any]:
    text = (Path(__file__).parent / "prices.json").read_text(encoding="utf-8")
    tables: Mapping[str, Any] = json.loads(text)["providers"]
    return tables
