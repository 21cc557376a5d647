"""The model profile depends on a model's name, size and location, and the user's settings override it."""

from __future__ import annotations

import pytest

from conversation import Chatting, chatting
from interpreter.agent.turn import NOT_RUN
from interpreter.llm.model_profile import profile_for, size_of
from model_replies import text

__all__ = ["chatting"]

LOOPBACK = "http://localhost:8080/v1"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen2.5-coder:1.5b", 1.5),
        ("qwen2.5-coder-0.5b-instruct-q4_k_m", 0.5),
        ("Meta-Llama-3.1-8B-Instruct", 8),
        ("mixtral-8x7b", 56),
        ("smollm2-135m", 0.135),
        ("gemma3n:e4b", 4),
        ("qwen3-30b-a3b", 30),
        ("gpt-4o", None),
        ("claude-3-5-sonnet-20241022", None),
        ("phi-3.5-mini", None),
        ("web3bot", None),
    ],
)
def test_the_size_is_read_from_the_model_name(name: str, size: float | None) -> None:
    assert size_of(name) == size


@pytest.mark.parametrize(
    ("model", "api_base", "profile"),
    [
        ("gpt-4o", None, "full"),
        ("gpt-4o", LOOPBACK, "full"),  # a proxy on this machine
        ("anthropic/claude-sonnet-4-5", None, "full"),
        ("groq/llama-3.3-70b-versatile", None, "full"),
        ("groq/llama-3.1-8b-instant", None, "short"),
        ("ollama/llama3.1", None, "short"),
        ("ollama/llama3.2", None, "minimal"),
        ("ollama/llama3.1:70b", None, "full"),
        ("ollama/qwen2.5-coder:1.5b", None, "minimal"),
        ("ollama/custom-model", None, "short"),
        ("openai/custom-model", LOOPBACK, "full"),  # until its server or its replies show otherwise
        ("lm_studio/custom-model", None, "full"),
        ("openai/custom-model", "https://models.example.com/v1", "full"),
        ("builtin/qwen2.5-coder-1.5b", None, "minimal"),
        ("builtin/qwen2.5-coder-0.5b", None, "tiny"),
        ("builtin//models/SmolLM2-135M-Instruct.Q4_1.gguf", None, "tiny"),
    ],
)
def test_a_model_gets_the_profile_for_its_size(model: str, api_base: str | None, profile: str) -> None:
    assert profile_for(model, api_base).name == profile


def test_large_models_get_instructions_in_the_system_message(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Hi."))
    interpreter.llm.supports_functions = False
    interpreter.chat("Hello", display=False)
    system, user = server.requests[0].body["messages"]
    assert "fenced block" in system["content"]
    assert user["content"] == "Hello"
    assert "max_tokens" not in server.requests[0].body


def test_small_models_get_instructions_with_the_request(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Hi."))
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("Hello", display=False)
    request = server.requests[0].body
    system, user = request["messages"]
    assert len(system["content"]) < 400
    assert user["content"].startswith("Hello\n\nThis folder is empty.")
    assert "\n\nWrite one Python code block" in user["content"]
    assert "tools" not in request
    assert request["max_tokens"] == 1500
    assert "<|im_end|>" in request["stop"]


def test_an_earlier_request_keeps_its_form(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Hi."), text("Again."))
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("Hello", display=False)
    interpreter.chat("And?", display=False)
    first, second = (request.body["messages"] for request in server.requests)
    assert second[: len(first)] == first


def test_successful_failed_and_empty_output_use_different_templates(chatting: Chatting) -> None:
    bad = "```python\nimport json\njson.loads('{')\n```"
    good = "```python\nprint(6 * 7)\n```"
    silent = "```python\nx = 1\n```"
    interpreter, server = chatting(text(bad), text(good), text(silent), text("It is 42."), auto_run=True)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("What is it?", display=False)
    failed, went_well, nothing = (request.body["messages"][-1]["content"] for request in server.requests[1:])
    assert failed.startswith("The code failed:\n")
    assert "json.loads('{')" in failed
    assert "JSONDecodeError: Expecting property name" in failed
    assert "decoder.py" not in failed  # library frames confuse a small model
    assert "corrected" in failed
    assert went_well.startswith("Output:\n42\n\nIf the task is done, answer now")
    assert nothing.startswith("The code ran without an error and printed nothing.")


def test_the_smallest_models_must_answer_after_the_first_successful_output(chatting: Chatting) -> None:
    interpreter, server = chatting(text("```python\nprint(6 * 7)\n```"), text("42."), auto_run=True)
    interpreter.llm.model = "openai/tiny-0.5b"
    interpreter.chat("What is it?", display=False)
    assert server.requests[1].body["messages"][-1]["content"].endswith("Answer now in one sentence without code.")


def test_what_follows_a_small_models_block_is_not_run_and_goes_back_to_it(chatting: Chatting) -> None:
    reply = "```python\nprint(6 * 7)\n```\nOutput:\n```python\nprint('made up')\n```\nIt is 99."
    interpreter, server = chatting(text(reply, split=4), text("It is 42."), auto_run=True)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("What is it?", display=False)
    sent = [m["content"].strip() for m in interpreter.messages[1:]]
    assert sent == ["print(6 * 7)", "42", "It is 42."]
    block = "```python\nprint('made up')\n```"
    assert interpreter.messages[2]["note"] == NOT_RUN.format(block=block)
    assert block in server.requests[1].body["messages"][-1]["content"]
    assert "It is 99" not in str(server.requests[1])


def test_user_settings_override_the_profile(chatting: Chatting) -> None:
    interpreter, server = chatting(text("```python\nprint(1)\n```"), text("1."), auto_run=True)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.llm.max_tokens = 77
    interpreter.system_message = "Mine."
    interpreter.user_message_template = "<{content}>"
    interpreter.code_output_template = "[{content}]"
    interpreter.llm.execution_instructions = "Fences, please."
    interpreter.chat("Hello", display=False)
    system, user, _, output = server.requests[1].body["messages"]
    assert system["content"] == "Mine.\n\nFences, please."
    assert user["content"] == "<Hello>"
    assert output["content"] == "[1]"
    assert server.requests[0].body["max_tokens"] == 77


def test_a_profile_can_be_set_by_name(chatting: Chatting) -> None:
    interpreter, server = chatting(text("Hi."))
    interpreter.llm.model_profile = "minimal"
    interpreter.chat("Hello", display=False)
    assert "tools" not in server.requests[0].body
    assert "Write one Python" in server.requests[0].body["messages"][-1]["content"]


def test_small_models_get_only_the_start_and_end_of_long_output(chatting: Chatting) -> None:
    code = "```python\nfor n in range(400): print('row', n)\n```"
    interpreter, server = chatting(text(code), text("Many rows."), auto_run=True, max_output=10_000)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("Go", display=False)
    sent = server.requests[1].body["messages"][-1]["content"]
    assert "row 0\n" in sent
    assert "row 399" in sent
    assert "characters left out" in sent
    assert len(sent) < 2400
    assert "row 200\n" in interpreter.messages[2]["content"]  # the conversation keeps all of it
