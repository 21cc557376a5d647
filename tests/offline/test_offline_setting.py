"""With `offline`, only models on this machine or at an address set by the user are contacted."""

from __future__ import annotations

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api import Computer
from interpreter.errors import ModelError, OfflineError
from model_server import ModelServer, text


def chat_offline(model: str, api_base: str | None = None) -> None:
    interpreter = OpenInterpreter(offline=True)
    interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = model, api_base, "key"
    interpreter.llm.max_retries, interpreter.llm.connect_timeout = 0, 5
    interpreter.computer.languages = []
    interpreter.chat("Hello", display=False)


@pytest.mark.parametrize(
    "model", ["gpt-4o", "claude-opus-5", "anthropic/claude-opus-5", "groq/llama-3.3-70b", "bedrock/x", "o3-pro"]
)
def test_a_providers_default_address_is_refused(model: str) -> None:
    with pytest.raises(OfflineError, match="`offline` is set") as caught:
        chat_offline(model)
    assert model in str(caught.value) and "--api_base" in str(caught.value)


def test_offline_is_checked_before_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = OpenInterpreter(offline=True)
    interpreter.llm.model = "gpt-4o"
    with pytest.raises(OfflineError):
        interpreter.chat("Hello", display=False)


def test_a_named_server_is_contacted() -> None:
    with ModelServer([text("Hi")]) as server:
        chat_offline("gpt-4o", server.base_url)
        assert len(server.requests) == 1


def test_an_address_from_the_environment_is_contacted(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([text("Hi")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        chat_offline("gpt-4o")
        assert len(server.requests) == 1


def test_a_named_server_is_contacted_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([text("Hi")]) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        with pytest.raises(ModelError):
            chat_offline("m", "http://192.0.2.1:9/v1")
        assert proxy.requests == []


def test_a_hosted_fallback_model_is_refused() -> None:
    interpreter = OpenInterpreter(offline=True)
    llm = interpreter.llm
    llm.model, llm.api_base, llm.max_retries = "m", "http://127.0.0.1:9/v1", 0
    llm.fallback_model, llm.api_key = "claude-opus-5", "key"
    with pytest.raises(OfflineError):
        interpreter.chat("Hello", display=False)


def test_a_local_provider_is_contacted_at_its_usual_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    with pytest.raises(ModelError) as caught:
        chat_offline("ollama/llama3")
    assert not isinstance(caught.value, OfflineError)


def test_without_offline_hosted_models_are_allowed() -> None:
    interpreter = OpenInterpreter()
    interpreter.llm.model, interpreter.llm.api_key = "gpt-4o", "key"
    assert interpreter.llm._endpoint().base_url == "https://api.openai.com/v1"


def test_a_computer_without_an_interpreter_can_be_offline() -> None:
    computer = Computer()
    computer.offline = True
    assert computer.context.offline
    computer.offline = None
    assert not computer.context.offline
    interpreter = OpenInterpreter(offline=True)
    assert interpreter.computer.context.offline
