"""Limits for many requests: a budget that not even one request exceeds, a pace, and what is worth another try."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from interpreter.errors import (
    BrokenStreamError,
    BudgetExceededError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    RateLimitedError,
)
from interpreter.llm.failures import wait_before_retry
from interpreter.llm.usage import in_dollars

T = TypeVar("T")

TRANSIENT = (BrokenStreamError, ModelOverloadedError, ModelTimeoutError, ModelUnreachableError)  # connections and 5xx
LOST = (BrokenStreamError, ModelTimeoutError)  # the server may have answered, and charged for it
MAX_WAIT = 60.0  # seconds between two tries
MAX_PAUSE = 600.0  # seconds that one item waits for a server that limits requests, all pauses together


class Gate(Protocol):
    """Paces the requests of a budget and of the budgets below it, for programs that run many sessions."""

    def enter(self, dollars: float, cancelled: Callable[[], bool]) -> int:
        """Wait until a request that may cost this much can be sent, and return its number."""

    def leave(self, number: int, cost: float, error: BaseException | None) -> None: ...


class Budget:
    """Dollars for a number of requests. Each reserves the most that it can cost before it is sent.

    What is spent here counts for `parent`, too, and may exceed no limit on the way up.
    """

    # One for all, because a reservation is checked against every budget of a tree at once.
    _changed = threading.Condition(threading.RLock())

    def __init__(
        self,
        limit: Callable[[], float | None] = lambda: None,
        parent: Budget | None = None,
        owner: str = "This work",
        gate: Gate | None = None,
    ) -> None:
        self._limit, self.parent, self.owner, self.gate = limit, parent, owner, gate
        self.spent = self.reserved = 0.0

    def chain(self) -> Iterator[Budget]:
        budget: Budget | None = self
        while budget is not None:
            yield budget
            budget = budget.parent

    @property
    def limit(self) -> float | None:
        """Return this budget's own limit; None if only its parents limit it."""
        return self._limit()

    @property
    def left(self) -> float | None:
        """Return the dollars that are neither spent nor reserved, here or in a parent; None without a limit."""
        with self._changed:
            limits = [limit - each.spent - each.reserved for each in self.chain() if (limit := each.limit) is not None]
        return max(0.0, min(limits)) if limits else None

    def reserve(self, dollars: float, cancelled: Callable[[], bool] = lambda: False) -> Reservation:
        """Set aside what a request can cost. If the budget is too small for now, wait for the running requests to end.

        Raises BudgetExceededError if it would not fit even if they cost nothing.
        """
        with self._changed:
            while not cancelled():
                self.check(dollars)
                limits = [(each, limit) for each in self.chain() if (limit := each.limit) is not None]
                if all(each.spent + each.reserved + dollars <= limit for each, limit in limits):
                    break
                self._changed.wait()
            for each in self.chain():
                each.reserved += dollars
        gate = next((each.gate for each in self.chain() if each.gate is not None), None)
        try:
            return Reservation(self, dollars, gate, gate.enter(dollars, cancelled) if gate is not None else 0)
        except BaseException:
            self.settle(dollars, 0.0)
            raise

    def check(self, dollars: float) -> None:
        """Raise BudgetExceededError if a request of this cost would exceed the rest of the budget."""
        with self._changed:
            for each in self.chain():
                limit = each.limit
                if limit is not None and each.spent + dollars > limit:
                    raise BudgetExceededError(
                        f"{each.owner} has spent {in_dollars(each.spent)} of its budget of {in_dollars(limit)}, and "
                        f"the next request may cost {in_dollars(dollars)}."
                    )

    def settle(self, reserved: float, spent: float) -> None:
        """Replace a reservation by the actual cost of the request."""
        with self._changed:
            for each in self.chain():
                each.reserved = max(0.0, each.reserved - reserved)
                each.spent += spent
            self._changed.notify_all()

    @classmethod
    def wake(cls) -> None:
        """Have requests that wait look at whether they were cancelled."""
        with cls._changed:
            cls._changed.notify_all()


class Reservation:
    """The highest cost of a request, reserved until the request has ended.

    A request whose answer was lost counts in full, because the server may have charged for it.
    """

    def __init__(self, budget: Budget, dollars: float, gate: Gate | None, number: int) -> None:
        self._budget, self._dollars, self._gate, self._number = budget, dollars, gate, number
        self.cost: float | None = None  # set when it is known

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        is_lost = error is not None and (isinstance(error, LOST) or not isinstance(error, Exception))
        cost = self.cost if self.cost is not None else self._dollars if is_lost else 0.0
        self._budget.settle(self._dollars, cost)
        if self._gate is not None:
            self._gate.leave(self._number, cost, error)


@dataclass(frozen=True)
class Rates:
    """The limits of a job: requests at a time, requests and tokens per minute, tries and time."""

    at_once: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    tries: int = 4  # of one item, if connections fail or the server returns 5xx
    deadline: float = 180.0  # seconds for one item, all tries together, without the pauses that a server asks for


class Cancelled(ModelError):
    """The job was cancelled before this was sent."""


class Pace:
    """Paces the requests of one job, from any number of threads.

    A 429 halves how many go at once, and none is sent before the time that the server asked for; each answer lets a
    little more through again, up to `rates.at_once`.
    """

    def __init__(self, rates: Rates, clock: Callable[[], float] = time.monotonic) -> None:
        self.rates, self.allowed = rates, float(max(1, rates.at_once))
        self.active = 0  # requests on their way
        self.cancelled = threading.Event()
        self._clock, self._changed = clock, threading.Condition(threading.RLock())
        self._next = self._halved = float("-inf")  # when the next one may go; when the number was halved last
        self._limited = 0  # refusals in a row

    def cancel(self) -> None:
        """Send no more requests; those that are waiting raise Cancelled."""
        self.cancelled.set()
        with self._changed:
            self._changed.notify_all()

    def run(self, send: Callable[[float], T], tokens: int = 0) -> T:
        """Send a request when its turn comes, and again after failures that pass; `send` gets the seconds it has.

        `tokens` is about how many it takes. Raises the error of the last try.
        """
        used, waited, tries = 0.0, 0.0, 0
        while True:
            asked = self._clock()
            began = self.enter(tokens)
            waited += began - asked if waited else 0.0
            error: ModelError | None = None
            try:
                return send(self.rates.deadline - used)
            except ModelError as failure:
                error = failure
            finally:
                self.leave(began, error)
            used += self._clock() - began
            is_limited = isinstance(error, RateLimitedError)
            tries += not is_limited
            waited += is_limited  # counts from the first refusal on
            if not (is_limited or (isinstance(error, TRANSIENT) and tries < self.rates.tries)) or not error.retryable:
                raise error
            if waited > MAX_PAUSE or used >= self.rates.deadline or self.cancelled.is_set():
                raise error
            if not is_limited and (seconds := wait_before_retry(error, tries, MAX_WAIT)):
                self.cancelled.wait(seconds)

    def wait_until(self, moment: float) -> None:
        """Wait for a time of the clock, or for a change."""
        with self._changed:
            self._changed.wait(moment - self._clock())

    def enter(self, tokens: int = 0) -> float:
        """Wait for a turn, and return when it came."""
        rates = self.rates
        with self._changed:
            while True:
                if self.cancelled.is_set():
                    raise Cancelled("The job was cancelled.")
                now = self._clock()
                if self.active < max(1, int(self.allowed)) and now >= self._next:
                    break
                if now < self._next:
                    self.wait_until(self._next)
                else:
                    self._changed.wait()
            gap = 60.0 / rates.requests_per_minute if rates.requests_per_minute else 0.0
            if rates.tokens_per_minute:
                gap = max(gap, 60.0 * tokens / rates.tokens_per_minute)
            self._next = now + gap
            self.active += 1
            return now

    def leave(self, began: float, error: ModelError | None, tokens: int = 0) -> None:
        """Return the request that began then is over; `tokens` are those that `enter` did not know of."""
        with self._changed:
            self.active -= 1
            if tokens and self.rates.tokens_per_minute:
                self._next = max(self._next, self._clock()) + 60.0 * tokens / self.rates.tokens_per_minute
            if isinstance(error, RateLimitedError):
                now = self._clock()
                if began > self._halved:  # not for the others that were sent before it
                    self.allowed, self._halved = max(1.0, self.allowed / 2), now
                    self._limited += 1
                pause = error.retry_after
                if pause is None:
                    pause = wait_before_retry(error, self._limited, MAX_WAIT) or 0.0
                self._next = max(self._next, now + min(pause, MAX_PAUSE))
            elif error is None:
                self.allowed = min(float(max(1, self.rates.at_once)), self.allowed + 1 / self.allowed)
                self._limited = 0
            self._changed.notify_all()
