"""Each request starts with the bytes of the one before, so the server's prompt cache keeps working."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import anthropic_server as anthropic
import responses_server as responses
from conversation import Echo
from interpreter import OpenInterpreter
from model_server import ModelServer, Reply, error, reasoning, text, tool_call

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"role": "user", "type": "image", "format": "base64.png", "content": PIXEL}
TOO_LONG = error(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})
Start = Any


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    opened: list[tuple[OpenInterpreter, ModelServer]] = []

    def start(
        model: str, *replies: Any, kind: type[ModelServer] = ModelServer, **settings: Any
    ) -> tuple[OpenInterpreter, ModelServer]:
        server = kind(replies).start()
        monkeypatch.setenv("DEEPSEEK_API_BASE", server.base_url)
        interpreter = OpenInterpreter(auto_run=True, **{"system_message": "Be brief.", **settings})
        interpreter.llm.model, interpreter.llm.max_retries, interpreter.llm.api_key = model, 0, "key"
        if not model.startswith("deepseek"):
            interpreter.llm.api_base = server.base_url
        interpreter.computer.languages = [Echo]
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


def bodies(server: ModelServer) -> list[dict[str, Any]]:
    return [request.body for request in server.requests if "model" in request.body]


def sent(server: ModelServer) -> list[str]:
    """The messages of each request as JSON, up to where the next request continues."""
    lists = [body.get("messages") or body["input"] for body in bodies(server)]
    return [json.dumps(without_cache_markers(each), ensure_ascii=False)[:-1] for each in lists]


def without_cache_markers(value: Any) -> Any:
    """Without the cache markers: they move, and aren't part of what is cached."""
    if isinstance(value, dict):
        return {key: without_cache_markers(each) for key, each in value.items() if key != "cache_control"}
    return [without_cache_markers(each) for each in value] if isinstance(value, list) else value


def heads(server: ModelServer) -> set[str]:
    """Everything before the messages."""
    fixed = ("model", "system", "instructions", "tools")
    return {json.dumps(without_cache_markers([body.get(name) for name in fixed])) for body in bodies(server)}


def assert_prefix_only_grows(server: ModelServer, *breaks: int) -> None:
    requests = sent(server)
    assert len(requests) > 2
    for number, (before, after) in enumerate(pairwise(requests), 1):
        assert after.startswith(before) is (number not in breaks), f"request {number}"
        assert len(after) > len(before) or number in breaks
    assert len(heads(server)) == 1


def code(words: str) -> Reply:
    return text("Look: ").then(tool_call("echo", words))


def test_the_prefix_only_grows_with_tools(talk: Start) -> None:
    interpreter, server = talk("gpt-4o", code("one"), code("hush"), text("So."), code("two"), text("Done."))
    interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert_prefix_only_grows(server)


TEXT = [text(f"Look:\n```echo\n{words}\n```\n") for words in ("one", "hush", "raise three")]


@pytest.mark.parametrize("always", [False, True])
def test_the_prefix_only_grows_with_templates_and_no_tools(talk: Start, always: bool) -> None:
    interpreter, server = talk(
        "local-model-7b", *TEXT[:2], text("So."), TEXT[2], text("Done."),
        user_message_template="Request: {content}\nAnswer with code.",
        always_apply_user_message_template=always,
        code_output_template="It printed:\n{content}\nWhat next?",
        empty_code_output_template="It printed nothing.",
    )  # fmt: skip
    interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert_prefix_only_grows(server)
    assert "Request: Go\\nAnswer with code." in sent(server)[-1]


def test_the_prefix_only_grows_with_code_in_the_system_message(talk: Start) -> None:
    now = "Started at {{ import time; print(time.time_ns()) }}."
    interpreter, server = talk("gpt-4o", code("one"), text("So."), text("Done."), system_message=now)
    interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert_prefix_only_grows(server)


def test_the_prefix_only_grows_with_images(talk: Start) -> None:
    interpreter, server = talk("gpt-4o", text("A dot."), code("one"), text("So."), text("Two."))
    for words in ("What is it?", "And?", "How many?"):
        if words != "And?":
            interpreter.messages.append(dict(IMAGE))
        interpreter.chat(words, display=False)
    assert_prefix_only_grows(server)


def test_the_prefix_only_grows_with_reasoning(talk: Start) -> None:
    replies = [reasoning("Hm").then(code("one")), reasoning("So").then(text("So.")), code("two"), text("Done.")]
    interpreter, server = talk("deepseek/deepseek-reasoner", *replies)
    interpreter.llm.supports_functions = True
    interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert_prefix_only_grows(server)
    assert '"reasoning_content": "Hm"' in sent(server)[-1]


def test_the_prefix_only_grows_with_signed_thinking(talk: Start) -> None:
    said, thought, use = anthropic.say, anthropic.thinking, anthropic.use
    replies = [
        anthropic.message(thought("Hm.", "c2lnMQ=="), use("echo", "one")),
        anthropic.message(thought("So.", "c2lnMg=="), said("So.")),
        anthropic.message(thought("Oh.", "c2lnMw=="), use("echo", "two")),
        anthropic.message(said("Done.")),
    ]
    interpreter, server = talk("anthropic/claude-opus-5", *replies, kind=anthropic.AnthropicServer)
    interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert_prefix_only_grows(server)
    assert all(signature in sent(server)[-1] for signature in ("c2lnMQ==", "c2lnMg==", "c2lnMw=="))


def test_the_prefix_only_grows_with_encrypted_reasoning(talk: Start) -> None:
    respond, call = responses.response, responses.call
    replies = [
        respond(responses.reasoning("Hm."), call("echo", "one")),
        respond(responses.reasoning("So."), responses.say("So.")),
        respond(responses.reasoning("Oh."), call("echo", "two")),
        respond(responses.say("Done.")),
    ]
    interpreter, server = talk("openai/responses/gpt-5", *replies, kind=responses.ResponsesServer)
    interpreter.chat("Go", display=False)
    interpreter.chat("Go on", display=False)
    assert_prefix_only_grows(server)
    assert "Z2FpYQ==" in sent(server)[-1]


LONG = " ".join(f"word {number}" for number in range(250))


def test_a_compaction_changes_the_prefix_once(talk: Start) -> None:
    interpreter, server = talk("gpt-4o", *[text(LONG)] * 4, TOO_LONG, *[text("Short.")] * 3)
    for turn in range(7):
        interpreter.chat(f"Question {turn}", display=False)
    assert_prefix_only_grows(server, 5)


def test_a_compaction_changes_the_prefix_once_with_thinking(talk: Start) -> None:
    def reply(number: int) -> Any:
        words = LONG if number < 4 else "Short."
        return anthropic.message(anthropic.thinking("Hm.", f"sig{number}"), anthropic.say(words))

    replies = [*map(reply, range(4)), anthropic_too_long(), *map(reply, range(4, 7))]
    interpreter, server = talk("anthropic/claude-opus-5", *replies, kind=anthropic.AnthropicServer)
    interpreter.llm.context_window = 3500
    interpreter.llm.max_tokens = 100
    for turn in range(7):
        interpreter.chat(f"Question {turn}", display=False)
    assert_prefix_only_grows(server, 5)
    assert [f"sig{number}" in sent(server)[-1] for number in range(6)] == [*[False] * 4, True, True]


def anthropic_too_long() -> Any:
    words = {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}
    return error(400, {"type": "error", "error": words})
