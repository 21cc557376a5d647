"""The system prompt describes the sandbox, and later changes are announced where they happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from conversation import Chatting, chatting
from model_server import ModelServer, text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("sandbox_available", "no_strays")


def system(server: ModelServer, request: int = -1) -> str:
    first = server.requests[request].messages[0]
    assert first["role"] == "system"
    return str(first["content"])


def test_the_prompt_says_what_is_writable_and_how_to_request_more(chatting: Chatting) -> None:
    interpreter, server = chatting(text("So."), sandbox="workspace", sandbox_hosts=["pypi.org"])
    interpreter.chat("hi", display=False)
    assert f"it can write only to {Path.cwd()} and /tmp" in system(server)
    assert "no network but to pypi.org" in system(server) and "`needs: host pypi.org`" in system(server)
    interpreter, server = chatting(text("So."))
    interpreter.chat("hi", display=False)
    assert "sandbox" not in system(server)


@pytest.mark.parametrize(("model", "gets_prompt"), [("qwen2.5-coder-1.5b", False), ("llama-3.1-8b", True)])
def test_very_small_models_get_no_sandbox_prompt(chatting: Chatting, model: str, gets_prompt: bool) -> None:
    interpreter, server = chatting(text("So."), sandbox="workspace")
    interpreter.llm.model = f"openai/{model}"
    interpreter.chat("hi", display=False)
    assert ("needs:" in system(server)) is gets_prompt


def test_custom_system_prompts_get_the_sandbox_prompt_too(chatting: Chatting) -> None:
    interpreter, server = chatting(text("So."), sandbox="read-only", system_message="You are short.")
    interpreter.chat("hi", display=False)
    assert system(server).startswith("You are short.") and "only to /tmp" in system(server)


def test_the_plan_mode_prompt_offers_no_requests(chatting: Chatting) -> None:
    interpreter, server = chatting(text("So."), mode="plan")
    interpreter.chat("hi", display=False)
    assert "only to /tmp" in system(server) and "needs:" not in system(server)


def test_sandbox_changes_are_announced_where_they_happen(chatting: Chatting) -> None:
    interpreter, server = chatting(text("One."), text("Two."), text("Three."))
    for sandbox in ("off", "workspace", "off"):
        interpreter.sandbox = sandbox
        interpreter.chat("hi", display=False)
    assert system(server, 0) == system(server, 1) == system(server, 2)
    last_messages = [str(request.messages[-1]["content"]) for request in server.requests]
    assert "sandbox" not in last_messages[0] and "From now on: Code runs in a sandbox" in last_messages[1]
    assert "The sandbox is off" in last_messages[2]
    assert server.requests[2].messages[: len(server.requests[1].messages)] == server.requests[1].messages


def test_a_sandbox_turned_on_at_a_question_is_announced(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("python", "print(6 * 7)"), text("So."))
    for chunk in interpreter.chat("run", display=False, stream=True):
        if chunk["type"] == "confirmation":
            assert interpreter.pending is not None
            interpreter.pending.contain()
    assert "From now on: Code runs in a sandbox" in str(server.requests[1].messages[-1]["content"])
