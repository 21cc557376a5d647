"""`%agent`, `%agents`, `%best` and `%retry` at the prompt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from interpreter.agents.commands import side_by_side
from model_server import ModelServer, stall, text, tool_call
from terminal.person import someone

pytestmark = [
    pytest.mark.usefixtures("no_strays"),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of these tests is that of Linux"),
]


def worker(body: dict[str, Any]) -> Any:
    last, asked = body["messages"][-1], str(body["messages"])
    if last["role"] == "tool":
        return text(f"Written by {body['model']}.")
    if "sleep forever" in asked:
        return stall(None)
    return tool_call("python", "open('made.txt', 'a').write('new\\n')")


def at_prompt(server: ModelServer, workspace: Path) -> Any:
    return someone("--model", "gpt-4o", "-y", "--workspace", str(workspace), server=server)


def test_a_sub_agent_is_followed_and_its_changes_are_accepted_and_undone(tmp_path: Path) -> None:
    with ModelServer([worker], repeat=True) as server, at_prompt(server, tmp_path) as person:
        person.says("%agent write made.txt")
        person.sees("Written by gpt-4o.")
        person.sees("%agents accept 1 brings it here")
        assert not (tmp_path / "made.txt").exists()
        person.says("%agents diff 1")
        person.sees("+new")
        person.says("%agents accept 1")
        person.sees("Changed made.txt.")
        assert (tmp_path / "made.txt").read_text() == "new\n"
        person.says("%undo --block -y")
        person.at_prompt()
        person.wait_until(lambda: not (tmp_path / "made.txt").exists(), "the undo")
        person.says("%agents")
        person.sees("1 done")


def test_ctrl_c_stops_one_that_hangs(tmp_path: Path) -> None:
    with ModelServer([worker], repeat=True) as server, at_prompt(server, tmp_path) as person:
        person.says("%agent sleep forever")
        person.sees("1 sleep forever · running")
        person.wait_until(lambda: len(server.requests) > 0, "the request")
        person.types("\x03")
        person.sees("It was stopped: by you.")
        person.at_prompt()


def test_another_model_tries_again_and_the_user_keeps_one(tmp_path: Path) -> None:
    with ModelServer([worker], repeat=True) as server, at_prompt(server, tmp_path) as person:
        person.says("write it")
        person.sees("Written by gpt-4o.")
        person.at_prompt()
        person.says("%retry 1 --model gpt-4o-mini")
        person.answers("Keep 1 or 2?", "2")
        person.sees("Kept 2.")
        assert "Written by gpt-4o-mini." in person.screen
        person.says("%best 2 write it again")
        person.answers("Start? (y/n)", "y")
        person.sees("Kept try 1. Scores: 2, 2.")
    assert (tmp_path / "made.txt").read_text() == "new\nnew\n"


def test_two_texts_are_put_side_by_side() -> None:
    rows = side_by_side(["one", "a longer line"], ["two"], 23)
    assert rows == ["one        | two", "a longer   |", "line       |"]
