"""The requests of the first hour with a scripted strong model, in the sandbox of the folder: nothing is added for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from eval.outcome import Outcome
from eval.task import Task
from eval.tasks import TASKS

from conversation import Chatting, chatting
from interpreter.session import REFUSE, Answer
from model_replies import text, tool_call
from project.first_hour_solutions import SOLUTIONS

__all__ = ["chatting"]

REQUESTS = [task for task in TASKS if task.kind == "first_hour"]
# Ten of them; `make test-full` runs all.
PARAMETERS = [
    pytest.param(task, id=task.name, marks=[] if number % 4 == 0 else [pytest.mark.full])
    for number, task in enumerate(REQUESTS)
]


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("task", PARAMETERS)
def test_a_strong_model_gets_no_extra_request_and_no_extra_token_and_no_one_is_asked(
    task: Task, chatting: Chatting
) -> None:
    [words], code, folder = task.words, SOLUTIONS[task.name].strip(), Path.cwd()
    task.prepare(folder)
    interpreter, server = chatting(
        tool_call("python", code), text("Done."), mode="auto-in-sandbox", sandbox="workspace", workspace=str(folder)
    )
    interpreter.llm.model = "openai/gpt-4o"
    asked: list[Any] = []

    def answer(question: Any) -> Answer:
        asked.append(question)
        return Answer(REFUSE)

    with interpreter.session.questions.answerable(("offer", "block", "call", "text"), answer):
        chunks = list(interpreter.chat(words, display=False, stream=True))
    assert asked == []
    assert task.verdict(Outcome(folder, interpreter.messages)) == ""
    assert not [chunk for chunk in chunks if chunk.get("format") == "notice"]
    first, second = (request.messages for request in server.requests)
    assert [message["role"] for message in first] == ["system", "user"] and first[1]["content"] == words
    assert second[:2] == first
    printed = "".join(m["content"] for m in interpreter.messages if m["type"] == "console").strip()
    call, *results = second[2:]
    assert call["role"] == "assistant" and not call.get("content")
    assert results[0]["role"] == "tool" and printed in results[0]["content"]
    assert len(results[0]["content"]) <= len(printed) + 40, results[0]["content"]
