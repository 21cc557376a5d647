"""Several tries of one task: one is kept with its files, variables and conversation, in one step that can be undone."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.agents.subagents import subagents_of
from interpreter.agents.tries import estimate, retry
from interpreter.config.homes import our_folder
from interpreter.errors import ComputerError
from model_server import ModelServer, error, text, tool_call, usage

__all__ = ["chatting"]
pytestmark = [
    pytest.mark.usefixtures("no_strays"),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of these tests is that of Linux"),
]


def trying(chatting: Chatting, workspace: Path, answer: Any, **settings: Any) -> tuple[OpenInterpreter, ModelServer]:
    interpreter, server = chatting(answer, **{"auto_run": True, "workspace": str(workspace), **settings})
    server.repeat = True
    interpreter.llm.model = "gpt-4o"
    interpreter.computer.run("python", "x = 5")
    return interpreter, server


def numbered() -> Any:
    """Each request that begins a try adds another number to x, writes that to a file, and says it."""
    numbers = itertools.count(1)

    def answer(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return text(f"It is {last['content'].strip()}").then(usage(100, 10))
        code = f"y = x + {next(numbers) % 2}\nopen('a.txt', 'w').write(str(y))\nprint(y)"
        return tool_call("python", code).then(usage(100, 10))

    return answer


def test_the_best_is_kept_and_one_undo_takes_all_of_it_back(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = trying(chatting, tmp_path, numbered())
    best = interpreter.best_of(3, "Add it up")
    assert (sorted(best.scores), best.text) == ([1, 2, 2], "It is 6")
    assert "6" in interpreter.computer.run("python", "print(y)")[0]["content"]
    assert (tmp_path / "a.txt").read_text() == "6"
    assert [each["role"] for each in interpreter.messages] == ["user", "assistant", "computer", "assistant"]
    assert interpreter.llm.usage.requests == 6
    assert list(subagents_of(interpreter.agent).walk()) == []
    assert not list((our_folder() / "forks").glob("*/*"))  # the others left nothing
    interpreter.undo(blocks=True)
    interpreter.undo()
    assert "False" in interpreter.computer.run("python", "print('y' in globals())")[0]["content"]
    assert not (tmp_path / "a.txt").exists() and interpreter.messages == []


def test_a_function_or_a_command_judges(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = trying(chatting, tmp_path, numbered())
    assert interpreter.best_of(2, "Add", judge=lambda fork: -float(Path(fork.workspace, "a.txt").read_text())).text == (
        "It is 5"
    )
    assert interpreter.best_of(2, "Add", judge="!cat a.txt").text == "It is 6"


def test_variables_leave_the_sandbox_only_where_code_would_run_unasked_or_after_a_yes(
    chatting: Chatting, tmp_path: Path
) -> None:
    interpreter, _ = trying(chatting, tmp_path, numbered(), auto_run=False, mode="auto-in-sandbox")
    assert interpreter.best_of(1, "Add").lost == "The variables stayed in the sandbox."
    assert "False" in interpreter.computer.run("python", "print('y' in globals())")[0]["content"]


def test_if_all_fail_nothing_changes(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = trying(chatting, tmp_path, error(400, "no such thing"))
    with pytest.raises(ComputerError, match="All 2 tries failed"):
        interpreter.best_of(2, "Add")
    assert interpreter.messages == []


def test_an_estimate_sends_nothing(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, server = trying(chatting, tmp_path, numbered())
    tokens, dollars = estimate(interpreter, 4)
    assert tokens > 1000 and dollars is not None and dollars > 0
    assert server.requests == []


def test_another_model_tries_again_from_a_checkpoint_and_one_is_kept(chatting: Chatting, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return text("Done.")
        return tool_call("python", f"y = {body['model']!r}\nopen('a.txt', 'a').write(y)")

    interpreter, _ = trying(chatting, tmp_path, answer)
    interpreter.chat("Write it", display=False)
    turn = next(each for each in interpreter.checkpoints if each.kind == "turn")
    for keeps in (False, True):
        other = retry(interpreter, turn.id, "gpt-4o-mini")
        assert (tmp_path / "a.txt").read_text() == "gpt-4o"  # nothing changes here meanwhile
        other.attempt.wait_until_ready()
        assert "gpt-4o-mini" in str(other.second) and "gpt-4o-mini" not in str(other.first)
        if keeps:
            other.keep()
        other.drop()
    assert (tmp_path / "a.txt").read_text() == "gpt-4o-mini"
    assert "gpt-4o-mini" in interpreter.computer.run("python", "print(y)")[0]["content"]
    assert len(interpreter.messages) == 4
