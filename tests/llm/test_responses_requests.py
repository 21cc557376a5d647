"""Requests in OpenAI's Responses format, with reasoning sent back unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from conversation import Echo
from interpreter import OpenInterpreter
from interpreter.llm.providers import resolve
from interpreter.messages import Message
from model_server import ModelServer
from responses_server import ResponsesServer, call, failure, reasoning, response, say

PIXEL = "iVBORw0KGgo="
Talk = tuple[OpenInterpreter, ModelServer]


@pytest.fixture
def talk() -> Iterator[Any]:
    opened: list[Talk] = []

    def start(*replies: Any, model: str = "gpt-5", **settings: Any) -> Talk:
        server = ResponsesServer(replies).start()
        interpreter = OpenInterpreter(auto_run=True, system_message="Be brief.", **settings)
        interpreter.llm.model = f"openai/responses/{model}"
        interpreter.llm.api_base, interpreter.llm.api_key = server.base_url, "key"
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


def user(words: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def test_which_models_use_the_responses_api() -> None:
    key = {"OPENAI_API_KEY": "sk-1"}
    for model in (
        "openai/responses/gpt-4o",
        "gpt-5-codex",
        "o3-pro",
        "openai/gpt-5-pro",
        "codex-mini-latest",
    ):
        assert resolve(model, key).wire == "responses"
    assert resolve("openai/responses/gpt-4o", key).model == "gpt-4o"
    for model in ("gpt-4o", "openai/gpt-5", "o3", "groq/gpt-oss"):
        assert resolve(model, key | {"GROQ_API_KEY": "g"}).wire == "chat"
    assert resolve("gpt-5-codex", key, "http://h:1/v1").wire == "chat"  # an unknown server
    assert resolve("openai/responses/x", key, "http://h:1/v1/responses").base_url == "http://h:1/v1"


def test_the_body_of_the_first_request(talk: Any) -> None:
    session = talk(response(say("Hi")))
    session[0].llm.max_tokens = 77
    session[0].chat("Hello", display=False)
    body = last_body(session)
    [tool] = body.pop("tools")
    assert tool.pop("parameters")["properties"]["language"]["enum"] == ["echo"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "execute", False)
    assert body.pop("instructions").startswith("Be brief.")
    assert body == {
        "model": "gpt-5",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
        "max_output_tokens": 77,
        "temperature": 0,
        "input": [user("Hello")],
    }


def test_models_without_reasoning_get_no_reasoning_fields(talk: Any) -> None:
    session = talk(response(say("Hi")), model="gpt-4.1")
    session[0].chat("Hello", display=False)
    assert not {"include", "reasoning"} & last_body(session).keys()


@pytest.mark.parametrize(
    ("param", "field"),
    [("temperature", "temperature"), ("reasoning.summary", "reasoning"), ("include[0]", "include")],
)
def test_a_rejected_field_is_not_sent_again(talk: Any, param: str, field: str) -> None:
    objection = failure(400, "invalid_request_error", "unsupported_parameter", param)
    session = talk(objection, response(say("Hi")), response(say("Hi")))
    session[0].chat("Hello", display=False)
    session[0].chat("Again", display=False)
    assert [field in request.body for request in session[1].requests] == [True, False, False]


def test_calls_outputs_and_images_are_converted(talk: Any) -> None:
    session = talk(response(say("I see.")))
    history: list[Message] = [
        {"role": "user", "type": "message", "content": "Plot"},
        {"role": "assistant", "type": "message", "content": "Look:"},
        {"role": "assistant", "type": "code", "format": "echo", "content": "plot"},
        {"role": "computer", "type": "console", "format": "output", "content": "ok"},
        {"role": "computer", "type": "image", "format": "base64.png", "content": PIXEL},
    ]
    session[0].messages = history
    session[0].llm.supports_vision = True
    session[0].chat("And?", display=False)
    [plot, look, used, output, picture, question] = last_body(session)["input"]
    assert (plot, question) == (user("Plot"), user("And?"))
    assert look["content"] == [{"type": "output_text", "text": "Look:"}]
    assert json.loads(used["arguments"]) == {"language": "echo", "code": "plot"}
    assert output == {"type": "function_call_output", "call_id": used["call_id"], "output": "ok"}
    url = f"data:image/png;base64,{PIXEL}"
    assert picture["content"][-1] == {"type": "input_image", "image_url": url, "detail": "low"}


def test_reasoning_is_sent_back_unchanged_with_its_call(talk: Any) -> None:
    session = talk(
        response(reasoning("Hm.", encrypted="cjE="), say("Look:"), call("echo", "one", 5)),
        response(reasoning(encrypted="cjI="), say("Done.")),
        response(say("Yes.")),
    )
    session[0].chat("Go", display=False)
    kept = {"type": "reasoning", "encrypted_content": "cjE="}
    kept_and_shown = kept | {"summary": [{"type": "summary_text", "text": "Hm."}]}
    items = last_body(session)["input"]
    assert items[1] == kept_and_shown
    assert [item["type"] for item in items[2:]] == ["message", "function_call", "function_call_output"]
    session[0].chat("Sure?", display=False)
    items = last_body(session)["input"]
    assert items[1] == kept_and_shown
    assert items[5] == {"type": "reasoning", "encrypted_content": "cjI=", "summary": []}
    for earlier, later in pairwise(request.body["input"] for request in session[1].requests):
        assert later[: len(earlier)] == earlier


def test_a_reply_with_two_calls_is_sent_back_in_order(talk: Any) -> None:
    session = talk(
        response(reasoning(encrypted="a"), call("echo", "one"), reasoning(encrypted="b"), call("echo", "two")),
        response(say("Done.")),
    )
    session[0].chat("Go", display=False)
    items = last_body(session)["input"][1:]
    assert [item["type"] for item in items[:4]] == ["reasoning", "function_call"] * 2
    assert [(item["call_id"], item["output"]) for item in items[4:]] == [
        (items[1]["call_id"], "one"),
        (items[3]["call_id"], "two"),
    ]


def test_reasoning_is_dropped_when_earlier_messages_changed(talk: Any) -> None:
    session = talk(response(reasoning("Hm."), say("One.")), response(say("Two.")))
    session[0].chat("Go", display=False)
    session[0].messages[0]["content"] = "Went"
    session[0].chat("And?", display=False)
    assert [item["type"] for item in last_body(session)["input"]] == ["message"] * 3


def test_reasoning_without_encrypted_content_is_not_sent_back(talk: Any) -> None:
    session = talk(response(reasoning("Hm.", encrypted=None), call("echo", "one")), response(say("Done.")))
    session[0].chat("Go", display=False)
    assert "reasoning" not in [item["type"] for item in last_body(session)["input"]]
