"""Colours follow the environment: NO_COLOR, CLICOLOR and CLICOLOR_FORCE."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from model_replies import text, tool_call
from model_server import ModelServer
from sampling import some
from terminal.person import PROGRAM, someone

RED = "print('\\x1b[31mred\\x1b[0m')"


@pytest.mark.parametrize(
    ("flags", "env", "colored"),
    some(
        2,
        [
            pytest.param([], {}, False, marks=pytest.mark.full),
            ([], {"CLICOLOR_FORCE": "1"}, True),
            pytest.param([], {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False, marks=pytest.mark.full),
            (["--plain"], {"CLICOLOR_FORCE": "1"}, False),
        ],
    ),
)
def test_clicolor_force_keeps_a_programs_colours_in_a_pipe(
    flags: list[str], env: dict[str, str], colored: bool
) -> None:
    with ModelServer([tool_call("python", RED), text("Done.")]) as server:
        where = ["--api_base", server.base_url, "--api_key", "key"]
        command = [sys.executable, "-c", PROGRAM, *where, "-y", *flags]
        done = subprocess.run(
            command, input="go", env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=True
        )
    assert ("\x1b[31mred" in done.stdout) is colored
    assert "red" in done.stdout


@pytest.mark.parametrize("variable", some(1, [{"NO_COLOR": "1"}, {"CLICOLOR": "0"}]))
def test_no_color_and_clicolor_turn_off_colours(variable: dict[str, str]) -> None:
    replies = [text("A `word`.").then(tool_call("python", RED)), text("Done.")]
    with ModelServer(replies) as server, someone("-y", server=server, env=variable) as person:
        person.says("go")
        person.sees("Done.")
        assert person.leaves() == 0
    shown = person.raw[person.raw.index("word") :]
    assert "\x1b[31m" not in shown and "\x1b[36m" not in shown
