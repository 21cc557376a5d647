"""Local models with uninformative names are assessed by what their server reports and how they reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from conversation import Echo
from interpreter import OpenInterpreter
from interpreter.llm.model_profile import Assessment
from model_server import ModelServer, error, text, tool_call
from routed_server import RoutedServer, as_json, as_lines

MODEL = "openai/custom-model"
FENCED = text("Look:\n```echo\none\n```\n")


@pytest.fixture
def talk() -> Iterator[Any]:
    opened: list[tuple[OpenInterpreter, ModelServer]] = []

    def start(*replies: Any, row: dict[str, Any] | None = None, **settings: Any) -> Any:
        server = ModelServer(replies, models=[{"id": "custom-model", **(row or {})}]).start()
        interpreter = OpenInterpreter(auto_run=True, stream_all=True)
        given = {"model": MODEL, "api_base": server.base_url, "api_key": "key", "max_retries": 2, **settings}
        for name, value in given.items():
            setattr(interpreter.llm, name, value)
        interpreter.computer.languages = [Echo]
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


def posted(server: ModelServer) -> list[dict[str, Any]]:
    return [request.body for request in server.requests if request.method == "POST"]


def notices(interpreter: OpenInterpreter, words: str) -> list[str]:
    chunks = interpreter.chat(words, display=False, stream=True)
    return [chunk["content"]["text"] for chunk in chunks if chunk.get("format") == "notice"]


def test_an_unknown_model_starts_with_the_full_prompt_and_tools(talk: Any) -> None:
    interpreter, server = talk(tool_call("echo", "one"), text("As in:\n```echo\ntwo\n```\n"))
    assert notices(interpreter, "Go") == []
    assert [message["type"] for message in interpreter.messages[1:]] == ["code", "console", "message"]
    first, second = posted(server)
    assert first["tools"] == second["tools"]
    assert len(first["messages"][0]["content"]) > 600
    assert interpreter.llm.profile.name == "full"


def test_code_written_as_text_runs_and_the_profile_steps_down(talk: Any) -> None:
    interpreter, server = talk(FENCED, text("One."), text("Two."))
    [notice] = notices(interpreter, "Go")
    assert notice.startswith(
        f"{MODEL} wrote code as text instead of calling the tool, so from now on it gets shorter instructions"
    )
    assert notices(interpreter, "And?") == []
    assert [m["content"].strip() for m in interpreter.messages] == ["Go", "Look:", "one", "one", "One.", "And?", "Two."]
    first, second, third = posted(server)
    assert "tools" in first and "tools" not in second and "tools" not in third
    assert len(second["messages"][0]["content"]) < len(first["messages"][0]["content"])
    assert "Write one Python code block" in second["messages"][1]["content"]
    assert third["messages"][: len(second["messages"])] == second["messages"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (tool_call(arguments='{"language": "echo", "code": "one"} and more {'), "wrote a tool call that can't be read"),
        (text('{"language": "echo", "code": "one"}'), "wrote code as text"),
        (text("so on and " * 200, 10), "repeated itself"),
    ],
    ids=["malformed call", "call written as text", "repetition"],
)
def test_bad_replies_step_the_profile_down(talk: Any, reply: Any, reason: str) -> None:
    interpreter, server = talk(reply, text("One."), text("One."))
    [notice] = notices(interpreter, "Go")
    assert f"{MODEL} {reason}" in notice
    assert "tools" not in posted(server)[1]
    assert interpreter.llm.profile.name == "short"


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "custom-model does not support tools"),
        error(500, "tools param requires --jinja flag"),
        error(422, {"error": {"message": "Extra inputs", "param": "tools"}}),
    ],
    ids=["Ollama", "llama.cpp", "rejected field"],
)
def test_a_server_that_refuses_tools_is_asked_without_them(talk: Any, refusal: Any) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "tools" in body:
            return refusal
        return text("One.") if body["messages"][-1]["role"] == "user" and len(body["messages"]) > 2 else FENCED

    interpreter, server = talk(*[answer] * 4)
    [notice] = notices(interpreter, "Go")
    assert f"{MODEL} can't use tools on this server" in notice
    # If the refusal names no field, the newest field is dropped first.
    assert ["tools" in body for body in posted(server)][-3:] == [True, False, False]
    assert interpreter.messages[-1]["content"] == "One."


@pytest.mark.parametrize(
    ("row", "profile"),
    [
        ({"meta": {"n_params": 1_540_000_000}}, "minimal"),  # llama.cpp
        ({"root": "/models/Qwen2.5-7B-Instruct"}, "short"),  # vLLM
        ({"meta": {"n_params": 70_000_000_000}}, "full"),
        ({"owned_by": "proxy"}, "full"),
    ],
)
def test_the_size_the_server_reports_sets_the_profile(talk: Any, row: Any, profile: str) -> None:
    interpreter, server = talk(text("Hi."), text("Hi."), row=row)
    interpreter.chat("Hello", display=False)
    interpreter.chat("Hello again", display=False)
    assert interpreter.llm.profile.name == profile
    assert ["tools" in body for body in posted(server)] == [profile == "full"] * 2
    assert [request.method for request in server.requests] == ["GET", "POST", "POST"]  # it is asked once


def test_the_size_ollama_reports_sets_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = as_json({"details": {"parameter_size": "1.5B"}, "model_info": {}})
    said = as_lines({"message": {"content": "Hi."}}, {"message": {"content": ""}, "done": True})
    with RoutedServer({"POST /api/show": shown, "POST /api/chat": said}) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        interpreter = OpenInterpreter()
        interpreter.llm.model = "ollama/custom-model"
        assert interpreter.llm.profile.name == "short"
        interpreter.chat("Hello", display=False)
        assert interpreter.llm.profile.name == "minimal"
    assert server.paths().count("POST /api/show") == 1


@pytest.mark.parametrize(
    ("settings", "tools"),
    [({"model_profile": "short"}, False), ({"supports_functions": False}, False), ({"model": "openai/own-8b"}, False)],
)
def test_known_and_configured_models_are_not_assessed(talk: Any, settings: dict[str, Any], tools: bool) -> None:
    interpreter, server = talk(FENCED, text("One."), **settings)
    assert notices(interpreter, "Go") == []
    assert ["tools" in body for body in posted(server)] == [tools] * 2


def test_tools_enabled_by_the_user_stay(talk: Any) -> None:
    interpreter, server = talk(FENCED, supports_functions=True)
    assert notices(interpreter, "Go") == []
    assert [message["type"] for message in interpreter.messages] == [
        "message",
        "message",
    ]  # plain text, as with any model
    assert "tools" in posted(server)[0]


def test_a_step_down_changes_the_prefix_once(talk: Any) -> None:
    replies = [tool_call("echo", "one"), text("One."), tool_call(arguments="{"), text("Two."), FENCED, text("Three.")]
    interpreter, server = talk(*replies)
    for words in ("Go", "Go on", "And?"):
        interpreter.chat(words, display=False)
    sent = [json.dumps(body["messages"])[:-1] for body in posted(server)]
    assert [after.startswith(before) for before, after in pairwise(sent)] == [True, True, False, True, True]


def test_a_resumed_conversation_keeps_its_profile(talk: Any) -> None:
    first, server = talk(FENCED, text("One."))
    first.chat("Go", display=False)
    name = first.journal.id
    first.journal.close()
    second, _ = talk()
    second.llm.api_base = server.base_url
    assert second.llm.profile.name == "full"
    second.journal.resume(str(name))
    assert second.llm.profile.name == "short"


def test_a_reported_size_never_steps_the_profile_up() -> None:
    assessment = Assessment()
    where = (MODEL, "http://localhost:1/v1")
    assessment.failed(*where, "repeated itself")
    assert where not in assessment.sizes
    assessment.sizes[where] = 70.0
    assert assessment.profile(*where).name == "short"
    assert not assessment.tries_tools(*where)
