"""A fallback model answers when the first model can't be reached and hasn't said anything yet."""

from __future__ import annotations

from typing import Any

import pytest

from interpreter.errors import ModelOverloadedError, ModelUnreachableError, WrongKeyError
from interpreter.messages import Chunk, Message
from model_server import ModelServer, broken, error, text, tool_call
from scripted_llm import HELLO, ScriptedLlm, Start, folded

DOWN = error(503, headers={"Retry-After": "0"})
CODE: Message = {"role": "assistant", "type": "code", "format": "python", "content": "6 * 7"}
OUTPUT: Message = {"role": "computer", "type": "console", "format": "output", "content": "42"}


def fallback_events(chunks: list[Chunk]) -> list[Any]:
    return [chunk["content"] for chunk in chunks if chunk.get("format") == "fallback"]


def requested_models(model: ScriptedLlm) -> list[str]:
    return [request.body["model"] for request in model.server.requests]


def test_the_fallback_answers_and_is_reported(asking: Start) -> None:
    model = asking(DOWN, text("Hi"), max_retries=0, fallback_model="gpt-4o-mini")
    chunks = model.chunks()
    assert fallback_events(chunks) == [{"reason": "server problem", "from": "gpt-4o", "to": "gpt-4o-mini"}]
    assert folded(chunks) == ["Hi"]
    assert requested_models(model) == ["gpt-4o", "gpt-4o-mini"]


def test_the_first_model_is_retried_before_the_fallback_answers(asking: Start) -> None:
    model = asking(DOWN, DOWN, text("Hi"), max_retries=1, fallback_model="gpt-4o-mini")
    model.chunks()
    assert requested_models(model) == ["gpt-4o", "gpt-4o", "gpt-4o-mini"]


def test_a_long_retry_wait_switches_to_the_fallback_at_once(asking: Start) -> None:
    limited = error(429, headers={"Retry-After": "60"})
    model = asking(limited, text("Hi"), fallback_model="gpt-4o-mini")
    chunks = model.chunks()
    assert [chunk["format"] for chunk in chunks if chunk["type"] == "status"] == ["fallback"]


def test_the_fallback_answers_for_one_turn_only(asking: Start) -> None:
    replies = [DOWN, tool_call("python", "6 * 7"), text("42"), text("Hello")]
    model = asking(*replies, max_retries=0, fallback_model="gpt-4o-mini")
    model.chunks()
    assert fallback_events(model.chunks(HELLO, CODE, OUTPUT)) == []
    model.chunks()
    assert requested_models(model) == ["gpt-4o", "gpt-4o-mini", "gpt-4o-mini", "gpt-4o"]


def test_a_fallback_at_another_provider_uses_its_own_url_and_key(
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


def test_each_model_is_asked_in_its_own_mode(asking: Start) -> None:
    model = asking(DOWN, text("```python\n1\n```"), max_retries=0, fallback_model="openai/tiny-1b")
    assert folded(model.chunks()) == [("python", "1")]
    assert "tools" in model.server.requests[0].body
    assert "tools" not in model.server.requests[1].body


def test_an_unreachable_server_triggers_the_fallback(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as gone:
        address = gone.base_url
    model = asking(text("Hi"), model="lm_studio/tiny", api_base=address, fallback_model="gpt-4o")
    monkeypatch.setenv("OPENAI_API_BASE", model.server.base_url)
    chunks = model.chunks()
    assert fallback_events(chunks)[0]["reason"] == "no connection"
    assert folded(chunks) == ["Hi"]


def test_no_fallback_once_text_has_arrived(asking: Start) -> None:
    model = asking(text("Hel").then(broken()), text("no"), fallback_model="gpt-4o-mini")
    with pytest.raises(Exception, match="was lost"):
        model.chunks()
    assert requested_models(model) == ["gpt-4o"]


def test_no_fallback_for_a_wrong_key(asking: Start) -> None:
    model = asking(error(401), text("no"), fallback_model="gpt-4o-mini")
    model.until_error(WrongKeyError)
    assert requested_models(model) == ["gpt-4o"]


def test_the_error_is_raised_if_the_fallback_fails_too(asking: Start) -> None:
    model = asking(DOWN, DOWN, max_retries=0, fallback_model="gpt-4o-mini")
    chunks, _ = model.until_error(ModelOverloadedError)
    assert len(fallback_events(chunks)) == 1


def test_a_model_is_not_its_own_fallback(asking: Start) -> None:
    model = asking(DOWN, text("no"), max_retries=0, fallback_model="gpt-4o")
    model.until_error(ModelOverloadedError)
    assert len(model.server.requests) == 1


def test_without_a_fallback_the_error_is_raised(asking: Start) -> None:
    with ModelServer() as gone:
        address = gone.base_url
    asking(api_base=address).until_error(ModelUnreachableError)
