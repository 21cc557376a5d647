"""What a server at the user's own address is asked: as LiteLLM, and so 0.4.3, asks it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from anthropic_server import AnthropicServer, message, say
from interpreter.errors import LiteLLMMissingError, OfflineError
from interpreter.llm.providers import LITELLM, PROVIDERS, Provider, check_offline, resolve, with_prefix_in_name
from model_server import text
from scripted_llm import Start, folded

NATIVE = ("gemini", "cohere", "cohere_chat")  # LiteLLM asks these over their own protocols
OTHER_WIRES = (*NATIVE, "anthropic", "ollama", "ollama_chat", "builtin")
PATHS = {"azure": "/v1/openai/deployments/some-model/chat/completions?api-version=2024-10-21"}


@pytest.mark.parametrize("row", [row for row in PROVIDERS if row.prefix not in OTHER_WIRES], ids=lambda row: row.prefix)
def test_a_server_at_api_base_gets_the_name_without_the_prefix(row: Provider, asking: Start) -> None:
    string = f"{row.prefix}/some-model"
    model = asking(text("Hi"), model=string, supports_functions=True)
    assert folded(model.chunks()) == ["Hi"]
    request = next(each for each in model.server.requests if each.method == "POST")
    assert request.path == PATHS.get(row.prefix, "/v1/chat/completions")
    name = "accounts/fireworks/models/some-model" if row.prefix == "fireworks_ai" else "some-model"
    assert request.body["model"] == (string if row.prefix == "meta" else name)  # LiteLLM doesn't know it
    assert request.headers["api-key" if row.prefix == "azure" else "authorization"].endswith("key")


def test_anthropic_at_an_address_is_asked_over_its_own_protocol(asking: Start) -> None:
    model = asking(message(say("Hi")), model="anthropic/some-model", kind=AnthropicServer)
    assert folded(model.chunks()) == ["Hi"]
    assert (model.server.requests[0].path, model.server.requests[0].body["model"]) == ("/v1/messages", "some-model")


@pytest.mark.parametrize("prefix", [*NATIVE, "bedrock", "vertex_ai"])
def test_protocols_of_their_own_go_through_litellm(prefix: str) -> None:
    if find_spec(LITELLM) is not None:
        assert resolve(f"{prefix}/x", {}, "http://h:1/v1").wire == LITELLM
        return
    with pytest.raises(LiteLLMMissingError, match="put openai/ before the name"):
        resolve(f"{prefix}/x", {}, "http://h:1/v1")


def test_gemini_at_its_own_address_needs_no_litellm() -> None:
    address = "https://generativelanguage.googleapis.com/v1beta/openai/"
    endpoint = resolve("gemini/gemini-3-pro", {"GEMINI_API_KEY": "k"}, address)
    assert (endpoint.wire, endpoint.model) == ("chat", "gemini-3-pro")


def test_offline_refuses_what_may_contact_its_provider_all_the_same() -> None:
    with pytest.raises(OfflineError):
        check_offline("vertex_ai/x", {}, "http://h:1/v1")
    for model in ("groq/x", "gemini/x", "acme/x", "litellm/openai/x"):
        check_offline(model, {}, "http://h:1/v1")


@pytest.mark.parametrize(
    ("model", "api_base", "sent"),
    [
        ("groq/llama", "http://h:1/v1", "openai/groq/llama"),
        ("gemini/x", "http://h:1/v1", "openai/gemini/x"),
        ("bedrock/x", "http://h:1/v1", "openai/bedrock/x"),
        ("acme/x", "http://h:1/v1", "acme/x"),
        ("openai/x", "http://h:1/v1", "openai/x"),
        ("ollama/x", "http://h:1/v1", "ollama/x"),
        ("x", "http://h:1/v1", "x"),
        ("groq/llama", "https://api.groq.com/openai/v1", "groq/llama"),
    ],
)
def test_the_command_line_sends_the_whole_name(model: str, api_base: str, sent: str) -> None:
    assert with_prefix_in_name(model, api_base) == sent
