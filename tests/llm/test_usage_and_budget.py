"""Usage and cost per request, turn and session, and a budget that stops before a request would exceed it."""

from __future__ import annotations

from typing import Any

import pytest

from anthropic_server import AnthropicServer, message, say
from interpreter import OpenInterpreter
from interpreter.errors import BudgetExceededError
from interpreter.llm.usage import in_dollars
from interpreter.messages import Chunk, Message
from model_server import broken, error, text, usage
from scripted_llm import HELLO, Start, folded

OUTPUT: Message = {"role": "computer", "type": "console", "format": "output", "content": "42"}
CODE: Message = {"role": "assistant", "type": "code", "format": "python", "content": "6 * 7"}


def usage_in(chunks: list[Chunk]) -> Any:
    return next(chunk["content"] for chunk in chunks if chunk.get("format") == "usage")


def test_a_request_reports_its_cost(asking: Start) -> None:
    model = asking(text("Hi").then(usage(1000, 100)))
    assert usage_in([*model.stream()]) == {
        "input_tokens": 1000,
        "output_tokens": 100,
        "estimated": False,
        "cost": pytest.approx(1000 * 2.5e-6 + 100 * 10e-6),
        "cost_estimated": True,  # the server isn't OpenAI's
    }


def test_a_local_model_costs_nothing(asking: Start) -> None:
    model = asking(text("Hi").then(usage(1000, 100)), model="lm_studio/tiny")
    assert usage_in([*model.stream()])["cost"] == 0
    assert model.llm.cost == 0


def test_a_model_without_a_price_has_no_cost(asking: Start) -> None:
    model = asking(text("Hi").then(usage(1000, 100)), model="openai/own-model")
    assert "cost" not in usage_in([*model.stream()])
    assert model.llm.cost is None
    assert model.llm.usage.unpriced_tokens == 1100


def test_a_reply_closed_after_its_block_counts(asking: Start) -> None:
    model = asking(text("```python\n1\n```"), supports_functions=False)
    chunks = model.stream()
    assert any(chunk["type"] == "code" and chunk.get("end") for chunk in chunks)  # the user would decline here
    chunks.close()
    assert model.llm.usage.requests == model.llm.turn_usage.requests == 1


def test_usage_is_counted_per_turn_and_per_session(asking: Start) -> None:
    model = asking(*[text("Hi").then(usage(1000, 100))] * 3)
    assert (model.llm.usage.requests, model.llm.cost) == (0, 0)
    model.chunks()
    model.chunks(HELLO, CODE, OUTPUT)
    assert model.llm.turn_usage.requests == 2
    model.chunks()
    assert (model.llm.turn_usage.requests, model.llm.turn_usage.input_tokens) == (1, 1000)
    assert (model.llm.usage.requests, model.llm.usage.tokens) == (3, 3300)
    assert model.llm.cost == pytest.approx(3 * 0.0035)


def test_a_broken_reply_counts_once(asking: Start) -> None:
    model = asking(text("Hello there").then(broken()))
    with pytest.raises(Exception, match="was lost"):
        model.chunks()
    assert model.llm.usage.requests == 1
    assert model.llm.usage.output_tokens > 0
    assert model.llm.usage.estimated


def test_a_reply_closed_early_counts(asking: Start) -> None:
    model = asking(text("Hello there", 1))
    stream = model.stream()
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert model.llm.usage.requests == 1


def test_a_failed_request_does_not_count(asking: Start) -> None:
    model = asking(error(503, headers={"Retry-After": "0"}), text("Hi").then(usage(10, 1)))
    model.chunks()
    assert model.llm.usage.requests == 1


def test_cached_tokens_are_cheaper(asking: Start) -> None:
    counts = {
        "prompt_tokens": 1000,
        "completion_tokens": 0,
        "total_tokens": 1000,
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    reply = text("Hi")
    model = asking(lambda body: type(reply)(reply.deltas, counts))
    content = usage_in([*model.stream()])
    assert content["cached_tokens"] == 800
    assert content["cost"] == pytest.approx(200 * 2.5e-6 + 800 * 1.25e-6)


def test_writing_to_the_cache_costs_more(asking: Start) -> None:
    reply = message(say("Hi"), usage=(10, 7), cached=(100, 20))
    model = asking(reply, kind=AnthropicServer, model="anthropic/claude-sonnet-4-5")
    cost = usage_in([*model.stream()])["cost"]
    assert cost == pytest.approx((10 * 3 + 100 * 0.3 + 20 * 3.75 + 7 * 15) / 1e6)


def test_the_budget_stops_the_request_that_would_exceed_it(asking: Start) -> None:
    model = asking(*[text("Hi").then(usage(1000, 100))] * 9, max_budget=0.01)
    model.chunks()
    model.chunks()
    with pytest.raises(BudgetExceededError) as caught:
        model.chunks()
    assert len(model.server.requests) == 2
    assert model.llm.cost == pytest.approx(0.007)
    assert "$0.0100" in str(caught.value) and "$0.0070" in str(caught.value) and "2 requests" in str(caught.value)
    assert caught.value.spent == model.llm.usage
    model.llm.max_budget = 1
    assert folded(model.chunks()) == ["Hi"]


def test_the_budget_check_includes_max_tokens(asking: Start) -> None:
    model = asking(text("Hi").then(usage(10, 1)), max_budget=0.01, max_tokens=10_000)
    with pytest.raises(BudgetExceededError):
        model.chunks()
    assert model.server.requests == []


def test_a_zero_budget_allows_free_models(asking: Start) -> None:
    assert folded(asking(text("Hi"), model="lm_studio/tiny", max_budget=0).chunks()) == ["Hi"]
    with pytest.raises(BudgetExceededError):
        asking(text("Hi"), max_budget=0).chunks()


def test_without_a_price_the_budget_is_a_token_limit(asking: Start) -> None:
    model = asking(*[text("Hi").then(usage(40_000, 1000))] * 3, model="openai/own-model", max_budget=1)
    model.chunks()
    model.chunks()
    with pytest.raises(BudgetExceededError, match=r"own-model.*100,000 tokens.*82,000 used"):
        model.chunks()
    assert len(model.server.requests) == 2


def test_max_budget_tokens_sets_a_token_limit(asking: Start) -> None:
    model = asking(*[text("Hi").then(usage(500, 50))] * 3, max_budget_tokens=1200)
    model.chunks()
    model.chunks()
    with pytest.raises(BudgetExceededError, match="--max_budget_tokens"):
        model.chunks()
    unpriced = asking(text("Hi"), model="openai/own", max_budget=0, max_budget_tokens=5000)
    assert folded(unpriced.chunks()) == ["Hi"]


def test_exceeding_the_budget_ends_a_chat_and_keeps_its_messages(asking: Start) -> None:
    interpreter: OpenInterpreter = asking(text("Hi").then(usage(5000, 100)), max_budget=0.02).llm.interpreter
    interpreter.chat("Hello", display=False)
    with pytest.raises(BudgetExceededError):
        interpreter.chat("Again", display=False)
    assert [message["content"] for message in interpreter.messages] == ["Hello", "Hi", "Again"]


def test_amounts_are_formatted_as_dollars() -> None:
    assert list(map(in_dollars, [0, 1234.5, 0.25, 0.0123, 0.00001])) == [
        "$0.00",
        "$1,234.50",
        "$0.25",
        "$0.0123",
        "$1e-05",
    ]
