"""Over Chat Completions, reasoning is sent back only to providers that want it, and only with a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conversation import Echo
from interpreter import OpenInterpreter
from model_server import ModelServer, Reply, reasoning, text, tool_call


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    opened: list[tuple[OpenInterpreter, ModelServer]] = []

    def start(model: str, *replies: Any) -> tuple[OpenInterpreter, ModelServer]:
        server = ModelServer(replies).start()
        for provider in ("DEEPSEEK", "GEMINI", "OPENAI"):
            monkeypatch.setenv(f"{provider}_API_BASE", server.base_url)
            monkeypatch.setenv(f"{provider}_API_KEY", "key")
        interpreter = OpenInterpreter(auto_run=True)
        interpreter.llm.model, interpreter.llm.max_retries = model, 0
        interpreter.llm.supports_functions = True
        interpreter.computer.languages = [Echo]
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


def replies_in(server: ModelServer) -> list[dict[str, Any]]:
    return [message for message in server.requests[-1].messages if message["role"] == "assistant"]


SCRIPT = (
    reasoning("Hm, ", 2).then(text("Look:")).then(tool_call("echo", "one", 5)),
    reasoning("So").then(text("Done.")),
    text("Yes."),
)


def test_most_providers_get_no_reasoning_back(talk: Any) -> None:
    interpreter, server = talk("gpt-4o", *SCRIPT)
    for words in ("Go", "Sure?"):
        interpreter.chat(words, display=False)
    assert "reasoning" not in str(server.requests[-1].body)


def test_deepseek_gets_reasoning_back_only_with_a_call(talk: Any) -> None:
    interpreter, server = talk("deepseek/deepseek-reasoner", *SCRIPT)
    for words in ("Go", "Sure?"):
        interpreter.chat(words, display=False)
    called, answered = replies_in(server)
    assert called["reasoning_content"] == "Hm, "
    assert "tool_calls" in called
    assert "reasoning_content" not in answered


def test_deepseek_gets_an_empty_field_when_the_reasoning_is_lost(talk: Any) -> None:
    interpreter, server = talk("deepseek/deepseek-reasoner", *SCRIPT)
    interpreter.chat("Go", display=False)
    interpreter.messages[0]["content"] = "Went"
    interpreter.chat("Sure?", display=False)
    assert replies_in(server)[0]["reasoning_content"] == ""


def signed(signature: str, reply: Reply) -> Reply:
    [delta] = [dict(delta) for delta in reply.deltas if isinstance(delta, dict)]
    delta["tool_calls"] = [delta["tool_calls"][0] | {"extra_content": {"google": {"thought_signature": signature}}}]
    return Reply((delta,))


def test_gemini_gets_signatures_back_on_their_calls(talk: Any) -> None:
    calls = signed("c2ln", tool_call("echo", "one", id="a")).then(tool_call("echo", "two", id="b"))
    interpreter, server = talk("gemini/gemini-3-pro", calls, text("Done."))
    interpreter.chat("Go", display=False)
    [reply] = replies_in(server)
    assert [call.get("extra_content") for call in reply["tool_calls"]] == [
        {"google": {"thought_signature": "c2ln"}},
        None,
    ]
    ids = [call["id"] for call in reply["tool_calls"]]
    results = [m for m in server.requests[-1].messages if m["role"] == "tool"]
    assert [(m["tool_call_id"], m["content"]) for m in results] == [(ids[0], "one"), (ids[1], "two")]


def test_gemini_gets_a_marker_for_unsigned_calls(talk: Any) -> None:
    interpreter, server = talk("gemini/gemini-3-pro", text("Hi"))
    interpreter.messages = [
        {"role": "user", "type": "message", "content": "Go"},
        {"role": "assistant", "type": "code", "format": "echo", "content": "one"},
    ]
    interpreter.chat("And?", display=False)
    [reply] = replies_in(server)
    assert "skip_thought_signature_validator" in str(reply["tool_calls"][0]["extra_content"])
