"""`a` at the approval saves a rule, and a project's rules apply once they are trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.frontends.terminal.approval import QUESTION, SAVE_RULE, TRUST, WIDER
from interpreter.policy.files import user_file
from model_server import ModelServer, text, tool_call
from sampling import some
from terminal.person import someone

pytestmark = pytest.mark.usefixtures("no_strays")


def test_a_rule_is_shown_saved_and_applied_at_once() -> None:
    replies = [tool_call("shell", "echo it ran; echo so"), tool_call("shell", "echo it ran again"), text("Done.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "a")
        person.sees("Always allow the command echo. This applies when you work in")
        assert "decision: allow" not in person.screen
        person.answers(SAVE_RULE, "r")
        person.sees("decision: allow")
        person.answers(SAVE_RULE, "n", times=2)
        person.sees(QUESTION, times=2)
        assert not Path(user_file()).exists()
        person.types("a\r")
        person.answers(SAVE_RULE, "y", times=3)
        person.sees("Done.")
        assert "it ran again" in person.rows
        assert person.screen.count(QUESTION) == 2
        assert person.leaves() == 0
    assert "command: echo" in Path(user_file()).read_text()


def test_a_wider_rule_is_the_second_choice() -> None:
    with (
        ModelServer([tool_call("python", "open('a', 'w')"), text("Done.")]) as server,
        someone(server=server) as person,
    ):
        person.says("run")
        person.answers(QUESTION, "a")
        person.sees("Always allow writing a, in python code.")
        person.answers(f"{SAVE_RULE}{WIDER}", "w")
        person.sees("Always allow writing files in this folder, in python code.")
        person.answers(SAVE_RULE, "y", times=2)
        person.sees("Done.")
        assert person.leaves() == 0
    assert "{workspace}/*" in Path(user_file()).read_text()


@pytest.mark.full
def test_code_with_unknown_effects_gets_no_rule() -> None:
    with ModelServer([tool_call("python", "eval(input())"), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        person.answers(QUESTION, "a")
        person.sees("no rule can safely allow it")
        person.answers(QUESTION, "n", times=2)
        assert person.leaves() == 0
    assert not Path(user_file()).exists()


@pytest.mark.parametrize("answer", some(1, ["y", "n"]))
def test_trust_in_a_projects_rules_is_asked_for_once(answer: str) -> None:
    Path(".interpreter").mkdir()
    Path(".interpreter/policy.yaml").write_text("rules:\n- decision: deny\n  command: touch\n  reason: not here\n")
    replies = [tool_call("shell", "touch made"), text("One."), tool_call("shell", "touch made; echo x"), text("Two.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.answers(TRUST, answer)
        person.sees("not here")
        person.answers(QUESTION, "y")
        person.sees("One.")
        assert Path("made").exists() == (answer == "n")
        person.says("again")
        if answer == "n":
            person.answers(QUESTION, "y", times=2)
        person.sees("Two.")
        assert person.screen.count(TRUST) == 1
        assert person.leaves() == 0


def test_a_mistake_in_the_rules_is_reported_at_the_start() -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text("rules:\n- decision: allw\n  command: touch\n")
    with (
        ModelServer([tool_call("shell", "touch made"), text("Done.")]) as server,
        someone(server=server, columns=200) as person,
    ):
        person.sees("policy.yaml:2: 'allw' is not valid here. Did you mean allow?")
        person.sees("No code runs until this is fixed.")
        user_file().write_text("rules:\n- decision: allow\n  command: touch\n")
        person.says("run")
        person.sees("Done.")
        assert Path("made").exists() and "allw" not in person.screen.split("run")[-1]
        assert person.leaves() == 0
