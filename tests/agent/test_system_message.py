"""The system message before a conversation."""

from __future__ import annotations

from conversation import Chatting, Echo
from model_replies import text


def system_of(request: object) -> str:
    message = request.body["messages"][0]  # type: ignore[attr-defined]
    assert message["role"] == "system"
    return str(message["content"])


def test_it_contains_the_users_own_texts(chatting: Chatting) -> None:
    interpreter, server = chatting(text("ok"), system_message="Be a parrot.", custom_instructions="Squawk.")
    interpreter.chat("go", display=False)
    assert system_of(server.requests[0]).index("Be a parrot.") < system_of(server.requests[0]).index("Squawk.")


def test_a_language_can_add_to_it(chatting: Chatting) -> None:
    class Loud(Echo):
        name = "loud"
        system_message = "# LOUD is for shouting."

    interpreter, server = chatting(text("ok"))
    interpreter.computer.languages = [Loud]
    interpreter.chat("go", display=False)
    assert "# LOUD is for shouting." in system_of(server.requests[0])


def test_code_in_the_template_runs_once(chatting: Chatting) -> None:
    template = "The answer is {{ import os; n = globals().get('n', 41) + 1; print(n) }}."
    interpreter, server = chatting(text("ok"), text("ok"), system_message=template)
    interpreter.chat("go", display=False)
    interpreter.chat("again", display=False)
    first, second = map(system_of, server.requests)
    assert "The answer is 42." in first
    assert first == second


def test_the_default_prompt_and_its_tool_take_at_most_450_tokens(chatting: Chatting) -> None:
    import json

    from interpreter.llm.context import estimate_text

    interpreter, server = chatting(text("ok"))
    interpreter.chat("hi", display=False)
    body = server.requests[0].body
    assert estimate_text(body["messages"][0]["content"] + json.dumps(body["tools"])) <= 450


def test_the_default_prompt_names_the_folder_and_the_languages(chatting: Chatting) -> None:
    import os
    import platform

    interpreter, server = chatting(text("ok"))
    interpreter.chat("hi", display=False)
    system = system_of(server.requests[0])
    assert os.getcwd() in system
    assert f"python ({platform.python_version()})" in system
