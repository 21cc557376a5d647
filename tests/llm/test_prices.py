"""Prices and context windows of models, from the list in the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

from interpreter.llm.providers import ROWS
from interpreter.llm.usage import (
    Price,
    _tables,
    known_models,
    look_up,
)


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "openai/gpt-4o",
        "gpt-4o-2024-08-06",
        "openai/responses/gpt-5",
        "claude-sonnet-4-5",
        "anthropic/claude-sonnet-4-5-20250929",
        "gemini/gemini-2.5-flash",
        "vertex_ai/gemini-2.5-flash",
        "azure/gpt-4o",
        "openrouter/anthropic/claude-sonnet-4.5",
        "groq/llama-3.3-70b-versatile",
        "deepseek/deepseek-chat",
        "mistral/mistral-large-latest",
        "xai/grok-4",
        "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo",
        "bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0",
        "litellm/openai/gpt-4o",
    ],
)
def test_well_known_models_have_a_price(model: str) -> None:
    price = look_up(model).price
    assert price is not None
    assert 0 < price.read < price.written * 1.01 < 200


def test_known_models_have_a_context_window() -> None:
    assert look_up("gpt-4o").window == 128_000
    assert look_up("claude-sonnet-4-5").window == 200_000
    assert (look_up("gemini/gemini-2.5-pro").window or 0) >= 1_000_000
    assert look_up("openai/unknown-model").window is look_up("poe/x").window is None


def test_local_models_are_free_and_unknown_models_have_no_price() -> None:
    for model in ("ollama/llama3.1", "lm_studio/x", "builtin/x", "jan/x"):
        assert look_up(model).price == Price(0, 0)
    assert look_up("qwen2.5-coder", "http://localhost:8080/v1").price is None


def test_a_price_at_another_server_is_not_certain() -> None:
    direct, elsewhere = look_up("gpt-4o").price, look_up("gpt-4o", "http://proxy/v1").price
    through_a_proxy = look_up("anthropic/claude-sonnet-4-5", "http://proxy/v1").price
    assert direct and elsewhere and through_a_proxy
    assert direct.is_certain and not elsewhere.is_certain and not through_a_proxy.is_certain
    assert direct.read == elsewhere.read


def test_caches_and_long_requests_have_their_own_price() -> None:
    price = Price(2, 10, cached=0.5, to_cache=4, steps=((200_000, Price(4, 20)),))
    assert price.cost(1_000_000 // 10, 0) == pytest.approx(0.2)
    assert price.cost(100_000, 10_000, cached=40_000, to_cache=10_000) == pytest.approx(
        0.05 * 2 + 0.04 * 0.5 + 0.01 * 4 + 0.01 * 10
    )
    assert price.cost(200_001, 10, cached=100_000) == pytest.approx((200_001 * 4 + 10 * 20) / 1e6)


def test_the_list_covers_only_known_providers() -> None:
    assert set(_tables()) - set(ROWS) <= {"bedrock"}
    for provider in _tables():
        found = known_models(provider)
        assert found
        for known in found:
            assert known.price is not None and known.price.read >= 0 and known.price.written >= 0


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "openrouter", "groq"])
def test_every_listed_model_can_be_looked_up(provider: str) -> None:
    missing = [known.name for known in known_models(provider) if look_up(f"{provider}/{known.name}").price is None]
    assert missing == []


def test_the_list_is_loaded_on_first_use() -> None:
    code = """
import sys, builtins
from interpreter.llm import usage
import interpreter.llm.llm
assert usage._tables.cache_info().currsize == 0
usage.look_up("gpt-4o").price
assert usage._tables.cache_info().currsize == 1
assert "genai_prices" not in sys.modules and "litellm" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
