"""The model is told of the sandbox once, before all else; of a change it is told where it happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from conversation import Chatting, chatting
from model_server import ModelServer, text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("real", "no_strays")


def system(server: ModelServer, request: int = -1) -> str:
    first = server.requests[request].messages[0]
    assert first["role"] == "system"
    return str(first["content"])


def test_it_knows_what_it_can_write_and_how_to_ask_for_more(chatting: Chatting) -> None:
    interpreter, server = chatting(text("So."), sandbox="workspace", sandbox_hosts=["pypi.org"])
    interpreter.chat("hi", display=False)
    assert f"it can write only to {Path.cwd()} and /tmp" in system(server)
    assert "no network but to pypi.org" in system(server) and "`needs: host pypi.org`" in system(server)
    interpreter, server = chatting(text("So."))
    interpreter.chat("hi", display=False)
    assert "sandbox" not in system(server)


@pytest.mark.parametrize(("model", "reads"), [("qwen2.5-coder-1.5b", False), ("llama-3.1-8b", True)])
def test_a_very_small_model_reads_nothing_about_it(chatting: Chatting, model: str, reads: bool) -> None:
    interpreter, server = chatting(text("So."), sandbox="workspace")
    interpreter.llm.model = f"openai/{model}"
    interpreter.chat("hi", display=False)
    assert ("needs:" in system(server)) is reads


def test_also_with_a_prompt_of_somebodys_own(chatting: Chatting) -> None:
    interpreter, server = chatting(text("So."), sandbox="read-only", system_message="You are short.")
    interpreter.chat("hi", display=False)
    assert system(server).startswith("You are short.") and "only to /tmp" in system(server)


def test_in_plan_mode_there_is_nothing_to_ask_for(chatting: Chatting) -> None:
    interpreter, server = chatting(text("So."), mode="plan")
    interpreter.chat("hi", display=False)
    assert "only to /tmp" in system(server) and "needs:" not in system(server)


def test_a_change_is_told_where_it_happens(chatting: Chatting) -> None:
    interpreter, server = chatting(text("One."), text("Two."), text("Three."))
    for sandbox in ("off", "workspace", "off"):
        interpreter.sandbox = sandbox
        interpreter.chat("hi", display=False)
    assert system(server, 0) == system(server, 1) == system(server, 2)
    told = [str(request.messages[-1]["content"]) for request in server.requests]
    assert "sandbox" not in told[0] and "From now on: Code runs in a sandbox" in told[1]
    assert "There is no sandbox any more" in told[2]
    assert server.requests[2].messages[: len(server.requests[1].messages)] == server.requests[1].messages


def test_one_that_is_turned_on_for_a_block_is_told_after_it(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("python", "print(6 * 7)"), text("So."))
    for chunk in interpreter.chat("run", display=False, stream=True):
        if chunk["type"] == "confirmation":
            assert interpreter.pending is not None and interpreter.pending.contain is not None
            interpreter.pending.contain()
    assert "From now on: Code runs in a sandbox" in str(server.requests[1].messages[-1]["content"])
