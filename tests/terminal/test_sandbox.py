"""Modes and sandboxes at the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.errors import SandboxUnavailableError
from interpreter.frontends.terminal.approval import QUESTION
from interpreter.sandbox import bubblewrap
from model_server import ModelServer, text, tool_call
from terminal.person import someone

pytestmark = pytest.mark.usefixtures("no_strays")


@pytest.fixture
def bubblewrap_works() -> None:
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("bubblewrap_works")
def test_b_runs_this_block_and_the_next_in_a_sandbox(home: Path) -> None:
    write = "open({path!r}, 'w').write('x')"
    first = tool_call("python", write.format(path=str(home / "there")))
    second = tool_call("python", write.format(path="here") + "; print('it' + ' ran')")
    replies = [tool_call("python", "print('out' + 'side')"), first, second, text("Done.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "y")
        person.sees("outside")
        person.answers(QUESTION, "?", times=2)
        person.sees("run this and later code in a sandbox")
        person.answers(QUESTION, "b", times=3)
        person.sees("The sandbox has changed")
        person.answers(QUESTION, "b", times=4)  # there is nothing more to turn on
        person.answers(QUESTION, "y", times=5)
        assert person.screen.count("[p]review  [e]dit") == 3  # not in a sandbox
        person.sees("it ran")
        person.sees("Done.")
        person.at_prompt()
        person.sees("asks first, sandbox workspace")
        assert person.leaves() == 0
    assert Path("here").exists() and not (home / "there").exists()


@pytest.mark.full
def test_b_asks_again_if_no_sandbox_is_possible(home: Path) -> None:
    with (
        ModelServer([tool_call("python", "print('it' + ' ran')"), text("Done.")]) as server,
        someone("--workspace", str(home), server=server) as person,
    ):
        person.says("run")
        person.answers(QUESTION, "b")
        person.sees("a sandbox would not protect anything")
        person.answers(QUESTION, "y", times=2)
        person.sees("it ran")
        person.sees("Done.")
        assert person.leaves() == 0


@pytest.mark.usefixtures("bubblewrap_works")
def test_the_sandbox_and_the_mode_are_shown_and_changed() -> None:
    with ModelServer([]) as server, someone(server=server, columns=120) as person:
        person.says("%sandbox")
        person.sees("The sandbox is off")
        person.says("%sandbox read-only")
        person.sees("it can't change anything")
        person.says("!touch made; echo so")
        person.sees("Read-only file system")
        person.says("%sandbox strong")
        person.sees("not 'strong'")
        person.says("%mode")
        person.sees("Mode ask:")
        person.says("%mode auto-in-sandbox")
        person.sees("code in a sandbox runs without asking")
        person.sees("auto-in-sandbox, sandbox read-only")
        person.says("%mode wild")
        person.sees("not 'wild'")
        person.says("%sandbox off")
        person.sees("The sandbox is off", times=2)
        assert person.leaves() == 0
    assert not Path("made").exists()
