"""Another model answers when the first one cannot be reached and has said nothing."""

from __future__ import annotations

from typing import Any

import pytest

from asking import HELLO, Asking, Start, folded
from interpreter.errors import ModelOverloadedError, ModelUnreachableError, WrongKeyError
from interpreter.messages import Chunk, Message
from model_server import ModelServer, broken, error, text, tool_call

DOWN = error(503, headers={"Retry-After": "0"})
CODE: Message = {"role": "assistant", "type": "code", "format": "python", "content": "6 * 7"}
OUTPUT: Message = {"role": "computer", "type": "console", "format": "output", "content": "42"}


def news(chunks: list[Chunk]) -> list[Any]:
    return [chunk["content"] for chunk in chunks if chunk.get("format") == "fallback"]


def asked(model: Asking) -> list[str]:
    return [request.body["model"] for request in model.server.requests]


def test_it_steps_in_and_says_so(asking: Start) -> None:
    model = asking(DOWN, text("Hi"), max_retries=0, fallback_model="gpt-4o-mini")
    chunks = model.chunks()
    assert news(chunks) == [{"reason": "server problem", "from": "gpt-4o", "to": "gpt-4o-mini"}]
    assert folded(chunks) == ["Hi"]
    assert asked(model) == ["gpt-4o", "gpt-4o-mini"]


def test_the_first_one_is_tried_as_often_as_is_set(asking: Start) -> None:
    model = asking(DOWN, DOWN, text("Hi"), max_retries=1, fallback_model="gpt-4o-mini")
    model.chunks()
    assert asked(model) == ["gpt-4o", "gpt-4o", "gpt-4o-mini"]


def test_nobody_waits_long_with_another_model_at_hand(asking: Start) -> None:
    limited = error(429, headers={"Retry-After": "60"})
    model = asking(limited, text("Hi"), fallback_model="gpt-4o-mini")
    chunks = model.chunks()
    assert [chunk["format"] for chunk in chunks if chunk["type"] == "status"] == ["fallback"]


def test_it_stays_for_the_turn_and_the_first_is_asked_again_in_the_next(asking: Start) -> None:
    replies = [DOWN, tool_call("python", "6 * 7"), text("42"), text("Hello")]
    model = asking(*replies, max_retries=0, fallback_model="gpt-4o-mini")
    model.chunks()
    assert news(model.chunks(HELLO, CODE, OUTPUT)) == []
    model.chunks()
    assert asked(model) == ["gpt-4o", "gpt-4o-mini", "gpt-4o-mini", "gpt-4o"]


def test_another_provider_does_not_get_the_first_ones_address_and_key(
    asking: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([text("From Groq")]) as groq:
        monkeypatch.setenv("GROQ_API_BASE", groq.base_url)
        monkeypatch.setenv("GROQ_API_KEY", "groq-key")
        model = asking(DOWN, max_retries=0, fallback_model="groq/llama-3.3-70b-versatile")
        assert folded(model.chunks()) == ["From Groq"]
        assert groq.requests[0].headers["authorization"] == "Bearer groq-key"
        assert groq.requests[0].body["model"] == "llama-3.3-70b-versatile"
    assert model.llm.model == "gpt-4o" and model.llm.api_base == model.server.base_url


def test_each_is_asked_in_its_own_mode(asking: Start) -> None:
    model = asking(DOWN, text("```python\n1\n```"), max_retries=0, fallback_model="openai/tiny-1b")
    assert folded(model.chunks()) == [("python", "1")]
    assert "tools" in model.server.requests[0].body
    assert "tools" not in model.server.requests[1].body


def test_a_server_that_is_not_there(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as gone:
        address = gone.base_url
    model = asking(text("Hi"), model="lm_studio/tiny", api_base=address, fallback_model="gpt-4o")
    monkeypatch.setenv("OPENAI_API_BASE", model.server.base_url)
    chunks = model.chunks()
    assert news(chunks)[0]["reason"] == "no connection"
    assert folded(chunks) == ["Hi"]


def test_not_after_a_word(asking: Start) -> None:
    model = asking(text("Hel").then(broken()), text("no"), fallback_model="gpt-4o-mini")
    with pytest.raises(Exception, match="was lost"):
        model.chunks()
    assert asked(model) == ["gpt-4o"]


def test_not_for_what_the_user_has_to_know(asking: Start) -> None:
    model = asking(error(401), text("no"), fallback_model="gpt-4o-mini")
    model.until_error(WrongKeyError)
    assert asked(model) == ["gpt-4o"]


def test_both_may_fail(asking: Start) -> None:
    model = asking(DOWN, DOWN, max_retries=0, fallback_model="gpt-4o-mini")
    chunks, _ = model.until_error(ModelOverloadedError)
    assert len(news(chunks)) == 1


def test_the_same_model_is_no_fallback(asking: Start) -> None:
    model = asking(DOWN, text("no"), max_retries=0, fallback_model="gpt-4o")
    model.until_error(ModelOverloadedError)
    assert len(model.server.requests) == 1


def test_without_one_the_error_is_the_users(asking: Start) -> None:
    with ModelServer() as gone:
        address = gone.base_url
    asking(api_base=address).until_error(ModelUnreachableError)
