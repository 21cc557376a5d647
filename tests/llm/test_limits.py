"""Limits for many requests: budgets of a tree that no request exceeds, the pace of a job, and what is tried again."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.errors import (
    BrokenStreamError,
    BudgetExceededError,
    ModelError,
    ModelOverloadedError,
    RateLimitedError,
    RequestRefusedError,
)
from interpreter.llm.limits import Budget, Cancelled, Pace, Rates
from model_server import text, usage
from scripted_llm import Start, asking

__all__ = ["asking"]


def fixed(limit: float | None) -> Any:
    return lambda: limit


# -- budgets --------------------------------------------------------------------------------------------------------


@given(
    limits=st.lists(st.none() | st.integers(0, 40), min_size=1, max_size=7),
    parents=st.lists(st.integers(0, 5), max_size=6),
    requests=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(0, 12)), max_size=40),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_no_budget_of_a_tree_is_ever_exceeded(
    limits: list[int | None], parents: list[int], requests: list[tuple[int, int, int]], seed: int
) -> None:
    tree = [Budget(fixed(limits[0]))]
    for number, limit in enumerate(limits[1:]):
        parent = tree[parents[number] % len(tree)] if number < len(parents) else tree[-1]
        tree.append(Budget(fixed(limit), parent))
    spent_below = dict.fromkeys(tree, 0.0)
    counting = threading.Lock()

    def request(what: tuple[int, int, int]) -> None:
        where, most, cost = what
        budget, cost = tree[where % len(tree)], min(cost, most)
        try:
            with budget.reserve(most) as reservation:
                for each in budget.chain():
                    assert each.limit is None or each.spent + each.reserved <= each.limit
                reservation.cost = cost
                with counting:
                    for each in budget.chain():
                        spent_below[each] += cost
        except BudgetExceededError:
            pass

    random.Random(seed).shuffle(requests)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(request, requests))
    for budget, spent in spent_below.items():
        assert budget.spent == spent and budget.reserved == 0
        assert budget.limit is None or spent <= budget.limit


def test_a_request_waits_for_one_on_its_way_and_not_for_one_that_never_fits() -> None:
    budget = Budget(fixed(10), owner="agent-2")
    first, waiting = budget.reserve(8), threading.Event()

    def second() -> str:
        waiting.set()
        with budget.reserve(5) as reservation:
            reservation.cost = 5
        return "sent"

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(second)
        waiting.wait()
        with pytest.raises(BudgetExceededError, match=r"agent-2 has spent \$0.00 of its budget of \$10.00"):
            budget.reserve(11)
        with first:
            first.cost = 3
        assert answer.result() == "sent"
    assert budget.spent == 8 and budget.left == 2


def test_a_request_whose_answer_was_lost_counts_with_the_most_it_can_have_cost() -> None:
    budget = Budget(fixed(10))
    for error, spent in ((ModelOverloadedError("busy"), 0.0), (BrokenStreamError("lost"), 4.0)):
        with pytest.raises(type(error)), budget.reserve(4):
            raise error
        assert budget.spent == spent


def test_a_wait_for_the_budget_can_be_cancelled() -> None:
    budget, cancelled, checked = Budget(fixed(10)), threading.Event(), threading.Event()
    held = budget.reserve(8)

    def is_cancelled() -> bool:
        checked.set()
        return cancelled.is_set()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(budget.reserve, 5, is_cancelled)
        checked.wait()
        cancelled.set()
        Budget.wake()
        waiting.result()
    held.__exit__(None, None, None)


def test_an_actors_budget_stops_the_request_that_would_exceed_it(asking: Start) -> None:
    from interpreter.session import Permissions

    model = asking(*[text("Hi").then(usage(20, 2))] * 9, model="gpt-4o")
    interpreter = model.llm.interpreter
    session, agent = interpreter.session, interpreter.agent
    child = agent.actor.child("agent", Permissions(budget=0.02))
    grandchild = child.child("agent", Permissions(budget=1.0))
    for _ in range(3):
        with grandchild.budget.reserve(0.006) as reservation:
            reservation.cost = 0.006
    with pytest.raises(BudgetExceededError, match="agent-2"):
        grandchild.budget.reserve(0.006)
    assert session.actors["user"].budget.spent == pytest.approx(0.018)


def test_every_request_is_charged_to_its_actor_and_those_it_acts_for(asking: Start) -> None:
    model = asking(text("Hi").then(usage(1000, 100)), model="gpt-4o")
    list(model.stream())
    interpreter = model.llm.interpreter
    assert interpreter.agent.actor.budget.spent == pytest.approx(model.llm.cost)
    assert interpreter.user.budget.spent == pytest.approx(model.llm.cost)


# -- pace -----------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def failing(*errors: ModelError | None) -> Any:
    left = list(errors)

    def send(seconds: float) -> str:
        if (error := left.pop(0)) is not None:
            raise error
        return "answer"

    return send


def test_a_429_halves_how_many_go_at_once_and_answers_bring_it_back() -> None:
    pace = Pace(Rates(at_once=8), Clock())
    assert pace.run(failing(RateLimitedError("slow", retry_after=0), None)) == "answer"
    assert 4 <= pace.allowed < 5
    for _ in range(60):
        pace.run(failing(None))
    assert pace.allowed == 8


def test_a_burst_of_429s_halves_only_once() -> None:
    clock = Clock()
    pace, limited = Pace(Rates(at_once=8), clock), threading.Barrier(4)
    tries = threading.local()

    def send(seconds: float) -> str:
        if not getattr(tries, "count", 0):
            tries.count = 1
            limited.wait()
            raise RateLimitedError("slow", retry_after=0)
        return "answer"

    clock.now = 1.0
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(pace.run, send) for _ in range(4)]
        assert [each.result() for each in running] == ["answer"] * 4
    assert pace.allowed >= 4


def test_no_request_goes_before_the_time_the_server_asked_for() -> None:
    clock = Clock()

    class Paused(Pace):
        def wait_until(self, moment: float) -> None:
            clock.now = moment

    pace = Paused(Rates(), clock)
    sent: list[float] = []

    def send(seconds: float) -> str:
        sent.append(clock.now)
        if len(sent) == 1:
            raise RateLimitedError("slow", retry_after=30)
        return "answer"

    pace.run(send)
    assert sent == [0.0, 30.0]


@given(
    requests=st.floats(1, 600) | st.none(),
    tokens=st.floats(100, 100_000) | st.none(),
    sizes=st.lists(st.integers(1, 2000), min_size=2, max_size=30),
)
@settings(max_examples=50, deadline=None)
def test_no_minute_has_more_requests_or_tokens_than_allowed(
    requests: float | None, tokens: float | None, sizes: list[int]
) -> None:
    clock = Clock()

    class Paused(Pace):
        def wait_until(self, moment: float) -> None:
            clock.now = moment

    pace = Paused(Rates(requests_per_minute=requests, tokens_per_minute=tokens), clock)
    sent: list[tuple[float, int]] = []
    for size in sizes:
        pace.run(lambda seconds, size=size: sent.append((clock.now, size)), size)  # type: ignore[misc]
    for start, _ in sent:
        minute = [size for moment, size in sent if start <= moment < start + 59.999]
        assert requests is None or len(minute) <= requests + 1
        assert tokens is None or sum(minute[:-1]) <= tokens * 1.001 + 1


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ModelOverloadedError("busy", retry_after=0), 4),
        (BrokenStreamError("lost", retry_after=0), 4),
        (RequestRefusedError("no"), 1),
        (BudgetExceededError("spent"), 1),
    ],
)
def test_only_connections_and_5xx_are_tried_again(error: ModelError, tries: int) -> None:
    count = 0

    def send(seconds: float) -> str:
        nonlocal count
        count += 1
        raise error

    error.retryable = error.retryable or isinstance(error, BrokenStreamError)
    with pytest.raises(type(error)):
        Pace(Rates(tries=4)).run(send)
    assert count == tries


def test_the_deadline_covers_all_tries_of_an_item() -> None:
    clock = Clock()
    given_seconds: list[float] = []

    def send(seconds: float) -> str:
        given_seconds.append(seconds)
        clock.now += 50
        raise ModelOverloadedError("busy", retry_after=0)

    with pytest.raises(ModelOverloadedError):
        Pace(Rates(tries=99, deadline=120), clock).run(send)
    assert given_seconds == [120, 70, 20]


def test_cancelling_ends_what_waits_for_its_turn() -> None:
    pace, sending, release = Pace(Rates(at_once=1)), threading.Event(), threading.Event()

    def send(seconds: float) -> str:
        sending.set()
        release.wait()
        return "answer"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(pace.run, send)
        sending.wait()
        second = pool.submit(pace.run, failing(None))
        pace.cancel()
        with pytest.raises(Cancelled):
            second.result()
        release.set()
        assert first.result() == "answer"
