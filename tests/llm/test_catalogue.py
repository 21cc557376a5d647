"""The providers as data: enough of them, each complete, and each reached the way its row says."""

from __future__ import annotations

from pathlib import Path

import pytest

from asking import Start, folded
from interpreter.errors import MissingKeyError, ProviderNotFoundError
from interpreter.llm.providers import (
    PROVIDERS,
    THROUGH_LITELLM,
    Provider,
    resolve,
)
from model_server import error, text

NAMED = {"anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter", "xai", "together_ai"} | {
    "ollama", "lm_studio", "azure", "openai", "builtin",
}  # fmt: skip
ON_THE_NET = [row for row in PROVIDERS if not row.is_local and row.base_url]


def test_at_least_forty_and_no_name_twice() -> None:
    prefixes = [row.prefix for row in PROVIDERS]
    assert len(prefixes) == len(set(prefixes)) >= 40
    assert set(prefixes) >= NAMED
    assert THROUGH_LITELLM.isdisjoint(prefixes)


def test_the_documentation_names_them_all() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "models.md").read_text("utf-8")
    assert [row.prefix for row in PROVIDERS if f"`{row.prefix}`" not in page] == []


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.prefix)
def test_a_row_is_complete(row: Provider) -> None:
    assert row.prefix == row.prefix.lower() and "/" not in row.prefix
    assert not row.base_url.endswith("/")
    assert row.base_url.startswith("http://" if row.is_local else "https://") or row.base_variables
    assert row.is_local or row.key_variables
    assert row.wire in ("chat", "anthropic", "responses")


@pytest.mark.parametrize("row", ON_THE_NET, ids=lambda row: row.prefix)
def test_each_is_asked_at_its_address_with_its_own_key(row: Provider) -> None:
    with pytest.raises(MissingKeyError, match=row.key_variables[0]):
        resolve(f"{row.prefix}/some/model", {})
    for variable in row.key_variables:
        endpoint = resolve(f"{row.prefix}/some/model", {variable: "k1"})
        assert (endpoint.base_url, endpoint.model, endpoint.wire) == (row.base_url, "some/model", row.wire)
        assert "k1" in endpoint.headers[row.key_header]
    for variable in row.base_variables:
        assert resolve(f"{row.prefix}/m", {variable: "http://h:1/v1"}).base_url == "http://h:1/v1"


@pytest.mark.parametrize("prefix", ["azure", "hosted_vllm", "litellm_proxy", "databricks"])
def test_who_is_everywhere_needs_an_address(prefix: str) -> None:
    with pytest.raises(ProviderNotFoundError, match="_API_BASE"):
        resolve(f"{prefix}/m", {})
    assert resolve(f"{prefix}/m", {}, "http://h:1/v1").base_url.startswith("http://h:1/v1")
    assert resolve(f"{prefix}/m", {}, "http://h:1/v1").model == "m"


def test_a_provider_that_is_almost_known() -> None:
    with pytest.raises(ProviderNotFoundError, match="Did you mean openrouter"):
        resolve("openruter/x", {})


def test_what_is_known_to_be_refused_is_not_sent(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    model = asking(text("Hi"), text("Hi"), model="mistral/mistral-large-latest", api_base=None)
    monkeypatch.setenv("MISTRAL_API_BASE", model.server.base_url)
    assert folded(model.chunks()) == ["Hi"]
    assert "stream_options" not in model.server.requests[0].body
    assert len(model.server.requests) == 1
    model.llm.model, model.llm.api_base = "gpt-4o", model.server.base_url
    model.chunks()
    assert "stream_options" in model.server.requests[1].body


def test_a_refusal_of_something_else_is_not_asked_again(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    model = asking(error(422), text("no"), model="mistral/x", api_base=None, temperature=None)
    monkeypatch.setenv("MISTRAL_API_BASE", model.server.base_url)
    with pytest.raises(Exception, match="rejected the request"):
        model.chunks()
    assert len(model.server.requests) == 1
