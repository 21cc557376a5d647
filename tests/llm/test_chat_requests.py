"""Chat-completions requests: their body, URL and key."""

from __future__ import annotations

from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import RequestRefusedError
from interpreter.messages import Message
from model_server import error, text, tool_call
from scripted_llm import SYSTEM, Start, folded

ASK: Message = {"role": "user", "type": "message", "content": "Hi"}


def body_of(model: Any) -> dict[str, Any]:
    model.chunks(ASK)
    body: dict[str, Any] = model.server.requests[-1].body
    return body


def test_tool_mode_sends_the_one_tool(asking: Start) -> None:
    body = body_of(asking(text("Hi"), max_tokens=100))
    [tool] = body.pop("tools")
    assert body == {
        "model": "gpt-4o",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "max_tokens": 100,
        "temperature": 0,
    }
    assert tool["type"] == "function"
    assert tool["function"]["name"] == "execute"
    parameters = tool["function"]["parameters"]
    assert parameters["properties"]["language"]["enum"] == ["python", "shell"]
    assert parameters["required"] == ["language", "code"]


def test_text_mode_says_how_to_write_code_and_sends_no_tool(asking: Start) -> None:
    model = asking(text("Hi"), text("Hi"), supports_functions=False)
    body = body_of(model)
    assert "tools" not in body
    assert body["messages"][0]["content"] == f"Be brief.\n\n{model.llm.execution_instructions}"
    model.llm.execution_instructions = False
    assert body_of(model)["messages"][0]["content"] == "Be brief."


def test_unset_settings_are_not_sent(asking: Start) -> None:
    body = body_of(asking(text("Hi"), temperature=None))
    assert not {"temperature", "max_tokens", "api_base", "api_key", "api_version"} & set(body)


@pytest.mark.parametrize("temperature", [0, 0.0, 0.7])
def test_any_temperature_that_is_set_is_sent(asking: Start, temperature: float) -> None:
    assert body_of(asking(text("Hi"), temperature=temperature))["temperature"] == temperature


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("gpt-4o", True),
        ("openai/gpt-4o-mini", True),
        ("ollama/llama3.1", False),
        ("my-model-8b", False),
        ("my-model", True),
    ],
)
def test_tools_are_offered_by_default_to_capable_models(asking: Start, model: str, tools: bool) -> None:
    assert ("tools" in body_of(asking(text("Hi"), model=model))) is tools


@pytest.mark.parametrize(("field", "instead"), [("temperature", None), ("max_tokens", "max_completion_tokens")])
def test_a_rejected_field_is_not_sent_again(asking: Start, field: str, instead: str | None) -> None:
    objection = error(400, {"error": {"message": "Unsupported.", "code": "unsupported_value", "param": field}})
    model = asking(objection, text("Hi"), text("Hi"), max_tokens=50)
    assert folded(model.chunks()) == ["Hi"]
    model.chunks()
    first, *later = [request.body for request in model.server.requests]
    assert field in first
    for body in later:
        assert field not in body
        assert instead is None or body[instead] == 50
    assert len(later) == 2


def test_rejected_stream_options_are_not_sent_again(asking: Start) -> None:
    model = asking(text("Hi"), text("Hi"), server={"include_usage_rejected": True})
    assert folded(model.chunks()) == folded(model.chunks()) == ["Hi"]
    assert ["stream_options" in request.body for request in model.server.requests] == [True, False, False]


def test_fields_listed_as_unknown_are_dropped(asking: Start) -> None:
    unknown = error(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "?"}]})
    assert folded(asking(unknown, text("Hi")).chunks()) == ["Hi"]


def test_a_persistent_rejection_raises_an_error(asking: Start) -> None:
    objection = error(400, {"error": {"message": "No.", "param": "temperature"}})
    model = asking(objection, objection)
    model.until_error(RequestRefusedError)
    assert len(model.server.requests) == 2


def test_the_second_request_starts_with_the_first(asking: Start) -> None:
    model = asking(tool_call("python", "1"), text("Done."))
    code: Message = {"role": "assistant", "type": "code", "format": "python", "content": "1"}
    result: Message = {"role": "computer", "type": "console", "format": "output", "content": "1"}
    model.chunks(ASK)
    model.chunks(ASK, code, result)
    first, second = [request.body for request in model.server.requests]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["tools"] == first["tools"]


def test_unencodable_characters_are_replaced(asking: Start) -> None:
    model = asking(text("Hi"))
    model.chunks({"role": "user", "type": "message", "content": "half \ud83d"})
    assert model.server.requests[0].messages[-1]["content"] == "half ?"


def test_local_servers_bypass_the_proxy(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert folded(asking(text("Hi")).chunks()) == ["Hi"]


def test_load_sends_nothing(asking: Start) -> None:
    model = asking(text("Hi"))
    model.llm.load()
    assert model.server.requests == []
    asking(api_base=None, api_key=None).llm.load()


def test_azure_has_its_own_url_and_key_header(asking: Start) -> None:
    model = asking(text("Hi"), model="azure/my-gpt", api_version="2024-06-01")
    model.llm.api_base = model.server.address
    assert folded(model.chunks()) == ["Hi"]
    [request] = model.server.requests
    assert request.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-06-01"
    assert request.headers["api-key"] == "key"
    assert "authorization" not in request.headers


def test_custom_completions_replace_the_request(asking: Start) -> None:
    model = asking(max_tokens=7)
    seen: list[dict[str, Any]] = []

    def mine(**params: Any) -> Any:
        seen.append(params)
        yield {"choices": [{"delta": {"content": "Mine"}}]}

    model.llm.completions = mine
    assert folded(model.chunks(ASK)) == ["Mine"]
    assert seen[0]["messages"][0]["content"] == SYSTEM["content"]
    assert {
        "model",
        "messages",
        "stream",
        "tools",
        "max_tokens",
        "temperature",
        "api_base",
        "api_key",
    } == set(seen[0])
    assert model.server.requests == []


def test_custom_completions_can_wrap_the_default(asking: Start) -> None:
    model = asking(text("Hi"))
    usual = model.llm.completions

    def logged(**params: Any) -> Any:
        yield from usual(**params, top_p=0.5)

    model.llm.completions = logged
    assert folded(model.chunks()) == ["Hi"]
    assert model.server.requests[0].body["top_p"] == 0.5
    model.llm.completions = None
    assert model.llm.completions == usual


def test_custom_completions_need_no_key_or_known_provider() -> None:
    interpreter = OpenInterpreter()
    interpreter.llm.model = "acme/x"
    interpreter.llm.completions = lambda **params: iter([{"choices": [{"delta": {"content": "Mine"}}]}])
    assert folded([*interpreter.llm.reply([SYSTEM, ASK])]) == ["Mine"]


def test_errors_in_custom_completions_are_raised_unchanged(asking: Start) -> None:
    model = asking()

    def failing(**params: Any) -> Any:
        yield {"choices": [{"delta": {"content": "a"}}]}
        raise ZeroDivisionError

    model.llm.completions = failing
    chunks, _ = model.until_error(ZeroDivisionError)
    assert folded(chunks) == ["a"]
