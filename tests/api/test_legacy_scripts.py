"""Scripts written for 0.4.3 still work: custom models, lists that end in code, copies and loops."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.llm import Llm
from model_server import ModelServer, reasoning, text, tool_call

Chatting = Callable[..., tuple[OpenInterpreter, ModelServer]]
ORIGINAL = {"message", "code", "console", "confirmation", "image", "file", "review"}


def test_a_stream_has_only_the_original_chunk_types(chatting: Chatting) -> None:
    replies = [reasoning("Hm.").then(tool_call("python", "print(1)")), text("Done.")]
    interpreter, _ = chatting(*replies, auto_run=True, stream_all=False)
    chunks = list(interpreter.chat("Go", display=False, stream=True))
    assert {chunk["type"] for chunk in chunks} == {"code", "console", "message"}
    groups: list[str] = []
    for chunk in chunks:
        if chunk.get("start"):
            groups.append(chunk["type"])
        assert groups[-1] == chunk["type"]
    assert groups == ["code", "console", "message"]


def test_stream_all_adds_the_new_chunk_types(chatting: Chatting) -> None:
    interpreter, _ = chatting(reasoning("Hm.").then(text("Hi.")))
    assert "reasoning" in {chunk["type"] for chunk in interpreter.chat("Go", display=False, stream=True)}


def test_llm_run_streams_only_the_original_chunk_types(chatting: Chatting) -> None:
    interpreter, _ = chatting(*[reasoning("Hm.").then(text("Hi."))] * 2, stream_all=False)
    asked: list[Any] = [
        {"role": "system", "type": "message", "content": "Be brief."},
        {"role": "user", "type": "message", "content": "Hi"},
    ]
    assert {chunk["type"] for chunk in interpreter.llm.run(asked)} == {"message"}
    assert "reasoning" in {chunk["type"] for chunk in interpreter.llm.reply(asked)}


class Parrot:
    """A custom model that follows a script."""

    colour = "green"

    def __init__(self) -> None:
        self.asked: list[list[dict[str, Any]]] = []

    def run(self, messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        self.asked.append(messages)
        if len(self.asked) == 1:
            yield {"type": "message", "content": "Let me "}
            yield {"type": "message", "content": "see."}
            yield {"type": "code", "format": "python", "content": "print(6"}
            yield {"type": "code", "format": "python", "content": "*7)"}
        else:
            yield {"type": "message", "content": "Done."}


@pytest.mark.parametrize("given", ["assigned", "argument"])
def test_any_object_with_run_can_be_the_model(given: str) -> None:
    parrot = Parrot()
    interpreter = OpenInterpreter(auto_run=True, **({"llm": parrot} if given == "argument" else {}))
    if given == "assigned":
        interpreter.llm = parrot  # type: ignore[assignment]
    try:
        made = interpreter.chat("What is 6*7?", display=False)
    finally:
        interpreter.computer.terminate()
    assert [message["content"] for message in made] == ["Let me see.", "print(6*7)", "42\n", "Done."]
    assert [messages[0]["role"] for messages in parrot.asked] == ["system", "system"]
    assert parrot.asked[1][-1]["content"] == "42\n"
    assert interpreter.llm.colour == "green"  # type: ignore[attr-defined]
    assert isinstance(interpreter.llm, Llm)


@pytest.mark.parametrize("answer", ["run", "stop"])
def test_a_list_that_ends_in_code_runs_it_after_approval(chatting: Chatting, answer: str) -> None:
    interpreter, server = chatting(text("It is 42."))
    conversation: list[Any] = [
        {"role": "user", "type": "message", "content": "What is 6*7?"},
        {"role": "assistant", "type": "code", "format": "python", "content": "print(6*7)"},
    ]
    stream = interpreter.chat(conversation, display=False, stream=True)
    for chunk in stream:
        if chunk["type"] == "confirmation":
            assert chunk["content"]["content"] == "print(6*7)"
            assert not server.requests
            if answer == "stop":
                stream.close()
    said = [message["content"] for message in interpreter.messages[2:]]
    assert said == (["42\n", "It is 42."] if answer == "run" else [])


def test_loop_mode_puts_the_answer_in_the_last_message(chatting: Chatting) -> None:
    interpreter, server = chatting(text("The answer is 42."), text("The task is done."), loop=True)
    made = interpreter.chat("Go", display=False)
    assert [message["content"] for message in made] == ["The answer is 42.\n\nThe task is done."]
    assert server.requests[1].body["messages"][-2]["content"] == "The answer is 42."


def test_private_methods_that_servers_call_still_work(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."), stream_all=False)
    first = list(interpreter._streaming_chat("Hi", display=False))
    assert "".join(chunk.get("content", "") for chunk in first) == "One."
    interpreter.messages.append({"role": "user", "type": "message", "content": "Again"})
    second = list(interpreter._respond_and_store())
    assert "".join(chunk.get("content", "") for chunk in second) == "Two."
    assert [message["content"] for message in interpreter.messages] == ["Hi", "One.", "Again", "Two."]


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_an_interpreter_can_be_copied_and_pickled(duplicate: Callable[[Any], Any]) -> None:
    interpreter = OpenInterpreter(max_output=7, messages=[{"role": "user", "type": "message", "content": "Hi"}])
    interpreter.llm.model = "ollama/mine"
    other = duplicate(interpreter)
    assert (other.max_output, other.llm.model, other.messages) == (7, "ollama/mine", interpreter.messages)
    other.llm.model = "other"
    assert interpreter.llm.model == "ollama/mine"


def test_chat_works_inside_a_running_event_loop(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", "print(1)"), text("Done."), auto_run=True)

    async def bot() -> list[Any]:
        return interpreter.chat("Go", display=False)  # type: ignore[no-any-return]

    assert asyncio.run(bot())[-1]["content"] == "Done."


def test_each_thread_can_have_its_own_interpreter(chatting: Chatting) -> None:
    users = [chatting(tool_call("python", f"n = {n}\nprint(n)"), text("Done."), auto_run=True)[0] for n in range(3)]
    threads = [threading.Thread(target=user.chat, args=("Go", False)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [user.messages[2]["content"] for user in users] == ["0\n", "1\n", "2\n"]


@pytest.mark.parametrize(
    "code",
    [
        "10+12executeexecute\n",
        "`\n10+12",
        '{\n"language": "python",\n"code": "10+12"\n}',
        'functions.execute({\n"language": "python",\n"code": "10+12"\n})',
        '{language: "python", code: "10+12" }',
    ],
)
def test_a_stored_block_is_cleaned_before_it_runs(chatting: Chatting, code: str) -> None:
    interpreter, server = chatting(text("22."), auto_run=True)
    interpreter.messages = [{"role": "assistant", "type": "code", "format": "python", "content": code}]
    chunks = list(interpreter._respond_and_store())
    assert "".join(str(chunk["content"]) for chunk in chunks if chunk.get("format") == "output").strip() == "22"
    assert interpreter.messages[0]["content"].strip() == "10+12"
    assert "10+12executeexecute" not in str(server.requests[0].body)


def test_a_stored_block_in_another_language_is_cleaned(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Done."), auto_run=True)
    code = '{"language": "shell", "code": "echo hi"}'
    interpreter.messages = [{"role": "assistant", "type": "code", "format": "python", "content": code}]
    list(interpreter._respond_and_store())
    assert interpreter.messages[0] == {"role": "assistant", "type": "code", "format": "shell", "content": "echo hi"}
    assert interpreter.messages[1]["content"] == "hi\n"
