"""What the model has used and cost so far, and the budget that stops a request before it is sent."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from interpreter.errors import BudgetExceededError
from interpreter.llm.prices import Price, price_of
from interpreter.llm.tokens import estimate_messages, estimate_text

# What a budget in dollars is worth in tokens of a model whose price nobody knows.
TOKENS_PER_DOLLAR = 100_000
_USUAL_REPLY = 500


@dataclass(frozen=True)
class Usage:
    """What a number of requests took; `estimated` if any of it is not from the server and the price list."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    """US dollars, of the requests whose price is known."""
    unpriced_tokens: int = 0
    """Tokens of the requests whose price is not known."""
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        names = [field.name for field in fields(self) if field.name != "estimated"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Usage(**sums, estimated=self.estimated or other.estimated)


class Purse:
    """Counts what is spent, in the session and in the turn that goes on."""

    def __init__(self) -> None:
        self.session = Usage()
        self.turn = Usage()
        self._counting = threading.Lock()  # several requests may be out at once
        self._truth = 1.0  # what the server counted, over what was estimated, of the last request

    def begin_turn(self) -> None:
        self.turn = Usage()

    def record(self, counted: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Count one request in; its usage as it is told to the user, with its cost if the price is known."""
        read, written, cached = (
            counted["input_tokens"],
            counted["output_tokens"],
            counted.get("cached_tokens", 0),
        )
        if not counted["estimated"] and (size := _size(params)):
            self._truth = read / size
        price, told = _price(params), dict(counted)
        to_cache = told.pop("cache_creation_tokens", 0)
        guessed = counted["estimated"] or (price is not None and not price.is_certain)
        if price is not None:
            told |= {"cost": price.cost(read, written, cached, to_cache), "cost_estimated": guessed}
        unpriced = 0 if price is not None else read + written
        used = Usage(1, read, written, cached, told.get("cost", 0.0), unpriced, guessed)
        with self._counting:
            self.session += used
            self.turn += used
        return told

    def check(self, params: Mapping[str, Any], dollars: float | None, tokens: int | None) -> None:
        """Raise an error if the request that is about to be sent might exceed the budget."""
        if dollars is None and tokens is None:
            return
        read = round(_size(params) * self._truth)
        written = params.get("max_tokens") or self._usual_reply()
        price = _price(params)
        if dollars is not None and price is not None:
            self._check_dollars(price, read, written, dollars)
        coming, spent = read + written, self.session
        if tokens is not None and spent.tokens + coming > tokens:
            raise _too_many_tokens(spent, spent.tokens, coming, tokens, "max_budget_tokens")
        if dollars is not None and price is None and tokens is None:
            worth = round(max(0.0, dollars - spent.cost) * TOKENS_PER_DOLLAR)
            if spent.unpriced_tokens + coming > worth:
                unknown = str(params["model"])
                raise _too_many_tokens(spent, spent.unpriced_tokens, coming, worth, "max_budget", unknown)

    def _check_dollars(self, price: Price, read: int, written: int, dollars: float) -> None:
        spent, next_cost = self.session.cost, price.cost(read, written)
        if next_cost and spent + next_cost > dollars:
            about = "about " if self.session.estimated else ""
            raise BudgetExceededError(
                f"The budget of {in_dollars(dollars)} ends here: {about}{in_dollars(spent)} "
                f"has been spent on {self.session.requests} requests, and the next may cost "
                f"{in_dollars(next_cost)}. Raise --max_budget (in Python: interpreter.llm.max_budget), or use "
                "a cheaper model.",
                spent=self.session,
            )

    def _usual_reply(self) -> int:
        spent = self.session
        return spent.output_tokens // spent.requests if spent.requests else _USUAL_REPLY


def in_dollars(amount: float) -> str:
    """Money as people write it, with more digits where it is less than a cent."""
    if not amount or amount >= 0.1:
        return f"${amount:,.2f}"
    return f"${amount:.4f}" if amount >= 0.00005 else f"${amount:.2g}"


def _price(params: Mapping[str, Any]) -> Price | None:
    return price_of(params["model"], params.get("api_base"))


def _size(params: Mapping[str, Any]) -> int:
    return estimate_messages(params["messages"]) + estimate_text(str(params.get("tools", "")))


def _too_many_tokens(
    usage: Usage, spent: int, coming: int, limit: int, setting: str, unknown: str = ""
) -> BudgetExceededError:
    why = f"The price of {unknown!r} is not known, so the budget counts its tokens. " if unknown else ""
    return BudgetExceededError(
        f"{why}The budget of {limit:,} tokens ends here: {spent:,} have been used, and the next request may "
        f"take {coming:,}. Raise --{setting} (in Python: interpreter.llm.{setting}).",
        spent=usage,
    )
