"""Requests to Anthropic: its message format, a stable prefix for the cache, and thinking sent back unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import pytest

from anthropic_server import AnthropicServer, message, redacted, say, thinking, use
from conversation import Echo
from interpreter import OpenInterpreter
from interpreter.llm.providers import calls_tools, resolve, sees_images
from interpreter.messages import Message
from model_server import ModelServer

PIXEL = "iVBORw0KGgo="
Talk = tuple[OpenInterpreter, ModelServer]


@pytest.fixture
def talk() -> Iterator[Any]:
    opened: list[Talk] = []

    def start(*replies: Any, model: str = "claude-opus-5", **settings: Any) -> Talk:
        server = AnthropicServer(replies).start()
        interpreter = OpenInterpreter(auto_run=True, system_message="Be brief.", **settings)
        interpreter.llm.model = f"anthropic/{model}"
        interpreter.llm.api_base, interpreter.llm.api_key = server.address, "key"
        interpreter.llm.max_retries = 0
        interpreter.computer.languages = [Echo]
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


def last_body(talk: Talk) -> dict[str, Any]:
    body: dict[str, Any] = talk[1].requests[-1].body
    return body


def unmarked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]


def contents(body: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(message["role"], unmarked(message["content"])) for message in body["messages"]]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_endpoint_url_and_headers() -> None:
    for model in ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"):
        endpoint = resolve(model, {"ANTHROPIC_API_KEY": "sk-ant-1"})
        assert (endpoint.base_url, endpoint.wire) == ("https://api.anthropic.com/v1", "anthropic")
        assert endpoint.headers == {"x-api-key": "sk-ant-1", "anthropic-version": "2023-06-01"}
    for base in ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/messages"):
        assert resolve("anthropic/x", {}, base).base_url == "http://h:1/v1"
        assert resolve("anthropic/x", {"ANTHROPIC_BASE_URL": base}).base_url == "http://h:1/v1"
    assert resolve("anthropic/x", {}, "https://h/anthropic").base_url == "https://h/anthropic/v1"
    assert resolve("claude-x", {}, "http://h:1/v1").wire == "chat"  # such as a self-hosted gateway


def test_all_but_the_oldest_claude_models_support_tools_and_images() -> None:
    for model in ("claude-3-haiku", "anthropic/claude-sonnet-4-5", "claude-fable-5-1", "claude-opus-5"):
        assert calls_tools(model)
        assert sees_images(model)
    assert not calls_tools("claude-2.1")
    assert not sees_images("claude-2.1")


def test_the_body_of_the_first_request(talk: Any) -> None:
    session = talk(message(say("Hi")), model="claude-sonnet-4-5")
    session[0].chat("Hello", display=False)
    body = last_body(session)
    [tool] = body.pop("tools")
    assert tool.pop("input_schema")["properties"]["language"]["enum"] == ["echo"]
    assert tool.keys() == {"name", "description", "eager_input_streaming"}
    mark = {"cache_control": {"type": "ephemeral"}}
    [system] = body.pop("system")
    assert system["text"].startswith("Be brief.")
    assert system.items() >= mark.items()
    assert body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32000,
        "stream": True,
        "messages": [{"role": "user", "content": [text("Hello") | mark]}],
        "temperature": 0,
    }


@pytest.mark.parametrize(
    ("model", "limit", "temperature", "thinks"),
    [
        ("claude-3-haiku-20240307", 4096, True, False),
        ("claude-3-5-sonnet-20241022", 8192, True, False),
        ("claude-opus-4-1", 32000, True, False),
        ("claude-opus-4-7", 32000, False, False),
        ("claude-opus-5-5", 64000, False, True),
        ("claude-fable-5-1", 64000, False, True),
        ("some-other-model", 8192, True, False),
    ],
)
def test_limits_temperature_and_thinking_depend_on_the_model(
    talk: Any, model: str, limit: int, temperature: bool, thinks: bool
) -> None:
    session = talk(message(say("Hi")), model=model)
    session[0].chat("Hello", display=False)
    body = last_body(session)
    assert body["max_tokens"] == limit
    assert ("temperature" in body) is temperature
    # These models always think, but send their thinking only on request.
    assert body.get("thinking") == ({"type": "adaptive", "display": "summarized"} if thinks else None)


def test_the_max_tokens_setting_is_sent(talk: Any) -> None:
    session = talk(message(say("Hi")))
    session[0].llm.max_tokens = 77
    session[0].chat("Hello", display=False)
    assert last_body(session)["max_tokens"] == 77


def test_a_turn_sends_tool_uses_and_results(talk: Any) -> None:
    session = talk(message(say("Look:"), use("echo", "one")), message(say("Done.")))
    session[0].chat("Go", display=False)
    assert contents(last_body(session)) == [
        ("user", [text("Go")]),
        (
            "assistant",
            [
                text("Look:"),
                {
                    "type": "tool_use",
                    "id": "toolu_01A",
                    "name": "execute",
                    "input": {"language": "echo", "code": "one"},
                },
            ],
        ),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_01A", "content": "one"}]),
    ]


def test_images_follow_tool_results_as_base64(talk: Any) -> None:
    session = talk(message(say("I see.")))
    history: list[Message] = [
        {"role": "user", "type": "message", "content": "Plot"},
        {"role": "assistant", "type": "code", "format": "echo", "content": "plot"},
        {"role": "computer", "type": "image", "format": "base64.png", "content": PIXEL},
        {"role": "user", "type": "image", "format": "base64.jpeg", "content": PIXEL},
    ]
    session[0].messages = history
    session[0].chat("And?", display=False)
    kinds = [[block["type"] for block in blocks] for _, blocks in contents(last_body(session))]
    assert kinds == [["text"], ["tool_use"], ["tool_result", "text", "image", "image", "text"]]
    sources = [b["source"] for b in last_body(session)["messages"][2]["content"] if b["type"] == "image"]
    assert sources == [
        {"type": "base64", "media_type": "image/png", "data": PIXEL},
        {"type": "base64", "media_type": "image/jpeg", "data": PIXEL},
    ]


def test_conversations_that_start_or_end_with_the_assistant_are_padded(talk: Any) -> None:
    session = talk(message(say("Hi")), message(say("Hi")))
    session[0].messages = [{"role": "assistant", "type": "message", "content": "Welcome."}]
    session[0].chat("Hello", display=False)  # the server would refuse one that begins with the assistant
    list(session[0].llm.reply([{"role": "system", "type": "message", "content": ""}, *session[0].messages]))
    assert [role for role, _ in contents(last_body(session))] == ["user", "assistant", "user", "assistant", "user"]
    assert "system" not in last_body(session)


def test_the_prefix_stays_the_same_and_is_marked_for_the_cache(talk: Any) -> None:
    script = [[message(thinking("a", s), use("echo", "one")), message(say("So."))] for s in "xyz"]
    session = talk(*chain.from_iterable(script))
    for words in ("One", "Two", "Three"):
        session[0].chat(words, display=False)
    bodies = [request.body for request in session[1].requests]
    for earlier, later in pairwise(bodies):
        before, after = contents(earlier), contents(later)
        assert json.dumps(after[: len(before)]) == json.dumps(before)
        assert (earlier["system"], earlier["tools"]) == (later["system"], later["tools"])
        last_marked = max(at for at, m in enumerate(earlier["messages"]) if "cache_control" in str(m))
        assert "cache_control" in str(later["messages"][last_marked])  # so the cache is hit
    assert len([m for m in bodies[-1]["messages"] if "cache_control" in str(m)]) == 2


# -- thinking ------------------------------------------------------------------------------------------------


def thinking_block(words: str, signature: str) -> dict[str, str]:
    return {"type": "thinking", "thinking": words, "signature": signature}


def test_thinking_is_sent_back_unchanged_with_its_tool_use(talk: Any) -> None:
    session = talk(
        message(thinking("  Let me\n", "s1", split=3), redacted("ZW5j"), say("Look: "), use("echo", "one", 5)),
        message(thinking("", "s2"), say("Done.")),
        message(say("Yes.")),
    )
    session[0].chat("Go", display=False)
    hidden = {"type": "redacted_thinking", "data": "ZW5j"}
    [_, (_, blocks), _] = contents(last_body(session))
    assert blocks[:3] == [thinking_block("  Let me\n", "s1"), hidden, text("Look: ")]
    assert [block["type"] for block in blocks[3:]] == ["tool_use"]
    session[0].chat("Sure?", display=False)
    replies = [blocks for role, blocks in contents(last_body(session)) if role == "assistant"]
    assert replies[0][:2] == [thinking_block("  Let me\n", "s1"), hidden]
    assert replies[1] == [thinking_block("", "s2"), text("Done.")]  # with nothing to show, still signed


def test_a_reply_with_two_tool_uses_is_sent_back_as_one_message(talk: Any) -> None:
    session = talk(
        message(thinking("a", "s1"), use("echo", "one"), thinking("b", "s2"), use("echo", "two")),
        message(say("Done.")),
    )
    session[0].chat("Go", display=False)
    [_, (_, reply), (_, results)] = contents(last_body(session))
    assert [block["type"] for block in reply] == ["thinking", "tool_use", "thinking", "tool_use"]
    assert [block["content"] for block in results] == ["one", "two"]
    assert [block["tool_use_id"] for block in results] == [reply[1]["id"], reply[3]["id"]]


def test_edited_code_keeps_the_thinking_before_it(talk: Any) -> None:
    session = talk(message(thinking("a", "s1"), use("echo", "one")), message(say("Done.")))
    session[0].auto_run = False
    for chunk in session[0].chat("Go", display=False, stream=True):
        if chunk["type"] == "confirmation":
            session[0].pending.edit("two")
    [_, (_, reply), _] = contents(last_body(session))
    assert reply[0] == thinking_block("a", "s1")
    assert reply[1]["input"]["code"] == "two"


def test_thinking_is_dropped_when_earlier_messages_changed(talk: Any) -> None:
    session = talk(message(thinking("a", "s1"), say("One.")), message(say("Two.")), message(say("Three.")))
    interpreter = session[0]
    interpreter.chat("Go", display=False)
    interpreter.messages[0]["content"] = "Went"
    interpreter.chat("And?", display=False)  # the server would refuse the block
    assert "thinking" not in [block["type"] for _, blocks in contents(last_body(session)) for block in blocks]
    interpreter.messages[0]["content"] = "Go"
    interpreter.messages[2:] = []
    interpreter.chat("And?", display=False)
    assert contents(last_body(session))[1][1] == [thinking_block("a", "s1"), text("One.")]


def test_thinking_of_one_model_is_not_sent_to_another(talk: Any) -> None:
    session = talk(message(thinking("a", "s1"), say("One.")), message(say("Two.")))
    session[0].chat("Go", display=False)
    session[0].llm.model = "anthropic/claude-opus-5-5"
    session[0].chat("And?", display=False)
    assert contents(last_body(session))[1][1] == [text("One.")]


def test_stored_thinking_survives_a_json_round_trip(talk: Any) -> None:
    first = talk(message(thinking("a", "s1"), say("One.")))
    first[0].chat("Go", display=False)
    written = json.dumps(first[0].llm.memory.replies)
    second = talk(message(say("Two.")))
    second[1].bound = first[1].bound
    second[0].llm.memory.replies.update(json.loads(written))
    second[0].messages = first[0].messages
    second[0].chat("And?", display=False)
    assert contents(last_body(second))[1][1] == [thinking_block("a", "s1"), text("One.")]


def test_partial_thinking_without_a_signature_is_not_stored() -> None:
    from interpreter.llm.anthropic import AnthropicMessages
    from interpreter.llm.providers import resolve

    kept: dict[str, Any] = {}
    endpoint = resolve("anthropic/claude-x", {"ANTHROPIC_API_KEY": "k"})
    reader = AnthropicMessages(endpoint, {"messages": []}, kept)
    start, first, *_ = thinking("Hm, well", split=2)
    list(reader.read({"type": "content_block_start", "index": 0, "content_block": start}))
    list(reader.read({"type": "content_block_delta", "index": 0, "delta": first}))
    list(reader.read({"type": "content_block_stop", "index": 0}))
    assert len(kept) == 0
