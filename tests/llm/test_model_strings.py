"""Which server and key a model string stands for."""

from __future__ import annotations

import pytest

from interpreter.errors import MissingKeyError, ProviderNotFoundError
from interpreter.llm.providers import calls_tools, is_loopback, resolve, sees_images

KEY = {"OPENAI_API_KEY": "sk-1"}


@pytest.mark.parametrize(
    ("model", "api_base", "base_url", "name"),
    [
        ("gpt-4o", None, "https://api.openai.com/v1", "gpt-4o"),
        ("openai/gpt-4o", None, "https://api.openai.com/v1", "gpt-4o"),
        ("OpenAI/gpt-4o", None, "https://api.openai.com/v1", "gpt-4o"),
        ("ollama/llama3.1", None, "http://localhost:11434/v1", "llama3.1"),
        ("ollama_chat/qwen:1b", None, "http://localhost:11434/v1", "qwen:1b"),
        ("jan/tiny", None, "http://localhost:1337/v1", "tiny"),
        ("lm_studio/tiny", None, "http://localhost:1234/v1", "tiny"),
        ("gpt-4o", "http://h:1/v1", "http://h:1/v1", "gpt-4o"),
        ("gpt-4o", "http://h:1/v1/", "http://h:1/v1", "gpt-4o"),
        ("gpt-4o", "http://h:1/v1/chat/completions", "http://h:1/v1", "gpt-4o"),
        ("gpt-4o", "h:1/v1", "http://h:1/v1", "gpt-4o"),
        ("openai/tiny", "http://h:1/v1", "http://h:1/v1", "tiny"),
        ("meta/llama-3", "http://h:1/v1", "http://h:1/v1", "meta/llama-3"),
        ("groq/llama", "http://h:1/v1", "http://h:1/v1", "llama"),
        ("acme/llama", "http://h:1/v1", "http://h:1/v1", "acme/llama"),
        ("together_ai/meta-llama/l", "http://h:1/v1", "http://h:1/v1", "meta-llama/l"),
        (
            "deepseek/deepseek-chat",
            "https://openrouter.ai/api/v1",
            "https://openrouter.ai/api/v1",
            "deepseek/deepseek-chat",
        ),
        ("openai/gpt-4o", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1", "openai/gpt-4o"),
        ("openrouter/auto", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1", "openrouter/auto"),
        ("openrouter/openai/o3", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1", "openai/o3"),
        ("xai/grok-4", "https://ai-gateway.vercel.sh/v1/", "https://ai-gateway.vercel.sh/v1", "xai/grok-4"),
        ("openai/llama", "https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1", "llama"),
        ("fireworks_ai/llama", "http://h:1/v1", "http://h:1/v1", "accounts/fireworks/models/llama"),
        ("fireworks_ai/lab/llama", "http://h:1/v1", "http://h:1/v1", "accounts/fireworks/models/lab/llama"),
        ("fireworks_ai/accounts/me/models/x", "http://h:1/v1", "http://h:1/v1", "accounts/me/models/x"),
        ("mistral/small", "http://h:1", "http://h:1/v1", "small"),  # some get a path from LiteLLM, others don't
        ("huggingface/lab/x", "http://h:1", "http://h:1/v1", "lab/x"),
        ("minimax/x", "http://h:1", "http://h:1/v1", "x"),
        ("cometapi/x", "http://h:1", "http://h:1/v1", "x"),
        ("groq/x", "http://h:1", "http://h:1", "x"),
        ("jan/tiny", "http://h:1/v1", "http://h:1/v1", "tiny"),
        ("local", "http://h:1/v1", "http://h:1/v1", "local"),
        ("ollama/tiny", "http://h:11434", "http://h:11434/v1", "tiny"),
        ("ollama/tiny", "http://h:11434/v1", "http://h:11434/v1", "tiny"),
    ],
)
def test_model_strings_resolve_to_a_base_url_and_a_name(
    model: str, api_base: str | None, base_url: str, name: str
) -> None:
    endpoint = resolve(model, {**KEY, "OPENROUTER_API_KEY": "or-1"}, api_base)
    assert (endpoint.base_url, endpoint.model) == (base_url, name)


@pytest.mark.parametrize(
    ("host", "base_url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:99", "http://127.0.0.1:99/v1"),
        (":99", "http://127.0.0.1:99/v1"),
        ("box", "http://box:11434/v1"),
        ("http://box:99", "http://box:99/v1"),
        ("https://box", "https://box:443/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
        ("http://box:99/ollama", "http://box:99/ollama"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, base_url: str) -> None:
    assert resolve("ollama/x", {"OLLAMA_HOST": host}).base_url == base_url


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://localhost:8000/v1", True),
        ("http://LOCALHOST/v1", True),
        ("http://127.0.0.1:1/v1", True),
        ("http://user:word@127.1.2.3/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://0.0.0.0:8000", True),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://127.0.0.1@example.org/v1", False),
        ("http://[fe80::1]/v1", False),
        ("", False),
    ],
)
def test_loopback_addresses_are_recognised(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


def test_settings_override_the_environment_for_url_and_key() -> None:
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        assert resolve("gpt-4o", {variable: "http://h:1/v1"}).base_url == "http://h:1/v1"
        assert resolve("gpt-4o", {variable: "http://h:1/v1"}, "http://own/v1").base_url == "http://own/v1"
    assert resolve("gpt-4o", KEY).headers == {"Authorization": "Bearer sk-1"}
    assert resolve("gpt-4o", KEY, api_key="mine").headers == {"Authorization": "Bearer mine"}
    assert resolve("gpt-4o", {}, "http://h:1/v1").headers == {}
    assert resolve("groq/x", {"GROQ_API_KEY": "gk"}).headers == {"Authorization": "Bearer gk"}
    assert resolve("ollama/x", KEY).headers == {}
    assert resolve("groq/x", {"GROQ_API_KEY": "gk"} | KEY, "http://h:1/v1").key == "gk"
    assert resolve("groq/x", KEY, "http://h:1/v1").key is None


def test_the_key_for_one_provider_is_not_sent_to_another() -> None:
    for model in ("groq/x", "mistral/x", "openrouter/x"):
        with pytest.raises(MissingKeyError):
            resolve(model, KEY)


def test_errors_name_the_missing_key_or_provider() -> None:
    with pytest.raises(MissingKeyError, match="GROQ_API_KEY"):
        resolve("groq/x", {})
    with pytest.raises(ProviderNotFoundError, match="api_base"):
        resolve("azure/x", {})
    with pytest.raises(ProviderNotFoundError, match="bedrock"):
        resolve("bedrock/x", KEY)


def test_capabilities_are_recognised_by_model_name() -> None:
    assert all(map(calls_tools, ["gpt-4o", "gpt-6-unheard-of", "groq/llama-3.3-70b-versatile", "o3", "azure/x"]))
    assert not any(map(calls_tools, ["ollama/llama3.1", "gpt-4-vision-preview", "jan/tiny", "lm_studio/x"]))
    assert not calls_tools("openai/local", "http://localhost:8080/v1")
    assert calls_tools("gpt-4o", "http://localhost:8080/v1")
    assert all(map(sees_images, ["gpt-4o", "ollama/llava:13b", "gpt-5", "gemini/gemini-2.0-flash"]))
    assert not any(map(sees_images, ["gpt-3.5-turbo", "ollama/llama3.1", "gpt-4", "o3-mini"]))
