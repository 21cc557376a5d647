"""`interpreter.batch(...)`: rows from Python, results as they come, and tasks that begin from this session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import UsageError
from model_server import text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")


def answer(body: dict[str, Any]) -> Any:
    return text("Yes.") if "cat" in json.dumps(body["messages"]) else text("No.")


def asking(chatting: Chatting, reply: Any = answer, **settings: Any) -> OpenInterpreter:
    interpreter, server = chatting(reply, auto_run=True, **settings)
    server.repeat = True
    return interpreter


def test_results_come_one_by_one_and_as_a_frame(chatting: Chatting) -> None:
    pandas = pytest.importorskip("pandas")
    interpreter = asking(chatting)
    rows = pandas.DataFrame({"animal": ["cat", "dog"]})
    results = interpreter.batch(rows, "Is {animal} a feline?")
    assert {row["value"] for row in results} == {"Yes.", "No."}
    assert list(results.frame()["value"]) == ["Yes.", "No."]
    assert results.progress.done == 2


def test_tasks_begin_with_the_variables_and_files_of_this_session(chatting: Chatting, tmp_path: Path) -> None:
    def use(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        return (
            tool_call("python", "print(base + len(open('seed.txt').read()))")
            if last["role"] == "user"
            else text("Ran.")
        )

    interpreter = asking(chatting, use)
    interpreter.computer.run("python", "base = 40; open('seed.txt', 'w').write('ab'); None")
    results = interpreter.batch(["one", "two"], from_here=True, out=tmp_path / "out.jsonl").list()
    assert [row["status"] for row in results] == ["done", "done"]
    journals = Path(interpreter.conversation_history_path).glob("*/journal.jsonl")
    assert sum("42" in path.read_text() for path in journals) == 2
    assert interpreter.computer.run("python", "print(base)")[0]["content"] == "40\n"


def test_a_session_that_asks_before_code_runs_has_no_batch(chatting: Chatting) -> None:
    interpreter, _ = chatting(answer)
    with pytest.raises(UsageError, match="can't ask before it runs code"):
        interpreter.batch(["x"])
