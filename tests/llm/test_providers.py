"""The provider catalogue: each row is complete, and each provider is reached as its row says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import anthropic_server
import responses_server
from anthropic_server import AnthropicServer
from interpreter.errors import MissingKeyError, ProviderNotFoundError
from interpreter.llm.providers import (
    PROVIDERS,
    ROWS,
    THROUGH_LITELLM,
    Provider,
    resolve,
)
from model_server import ModelServer, error, text
from responses_server import ResponsesServer
from scripted_llm import Start, folded

EXPECTED_PREFIXES = {"anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai", "together_ai"} | {
    "ollama", "lm_studio", "azure", "openai", "builtin",
}  # fmt: skip
HOSTED = [row for row in PROVIDERS if not row.is_local and row.base_url]


def test_there_are_at_least_forty_providers_with_unique_prefixes() -> None:
    prefixes = [row.prefix for row in PROVIDERS]
    assert len(prefixes) == len(set(prefixes)) >= 40
    assert set(prefixes) >= EXPECTED_PREFIXES
    assert THROUGH_LITELLM.isdisjoint(prefixes)


def test_the_docs_name_every_provider() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "models.md").read_text("utf-8")
    assert [row.prefix for row in PROVIDERS if f"`{row.prefix}`" not in page] == []


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.prefix)
def test_each_provider_row_is_complete(row: Provider) -> None:
    assert row.prefix == row.prefix.lower() and "/" not in row.prefix
    assert not row.base_url.endswith("/")
    assert row.base_url.startswith("http://" if row.is_local else "https://") or row.base_variables
    assert row.is_local or row.key_variables
    assert row.wire in ("chat", "anthropic", "responses")


@pytest.mark.parametrize("row", HOSTED, ids=lambda row: row.prefix)
def test_each_provider_uses_its_own_url_and_key(row: Provider) -> None:
    with pytest.raises(MissingKeyError, match=row.key_variables[0]):
        resolve(f"{row.prefix}/some/model", {})
    for variable in row.key_variables:
        endpoint = resolve(f"{row.prefix}/some/model", {variable: "k1"})
        name = "accounts/fireworks/models/some/model" if row.prefix == "fireworks_ai" else "some/model"
        assert (endpoint.base_url, endpoint.model, endpoint.wire) == (row.base_url, name, row.wire)
        assert "k1" in endpoint.headers[row.key_header]
    for variable in row.base_variables:
        assert resolve(f"{row.prefix}/m", {variable: "http://h:1/v1"}).base_url == "http://h:1/v1"


@pytest.mark.parametrize("prefix", ["azure", "hosted_vllm", "litellm_proxy", "databricks"])
def test_self_hosted_providers_need_a_base_url(prefix: str) -> None:
    with pytest.raises(ProviderNotFoundError, match="_API_BASE"):
        resolve(f"{prefix}/m", {})
    assert resolve(f"{prefix}/m", {}, "http://h:1/v1").base_url.startswith("http://h:1/v1")
    assert resolve(f"{prefix}/m", {}, "http://h:1/v1").model == "m"


def test_a_misspelled_provider_gets_a_suggestion() -> None:
    with pytest.raises(ProviderNotFoundError, match="Did you mean openrouter"):
        resolve("openruter/x", {})


def test_parameters_a_provider_rejects_are_not_sent(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    model = asking(text("Hi"), text("Hi"), model="mistral/mistral-large-latest", api_base=None)
    monkeypatch.setenv("MISTRAL_API_BASE", model.server.base_url)
    assert folded(model.chunks()) == ["Hi"]
    assert "stream_options" not in model.server.requests[0].body
    assert len(model.server.requests) == 1
    model.llm.model, model.llm.api_base = "gpt-4o", model.server.base_url
    model.chunks()
    assert "stream_options" in model.server.requests[1].body


@pytest.mark.parametrize(
    ("model", "kind", "reply", "refused", "sent"),
    [
        ("azure/my-gpt", ModelServer, text("Hi"), "max_tokens", {"max_completion_tokens": 50}),
        ("anthropic/x", AnthropicServer, anthropic_server.message(anthropic_server.say("Hi")), "temperature", {}),
        (
            "openai/responses/gpt-4o",
            ResponsesServer,
            responses_server.response(responses_server.say("Hi")),
            "store",
            {},
        ),
    ],
)
def test_every_wire_format_leaves_out_what_its_provider_refuses(
    asking: Start,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    kind: Any,
    reply: Any,
    refused: str,
    sent: dict[str, Any],
) -> None:
    asked = asking(reply, reply, kind=kind, model=model, max_tokens=50)
    asked.chunks()
    prefix = model.partition("/")[0]
    monkeypatch.setitem(ROWS, prefix, replace(ROWS[prefix], refused_fields=(refused,)))
    assert folded(asked.chunks()) == ["Hi"]
    first, second = (request.body for request in asked.server.requests)
    assert refused in first
    assert second == {name: value for name, value in first.items() if name != refused} | sent


def test_an_unrelated_rejection_is_not_retried(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    model = asking(error(422), text("no"), model="mistral/x", api_base=None, temperature=None)
    monkeypatch.setenv("MISTRAL_API_BASE", model.server.base_url)
    with pytest.raises(Exception, match="rejected the request"):
        model.chunks()
    assert len(model.server.requests) == 1
