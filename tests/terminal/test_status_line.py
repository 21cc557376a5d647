"""The status line under the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter import OpenInterpreter
from interpreter.frontends.terminal.prompt import (
    fitted,
    status_facts,
    status_line,
)
from interpreter.frontends.terminal.render.ansi import cells
from model_server import ModelServer, text, usage
from sampling import some
from terminal.person import someone


def test_it_shows_the_model_safety_context_cost_and_folder(home: Path) -> None:
    (home / "work").mkdir()
    interpreter = OpenInterpreter(workspace=str(home / "work"))
    assert status_facts(interpreter) == ["gpt-4o", "asks first", "~/work"]
    with ModelServer([text("Hi").then(usage(20_000, 1000))]) as server:
        interpreter.llm.api_base, interpreter.llm.api_key = server.base_url, "key"
        interpreter.chat("Hello", display=False)
    assert status_facts(interpreter) == ["gpt-4o", "asks first", "20k of 128k (15%)", "$0.0600", "~/work"]
    interpreter.auto_run, interpreter.safe_mode, interpreter.offline = True, "ask", True
    assert status_facts(interpreter)[1] == "auto run, safe mode ask, offline"
    interpreter.reset()
    assert status_facts(interpreter)[2:] == ["~/work"]


def test_the_context_size_is_estimated_again_after_an_undo() -> None:
    interpreter = OpenInterpreter()
    with ModelServer([text("Hi").then(usage(20_000, 1000))]) as server:
        interpreter.llm.api_base, interpreter.llm.api_key = server.base_url, "key"
        interpreter.messages = [{"role": "user", "type": "message", "content": "x" * 4000}]
        interpreter.chat("Hello", display=False)
    used, window = interpreter.llm.context_used
    assert (20_000 <= used < 20_100, window) == (True, 128_000)
    del interpreter.messages[1:]
    assert 1000 < interpreter.llm.context_used[0] < 2000


@given(st.lists(st.text("abc漢 /", min_size=1, max_size=20), max_size=6), st.integers(1, 60))
def test_a_narrow_window_drops_parts_from_the_right(parts: list[str], width: int) -> None:
    line = fitted(parts, width)
    assert cells(line) <= width
    kept = [part for number, part in enumerate(parts) if line.startswith(" · ".join(parts[: number + 1]))]
    assert line == " · ".join(kept) or len(kept) == 0


def test_a_folder_that_does_not_fit_is_shortened_to_its_name() -> None:
    parts = ["gpt-4o", "asks first", "~/.config/open-interpreter/forks/4cbdb4b3/project"]
    assert status_line(parts, 79) == " · ".join(parts)
    assert status_line(parts, 40) == "gpt-4o · asks first · .../project"
    assert status_line(parts, 20) == "gpt-4o · asks first"


def test_plan_mode_always_shows_a_read_only_sandbox() -> None:
    interpreter = OpenInterpreter(sandbox="workspace")
    assert status_facts(interpreter)[1] == "asks first, sandbox workspace"
    interpreter.mode = "plan"
    assert status_facts(interpreter)[1] == "plan, read-only sandbox"


@pytest.mark.usefixtures("no_strays")
@pytest.mark.parametrize("columns", some(1, [40, 80, 200]))
def test_the_status_line_is_under_the_prompt(columns: int) -> None:
    with ModelServer([text("Hi").then(usage(500, 10))]) as server, someone(server=server, columns=columns) as person:
        person.at_prompt()
        person.sees("gpt-4o · asks first")
        below = person.emulator.visible[person.emulator.cursor[1] + 1]
        assert below.startswith("gpt-4o · asks first")
        assert person.rows[-1] == below
        person.says("Hello")
        person.sees("Hi")
        person.at_prompt()
        person.sees("of 128k (0%)")
        person.says("%auto_run")
        person.sees("auto run · 5")
        assert person.screen.count("gpt-4o ·") == 1
        assert person.leaves() == 0
        assert "gpt-4o ·" not in person.screen


@pytest.mark.usefixtures("no_strays")
@pytest.mark.parametrize("arguments", some(1, [["--no_status_line"], ["--plain"]]))
def test_the_status_line_can_be_turned_off(arguments: list[str]) -> None:
    with ModelServer([text("Hi")]) as server, someone(*arguments, server=server) as person:
        person.says("Hello")
        person.sees("Hi")
        person.at_prompt()
        assert "asks first" not in person.screen
        assert person.leaves() == 0
