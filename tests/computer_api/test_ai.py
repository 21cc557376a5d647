"""computer.ai: questions to the model outside the conversation, about texts of any length, within limits."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.computer_api.ai import (
    Ai,
    pieces,
    plan_split,
    size_of,
    together,
)
from interpreter.errors import BudgetExceededError, ComputerError, ModelError, RateLimitedError
from model_server import ModelServer, Request, error, stall, text, usage

__all__ = ["chatting"]
BOOK = "\n".join(f"Page {number}. The colour of room {number} is shade-{number}." for number in range(1, 1001))


def answering(pattern: str) -> Callable[[dict[str, Any]], Any]:
    """A model that replies with what `pattern` finds in the last message."""

    def answer(body: dict[str, Any]) -> Any:
        found = re.findall(pattern, body["messages"][-1]["content"])
        return text(", ".join(dict.fromkeys(found)) or "nothing").then(usage(100, 10))

    return answer


def chat_requests(server: ModelServer) -> list[Request]:
    """The chat requests, without requests for the server's own data."""
    return [request for request in server.requests if request.method == "POST"]


@pytest.fixture
def make_ai(chatting: Chatting) -> Callable[..., tuple[Ai, OpenInterpreter, ModelServer]]:
    """`make_ai(reply, ...)` returns the tool, its interpreter and the server; the last reply repeats."""

    def start(*replies: Any, **settings: Any) -> tuple[Ai, OpenInterpreter, ModelServer]:
        interpreter, server = chatting(*replies)
        server.repeat = True
        for name, value in settings.items():
            setattr(interpreter.llm, name, value)
        return interpreter.computer.ai, interpreter, server

    return start


def test_chat_leaves_the_conversation_unchanged(make_ai: Any) -> None:
    ai, interpreter, server = make_ai("Use `x`:\n```python\nx = 1\n```\nDone.", model="gpt-4o")
    interpreter.messages = [{"role": "user", "type": "message", "content": "the conversation"}]
    before = [dict(message) for message in interpreter.messages]
    assert ai.chat("What is x?") == "Use `x`:\n```python\nx = 1\n```\nDone."
    (request,) = server.requests
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.messages[1]["content"] == "What is x?"
    assert "tools" not in request.body
    assert interpreter.messages == before


def test_its_cost_counts_towards_the_session(make_ai: Any) -> None:
    ai, interpreter, _ = make_ai(text("Yes.").then(usage(1000, 50)), model="gpt-4o")
    ai.chat("Is it?")
    assert interpreter.llm.usage.requests == 1
    assert interpreter.llm.turn_usage.input_tokens == 1000
    assert interpreter.llm.cost and interpreter.llm.cost > 0


def test_requests_over_the_budget_are_not_sent(make_ai: Any) -> None:
    ai, _, server = make_ai("Yes.", model="gpt-4o", max_budget=0.000001)
    with pytest.raises(BudgetExceededError):
        ai.chat("Is it?")
    with pytest.raises(BudgetExceededError, match="requests with"):
        ai.query(BOOK * 20, "What colour is room 7?")
    assert chat_requests(server) == []


def test_a_model_error_is_raised_with_its_type(make_ai: Any) -> None:
    ai, _, _ = make_ai(error(429, "slow down"))
    with pytest.raises(RateLimitedError):
        ai.chat("Is it?")


def test_a_cancelled_question_ends(make_ai: Any) -> None:
    ai, interpreter, server = make_ai(text("Well").then(stall()))
    caught: list[BaseException] = []

    def ask() -> None:
        try:
            ai.chat("Is it?")
        except ModelError as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert server.stalled.wait(60)
    interpreter.cancel()
    thread.join(60)
    assert caught and "cancelled" in str(caught[0])


def test_images_are_sent_only_to_models_with_vision(make_ai: Any) -> None:
    ai, interpreter, server = make_ai("A cat.", model="gpt-4o")
    assert ai.chat("What is it?", base64="iVBORw0KGgo=") == "A cat."
    assert server.requests[0].messages[-1]["content"][-1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    interpreter.llm.supports_vision = False
    with pytest.raises(ComputerError, match=r"accept images.*ocr"):
        ai.chat("What is it?", base64="iVBORw0KGgo=")


def test_known_secrets_are_not_sent(make_ai: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKUP_TOKEN", "tok-0123456789abcdef0123")
    ai, _, server = make_ai("Fine.")
    ai.chat("Is tok-0123456789abcdef0123 a good token?")
    assert "0123456789abcdef" not in str(server.requests[0].messages)


def test_a_short_text_is_one_request(make_ai: Any) -> None:
    ai, _, server = make_ai(answering(r"shade-\d+"))
    assert ai.query("Room 1 is shade-9.", "Which colour?") == "shade-9"
    assert len(chat_requests(server)) == 1
    assert len(server.requests) == 1  # no request for the context window


def test_a_long_text_is_queried_in_parts_and_merged_into_one_answer(make_ai: Any) -> None:
    ai, interpreter, server = make_ai(answering(r"shade-(?:7|500|999)\b"), context_window=4000)
    assert ai.query(BOOK, "Which shades?", "All shades, once each.") == "shade-7, shade-500, shade-999"
    plan = plan_split(BOOK, "Which shades?", 4000)
    assert 5 < len(chat_requests(server)) <= plan.calls + 1
    assert "All shades, once each." in server.requests[-1].messages[-1]["content"]
    assert all(size_of(request.messages[-1]["content"]) < 4000 * 4 for request in chat_requests(server))
    assert interpreter.llm.usage.requests == len(chat_requests(server))


def test_parts_are_requested_in_parallel(make_ai: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)  # each of two waits for the other

    def answer(body: dict[str, Any]) -> Any:
        if "<part>" in body["messages"][-1]["content"]:
            together.wait(60)
        return text("nothing").then(usage(10, 1))

    ai, interpreter, server = make_ai(answer, context_window=16000)
    monkeypatch.setattr("interpreter.llm.SideChat.is_near", False)
    monkeypatch.setattr("interpreter.computer_api.ai.MAX_PARALLEL_REQUESTS", 2)
    parts = len(list(pieces(BOOK, plan_split(BOOK, "Which?", 16000).size)))
    long = BOOK if parts % 2 == 0 else BOOK + BOOK[: plan_split(BOOK, "Which?", 16000).size]
    assert ai.query(long, "Which?") == "nothing"
    assert interpreter.llm.usage.requests == len(chat_requests(server))


def test_a_query_over_max_calls_is_refused_with_an_estimate(make_ai: Any) -> None:
    ai, _, server = make_ai("Fine.", model="gpt-4o", context_window=2000)
    with pytest.raises(
        ComputerError, match=r"would take \d+ requests with [\d,]+ tokens, about \$0.\d+.*max_calls=\d+"
    ):
        ai.query(BOOK * 4, "Which shades?")
    assert chat_requests(server) == []


def test_answers_that_are_too_long_stop_the_query(make_ai: Any) -> None:
    ai, _, server = make_ai(BOOK[:15_000], context_window=4000)
    with pytest.raises(ComputerError, match="longer than expected") as caught:
        ai.query(BOOK, "Which shades?", max_calls=plan_split(BOOK, "Which shades?", 4000).calls)
    assert "max_calls=" in str(caught.value)
    assert len(chat_requests(server)) <= 40


def test_summarize_merges_the_parts_into_one_summary(make_ai: Any) -> None:
    ai, _, server = make_ai("It is about rooms.", context_window=4000)
    assert ai.summarize(BOOK) == "It is about rooms."
    assert "Summarize" in chat_requests(server)[0].messages[-1]["content"]
    assert "one summary" in server.requests[-1].messages[-1]["content"]


def test_a_standalone_computer_has_no_model() -> None:
    from interpreter.computer_api import Computer

    with pytest.raises(ComputerError, match="no model to ask"):
        Computer().ai.chat("Is it?")


@pytest.mark.parametrize(
    "long",
    [
        BOOK,
        "".join(chr(0x4E00 + number) for number in range(10_000)),
        ",".join(map(str, range(5000))),
        " ".join(map(str, range(5000))),
    ],
    ids=["lines", "one word", "commas", "spaces"],
)
def test_pieces_cover_the_text_and_overlap(long: str) -> None:
    found = list(pieces(long, 2000))
    assert all(size_of(piece) <= 2000 for piece in found)
    covered = 0
    for piece in found:
        assert long.index(piece) <= max(0, covered - 1)
        covered = long.index(piece) + len(piece)
    assert covered == len(long)


def test_groups_of_answers_fit_and_become_fewer() -> None:
    answers = [f"answer {number} " * 30 for number in range(9)]
    groups = together(answers, 1000)
    assert 1 < len(groups) < 9
    assert all(size_of(group) <= 1000 for group in groups)
    assert len(together(["long " * 1000] * 4, 1000)) == 2
