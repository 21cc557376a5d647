"""Blocks that the user runs at the prompt, in the sessions that the model uses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interpreter.app.own_blocks import is_unfinished, python_of
from model_server import ModelServer, text, tool_call
from terminal.person import ALT_ENTER, CTRL_C, ENTER, someone

pytestmark = pytest.mark.usefixtures("no_strays")


def test_the_model_sees_user_blocks_and_shares_their_state() -> None:
    replies = [tool_call("python", "print('it is', answer + 1)"), text("Yes?")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says(">>> answer = 41; answer")
        person.says("!export PLACE=here; echo from $PLACE")
        person.sees("from here")
        person.says("hello")
        person.sees("it is 42")
        person.sees("Yes?")
        sent = json.dumps(server.requests[0].messages)
        assert "I ran this myself:" in sent
        assert "answer = 41; answer" in sent and "Its output:\\n41" in sent
        assert "Its output:\\nfrom here" in sent
        person.says("%undo")
        person.says("%undo")
        person.sees("user code: export PLACE=here")
        assert person.leaves() == 0


def test_text_typed_while_python_runs_is_sent_afterwards() -> None:
    with ModelServer([text("Hi.")]) as server, someone(server=server) as person:
        person.says(">>> import time; print('begun', flush=True); time.sleep(1.5)")
        person.sees("begun", times=2)
        person.types("hello there" + ENTER)
        person.sees("Hi.")
        assert "hello there" in json.dumps(server.requests[0].messages[-1])
        assert person.leaves() == 0


@pytest.mark.full
def test_see_off_hides_user_blocks_from_the_model() -> None:
    with ModelServer([text("Yes?")]) as server, someone(server=server) as person:
        person.says("%see off")
        person.sees("doesn't see")
        person.says("!echo one$((1 + 1))three")
        person.sees("one2three")
        person.says(">>> 'se' + 'cret'")
        person.sees("'secret'")
        person.says("%% echo four$((2 + 3))six")
        person.sees("four5six")
        person.says("hello")
        person.sees("Yes?")
        sent = json.dumps(server.requests[0].messages)
        assert not any(word in sent for word in ("one2three", "secret", "four5six", "I ran"))
        assert person.leaves() == 0


@pytest.mark.full
def test_python_blocks_can_have_several_lines() -> None:
    with ModelServer() as server, someone(server=server) as person:
        person.at_prompt()
        person.types(">>> for n in range(3):" + ENTER)
        person.wait_until(lambda: person.emulator.row == "", "a second line")
        person.types("    print('line', n)" + ENTER)
        person.types(ENTER)
        person.sees("line 2")
        person.at_prompt()
        person.types(">>> a = 20" + ALT_ENTER + "a + 3" + ENTER)
        person.sees("\n23")
        assert person.leaves() == 0


def test_the_prompt_still_works_after_an_error_and_an_interrupt() -> None:
    with ModelServer() as server, someone(server=server) as person:
        person.says(">>> 1/0")
        person.sees("ZeroDivisionError")
        person.says("!echo begun; sleep 60")
        person.sees("begun", times=2)
        person.types("\x03")
        person.sees("Interrupted")
        person.says("!")
        person.sees("for example !ls")
        assert person.leaves() == 0


@pytest.mark.full
def test_files_run_in_the_session_of_their_language(tmp_path: Path) -> None:
    (tmp_path / "prepare.py").write_text("prepared = 6 * 7\nprint('ran')\n")
    (tmp_path / "place.sh").write_text("echo in $(basename $PWD)\n")
    (tmp_path / "notes.xyz").write_text("")
    (tmp_path / "inner").mkdir()
    with ModelServer() as server, someone(server=server) as person:
        person.says(f"%cd {tmp_path}")
        person.sees("All sessions now work in")
        person.says("%run prepare.py")
        person.says(">>> prepared")
        person.sees("42")
        person.says("%run place.sh")
        person.sees(f"in {tmp_path.name}")
        person.says("%cd inner")
        person.says(">>> import os; os.path.basename(os.getcwd())")
        person.sees("'inner'")
        person.says("%run nothing.py")
        person.sees("Could not read")
        person.says("%run ../notes.xyz")
        person.sees("No language runs files")
        person.says("%cd nowhere")
        person.sees("There is no folder")
        person.says("%exit")
        assert person.ends() == 0


@pytest.mark.full
def test_plain_mode_accepts_several_lines_too() -> None:
    with ModelServer() as server, someone("--plain", server=server) as person:
        person.at_prompt()
        person.types(">>> if True:" + ENTER + "    print(6 * 7)" + ENTER + ENTER)
        person.sees("42")
        person.at_prompt()
        person.types("%exit" + ENTER)
        assert person.ends() == 0


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (">>> 1 + 1", "1 + 1"),
        (">>>x", "x"),
        (">>> if a:\n    b", "if a:\n    b"),
        (">>> if a:\n...     b\n...\n>>> c", "if a:\n    b\n\nc"),
        (">>>", ""),
    ],
)
def test_prompt_markers_are_removed_from_the_code(typed: str, code: str) -> None:
    assert python_of(typed) == code


@pytest.mark.parametrize(
    ("typed", "unfinished"),
    [
        (">>> 1", False),
        (">>> (1,", True),
        (">>> def f():", True),
        (">>> def f():\n    return 1", True),
        (">>> def f():\n    return 1\n", False),
        (">>> x = = 1", False),
        (">>> !ls", False),
        (">>> await x", False),
        (">>>", False),
        ("hello (", False),
    ],
)
def test_unfinished_input_is_recognised(typed: str, unfinished: bool) -> None:
    assert is_unfinished(typed) is unfinished


@pytest.mark.full
def test_ctrl_c_ends_only_the_running_block() -> None:
    with ModelServer([]) as server, someone(server=server) as person:
        person.says("!echo beg''un; sleep 1000")
        person.sees("begun")
        person.types(CTRL_C)
        person.sees("Interrupted after")
        person.says("!sleep 0.1; echo af''ter")
        person.sees("after")
        person.says(">>> 'a third one'.upper()")
        person.sees("A THIRD ONE")
        assert person.screen.count("Interrupted") == 1
