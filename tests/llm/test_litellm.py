"""Models of providers without a row go through LiteLLM, if it is installed, with the same features."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from importlib.util import find_spec
from typing import Any

import pytest

from interpreter.errors import (
    ContextTooLongError,
    ModelError,
    ModelOverloadedError,
    ProviderNotFoundError,
    RateLimitedError,
    RequestRefusedError,
    UnknownModelError,
    WrongKeyError,
)
from interpreter.frontends.terminal.chat import explained
from interpreter.host.installation import install_hint
from interpreter.llm.providers import LITELLM, calls_tools, resolve
from model_server import RawReply, error, stall, text, tool_call, usage
from scripted_llm import Start, folded

INSTALLED = find_spec("litellm") is not None
needs_litellm = pytest.mark.skipif(not INSTALLED, reason="litellm is not installed: pip install litellm")
MODEL = "litellm/openai/gpt-4o"
pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's own warnings


@pytest.mark.skipif(INSTALLED, reason="litellm is installed")
@pytest.mark.parametrize("model", ["bedrock/x", "vertex_ai/gemini", "watsonx/y", MODEL])
def test_without_litellm_the_error_says_what_to_install(model: str) -> None:
    with pytest.raises(ProviderNotFoundError, match=re.escape(install_hint("litellm"))) as caught:
        resolve(model, {})
    assert "\n" not in explained(caught.value)
    assert len(explained(caught.value)) < 150


@needs_litellm
def test_models_of_unlisted_providers_go_through_litellm() -> None:
    assert resolve("bedrock/anthropic.claude", {}).wire == LITELLM
    assert resolve("bedrock/anthropic.claude", {}).model == "bedrock/anthropic.claude"
    assert resolve(MODEL, {}).model == "openai/gpt-4o"
    assert resolve("groq/x", {"GROQ_API_KEY": "k"}).wire == "chat"
    assert calls_tools("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0")


@needs_litellm
def test_litellm_is_loaded_on_first_use_without_network_access() -> None:
    code = """
import socket, sys
import interpreter.llm.llm
from interpreter.llm.providers import resolve
resolve("bedrock/x", {})
assert "litellm" not in sys.modules
def refuse(*arguments, **options):
    raise AssertionError(f"looked for {arguments}")
socket.getaddrinfo = socket.socket.connect = refuse
from interpreter.llm.litellm_bridge import _load
litellm = _load()
assert litellm.telemetry is False
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=100)


@needs_litellm
@pytest.mark.parametrize("split", [None, 1, 7])
def test_text_and_blocks_stream_through_litellm(asking: Start, split: Any) -> None:
    replies = text("Hello there.", split), tool_call("python", "print(6 * 7)\n", split)
    model = asking(*replies, model=MODEL, supports_functions=True)
    assert folded(model.chunks()) == ["Hello there."]
    assert folded(model.chunks()) == [("python", "print(6 * 7)\n")]
    body = model.server.requests[0].body
    assert (body["model"], body["stream"], body["temperature"]) == ("gpt-4o", True, 0)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["tools"][0]["function"]["name"] == "execute"
    assert model.server.requests[0].headers["authorization"] == "Bearer key"


@needs_litellm
def test_usage_and_cost(asking: Start) -> None:
    model = asking(text("Hi").then(usage(1000, 100)), model=MODEL)
    assert [*model.stream()][-1]["content"]["input_tokens"] == 1000
    assert model.llm.cost == pytest.approx(0.0035)


@needs_litellm
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401), WrongKeyError),
        (error(429), RateLimitedError),
        (error(500), ModelOverloadedError),
        (error(503), ModelOverloadedError),
        (error(404), UnknownModelError),
        (error(400), RequestRefusedError),
    ],
)
def test_litellm_errors_map_to_our_errors(asking: Start, reply: Any, kind: type[ModelError]) -> None:
    model = asking(reply, model=MODEL, max_retries=0)
    _, caught = model.until_error(kind)
    assert type(caught) is kind
    assert "litellm/" not in str(caught)
    assert len(model.server.requests) == 1


@needs_litellm
def test_a_conversation_that_is_too_long_raises_an_error(asking: Start) -> None:
    body = (
        '{"error": {"message": "This model\'s maximum context length is 8 tokens.", '
        '"type": "invalid_request_error", "code": "context_length_exceeded"}}'
    )
    reply = RawReply((body.encode(),), 400, (("Content-Type", "application/json"),))
    asking(reply, reply, reply, model=MODEL, max_retries=0).until_error(ContextTooLongError)


@needs_litellm
def test_a_transient_failure_is_retried(asking: Start) -> None:
    model = asking(error(429, headers={"retry-after": "0"}), text("Hi"), model=MODEL)
    assert folded(model.chunks()) == ["Hi"]


@needs_litellm
def test_cancel_takes_effect_at_once(asking: Start) -> None:
    model = asking(text("Hel").then(stall()), model=MODEL)
    stream = model.stream()
    assert next(stream)["content"] == "Hel"
    threading.Timer(0.05, model.llm.cancel).start()
    assert [chunk for chunk in stream if chunk["type"] == "message"] == []


@needs_litellm
def test_cancel_works_before_the_first_chunk(asking: Start) -> None:
    model = asking(stall(), model=MODEL)
    model.llm.load()
    threading.Timer(0.3, model.llm.cancel).start()
    assert model.chunks() == []
