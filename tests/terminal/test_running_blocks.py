"""While a block runs: its keys, its questions, Ctrl-C, Ctrl-B, and endless output."""

from __future__ import annotations

import json
import signal

import pytest

from model_server import ModelServer, stall, text, tool_call
from sampling import some
from terminal.person import CTRL_B, CTRL_C, ENTER, someone

pytestmark = pytest.mark.usefixtures("no_strays")


def test_ctrl_c_during_a_reply_keeps_its_text() -> None:
    reply = text("Once upon a time").then(stall())
    with ModelServer([reply, text("Again.")]) as server, someone(server=server) as person:
        person.says("a story")
        person.sees("Once upon a time")
        person.types(CTRL_C)
        person.sees("Interrupted.")
        person.says("again")
        person.sees("Again.")
        assert "Once upon a time" in json.dumps(server.requests[-1].messages)
        assert "Traceback" not in person.screen
        assert person.leaves() == 0


def test_ctrl_c_during_a_block_ends_it_and_keeps_its_session() -> None:
    code = "x = 5\nprint('be' + 'gun', flush=True)\nwhile True: pass"
    replies = [tool_call("python", code), tool_call("python", "x + 1"), text("Six.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("loop")
        person.sees("begun")
        person.types(CTRL_C)
        person.sees("Interrupted after")
        person.says("go on")
        person.sees("Six.")
        assert "6" in person.rows
        assert person.leaves() == 0
        assert person.mode_is_restored


@pytest.mark.full
def test_a_second_ctrl_c_ends_a_stubborn_block() -> None:
    code = "import signal\nsignal.signal(2, signal.SIG_IGN)\nprint('stub' + 'born')\nwhile True: pass"
    with (
        ModelServer([tool_call("python", code), text("Fresh.")]) as server,
        someone("-y", server=server) as person,
    ):
        person.says("loop")
        person.sees("stubborn")
        person.types(CTRL_C)
        person.glimpses("stopping")
        person.types(CTRL_C)
        person.sees("Interrupted")
        person.says("still there?")
        person.sees("Fresh.")
        assert person.leaves() == 0


def test_input_is_asked_for_in_the_output() -> None:
    code = "print('Well:', end=' ')\nname = input('Your' + ' name? ')\nprint('Hello', name)"
    with (
        ModelServer([tool_call("python", code), text("Met.")]) as server,
        someone("-y", server=server) as person,
    ):
        person.says("greet me")
        person.answers("Well: Your name?", "Ada")
        person.sees("Hello Ada")
        person.sees("Met.")
        assert "Well: Your name? Ada" in person.rows
        assert person.leaves() == 0


@pytest.mark.full
def test_ctrl_c_instead_of_an_answer_ends_the_turn() -> None:
    code = "input('Your' + ' name? ')\nprint('went' + ' on')"
    with ModelServer([tool_call("python", code), text("Next.")]) as server, someone("-y", server=server) as person:
        person.says("greet me")
        person.sees("Your name?")
        person.types(CTRL_C)
        person.says("another thing")
        person.sees("Next.")
        assert "went on" not in person.screen
        assert "Interrupted after" in person.screen
        assert "EOFError" not in person.screen  # the user was there, and refused
        assert len(server.requests) == 2
        assert person.leaves() == 0


def test_a_password_is_not_shown() -> None:
    code = "import getpass\nword = getpass.getpass('Pass' + 'word: ')\nprint(len(word))"
    with (
        ModelServer([tool_call("python", code), text("Kept.")]) as server,
        someone("-y", server=server) as person,
    ):
        person.says("log in")
        person.answers("Password:", "sesame")
        person.sees("Kept.")
        assert "6" in person.rows
        assert "sesame" not in person.raw
        assert person.leaves() == 0


def test_keys_go_to_a_shell_block() -> None:
    code = "read -p 'Your'' name? ' name; echo Hello $name; exit 3"
    with (
        ModelServer([tool_call("shell", code), text("Met.")]) as server,
        someone("-y", server=server) as person,
    ):
        person.says("greet me")
        person.sees("Your name?")
        person.types("Ada" + ENTER)
        person.sees("Hello Ada")
        person.sees("Exit code 3.")
        person.sees("Met.")
        assert "Your name? Ada" in person.rows
        assert person.leaves() == 0


def test_keys_during_a_python_block_go_to_the_next_prompt() -> None:
    code = "import time\nprint('be' + 'gun', flush=True)\nwhile True: time.sleep(0.01)"
    with ModelServer([tool_call("python", code)]) as server, someone("-y", server=server) as person:
        person.says("loop")
        person.sees("begun")
        person.types("next")
        person.sees("› next")
        person.types(CTRL_C)
        person.sees("> next")
        person.types(ENTER)
        person.sees("the script ran out")
        assert server.requests[-1].messages[-1]["content"] == "next"


def test_ctrl_b_moves_a_block_to_the_background() -> None:
    code = "import time\nprint('ser' + 'ving', flush=True)\nwhile True: time.sleep(0.01)"
    replies = [tool_call("python", code), text("It goes on.")]
    with ModelServer(replies) as server, someone("-y", server=server) as person:
        person.says("serve")
        person.sees("serving")
        person.types(CTRL_B)
        person.sees("Moved to the background.")
        person.sees("It goes on.")
        assert person.leaves() == 0


def test_a_long_output_is_folded() -> None:
    code = "for n in range(5000): print('row', n)"
    with (
        ModelServer([tool_call("python", code), text("Many.")]) as server,
        someone("-y", server=server) as person,
    ):
        person.says("count")
        person.sees("Many.")
        hint = next(row for row in person.rows if "more lines" in row)
        assert hint.startswith("… 4,970 more lines, all in /")
        assert "row 0" in person.rows
        assert "row 4999" in person.rows
        assert "row 2500" not in person.rows
        assert person.leaves() == 0


@pytest.mark.parametrize("number", some(1, [signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_during_a_block_leaves_no_processes_behind(number: int) -> None:
    code = "import subprocess\nprint('be' + 'gun', flush=True)\nsubprocess.run(['sleep', '1000'])"
    with ModelServer([tool_call("python", code)]) as server, someone("-y", server=server) as person:
        person.says("sleep")
        person.sees("begun")
        person.signals(number)
        assert person.ends() == 128 + number
        assert person.mode_is_restored
