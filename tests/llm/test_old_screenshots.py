"""In OS mode only the newest screenshots are sent; a line of text replaces each older one, and all else stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import anthropic_server
import responses_server
from anthropic_server import AnthropicServer
from interpreter import OpenInterpreter
from interpreter.computer_api.screen.computer_use import ModelScreen
from interpreter.messages import Message
from model_server import ModelServer, tool_call
from model_server import text as said
from responses_server import ResponsesServer

STEPS = 7
LIMIT = 4
SYSTEM: Message = {"role": "system", "type": "message", "content": "Be brief."}


def click(number: int) -> dict[str, Any]:
    return {"action": "left_click", "coordinate": [number, number]}


SERVERS: dict[str, tuple[type[ModelServer], str, list[Any]]] = {
    "tools": (ModelServer, "gpt-4o", [tool_call("python", f"act({n})") for n in range(STEPS)]),
    "text": (ModelServer, "gpt-4o", [said(f"```python\nact({n})\n```") for n in range(STEPS)]),
    "anthropic": (
        AnthropicServer,
        "anthropic/claude-opus-4-5",
        [
            anthropic_server.message(
                anthropic_server.thinking(f"Hm {n}", f"signed{n}"), anthropic_server.act(**click(n))
            )
            for n in range(STEPS)
        ],
    ),
    "openai": (
        ResponsesServer,
        "openai/responses/computer-use-preview",
        [
            responses_server.response(
                responses_server.reasoning(f"Hm {n}"), responses_server.act({"type": "click", "x": n, "y": n})
            )
            for n in range(STEPS)
        ],
    ),
}


def screenshot(number: int) -> str:
    return f"iVBORw0KGgo{number:03}="


def conversation(kind: str) -> Iterator[dict[str, Any]]:
    """The body of each request while the model acts step by step, with a screenshot after each step."""
    server_kind, model, replies = SERVERS[kind]
    with server_kind(replies) as server:
        interpreter = OpenInterpreter(os=True, os_max_pictures=LIMIT, shrink_images=False)
        llm = interpreter.llm
        llm.model, llm.api_key, llm.supports_vision, llm.max_retries = model, "key", True, 0
        llm.api_base = server.address if server_kind is AnthropicServer else server.base_url
        llm.supports_functions = False if kind == "text" else None
        interpreter.agent.native_tools = ModelScreen(1280, 800)
        messages: list[Message] = [SYSTEM, {"role": "user", "type": "message", "content": "Go"}]
        for number in range(STEPS):
            chunks = list(llm.reply(messages))
            code = "".join(chunk.get("content", "") for chunk in chunks if chunk["type"] == "code")
            messages += [
                {"role": "assistant", "type": "code", "format": "python", "content": code},
                {"role": "computer", "type": "console", "format": "output", "content": f"did {number}"},
                {"role": "computer", "type": "image", "format": "base64.png", "content": screenshot(number)},
            ]
            yield server.requests[-1].body
        interpreter.computer.terminate()


def screenshots_in(body: dict[str, Any]) -> list[int]:
    return [number for number in range(STEPS) if screenshot(number) in json.dumps(body)]


@pytest.mark.parametrize("kind", SERVERS)
def test_at_the_limit_the_older_half_of_the_screenshots_is_dropped(kind: str) -> None:
    bodies = list(conversation(kind))
    assert [screenshots_in(body) for body in bodies] == [
        [], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [2, 3, 4], [2, 3, 4, 5],
    ]  # fmt: skip
    assert all(f"did {number}" in json.dumps(bodies[-1]) for number in range(STEPS - 1))


@pytest.mark.parametrize("kind", SERVERS)
def test_the_prefix_changes_only_when_screenshots_are_dropped(kind: str) -> None:
    def prefix(body: dict[str, Any]) -> str:
        items = body.get("input") or body["messages"]
        return json.dumps(without_cache_markers(items), sort_keys=True)[:-1]

    sent = list(map(prefix, conversation(kind)))
    assert [later.startswith(earlier) for earlier, later in pairwise(sent)] == [True] * 4 + [False, True]


def without_cache_markers(value: Any) -> Any:
    """Without the cache markers, which move."""
    if isinstance(value, dict):
        return {key: without_cache_markers(each) for key, each in value.items() if key != "cache_control"}
    return [without_cache_markers(each) for each in value] if isinstance(value, list) else value


def test_claude_gets_its_actions_back_unchanged() -> None:
    *_, last = conversation("anthropic")
    said = [block for message in last["messages"] if message["role"] == "assistant" for block in message["content"]]
    acts = [block for block in said if block["type"] == "tool_use"]
    assert [(act["name"], act["input"]) for act in acts] == [("computer", click(n)) for n in range(STEPS - 1)]
    # The server would refuse thinking that follows a dropped screenshot.
    assert [block["thinking"] for block in said if block["type"] == "thinking"] == ["Hm 0", "Hm 5"]
    first = last["messages"][2]["content"]
    assert [block["type"] for block in first] == ["tool_result", "text", "text"]
    assert "was left out to save room" in first[2]["text"]


def test_openai_gets_a_screenshot_for_every_action() -> None:
    *_, last = conversation("openai")
    kinds = [item["type"] for item in last["input"] if item["type"] != "message"]
    assert kinds == ["reasoning", "computer_call", "computer_call_output"] * (STEPS - 1)
    shown = [item["output"]["image_url"] for item in last["input"] if item["type"] == "computer_call_output"]
    assert shown[0] == shown[1] and all(url.startswith("data:image/png;base64,iVBORw0KGgo") for url in shown)


def test_only_the_computers_screenshots_count_towards_the_limit() -> None:
    from interpreter.llm.context import old_pictures

    shown: Message = {"role": "computer", "type": "image", "format": "base64.png", "content": "x"}
    others: list[Message] = [{**shown, "role": "user"}, {**shown, "recipient": "user"}]
    assert old_pictures([shown] * 50, None) == frozenset()
    assert old_pictures([*others * 9, shown, shown], 1) == {18}
    assert [len(old_pictures([shown] * n, 8)) for n in (8, 9, 12, 13, 17)] == [0, 4, 4, 8, 12]
