"""The first screen, text typed before it, and the keys that stop a turn or change the mode."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from interpreter.frontends.terminal.chat import example_request
from interpreter.frontends.terminal.tty import notification
from model_server import ModelServer, stall, text, tool_call
from sampling import some
from terminal.person import ENTER, someone
from waiting import until

ESCAPE, SHIFT_TAB = "\x1b", "\x1b[Z"
MODEL = ("--model", "gpt-4o")


@pytest.mark.parametrize(
    ("files", "request_"),
    [
        ({"sales.csv": "id,region,amount\n7,north,3.5\n"}, "total amount per region in sales.csv"),
        ({"a.tsv": "city\tsun\nOslo\t7\n", "b.py": ""}, "total sun per city in a.tsv"),
        ({"odd.csv": "\x00\n"}, "what is in odd.csv?"),
        ({"empty.csv": ""}, "what is in empty.csv?"),
        ({"\x1b[2J.csv": "a,b\nx,1\n", "main.py": ""}, "explain what main.py does"),
        ({".hidden.csv": ""}, "plot a sine wave and save it as wave.png"),
        ({"notes": ""}, "which files here are the largest?"),
        ({}, "plot a sine wave and save it as wave.png"),
    ],
)
def test_the_example_fits_the_folder(tmp_path: Path, files: dict[str, str], request_: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    assert example_request(str(folder)) == request_


def test_an_unreadable_folder_gets_the_default_example(tmp_path: Path) -> None:
    assert example_request(str(tmp_path / "gone")) == "plot a sine wave and save it as wave.png"


def test_at_most_four_lines_come_before_the_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("region,amount\nnorth,3\n")
    with ModelServer([]) as server, someone(*MODEL, server=server) as person:
        person.at_prompt()
        before = person.rows[: next(at for at, row in enumerate(person.rows) if row.startswith(">"))]
        assert len(before) <= 4
        assert "Try: total amount per region in sales.csv" in before
        assert person.leaves() == 0


def test_a_line_typed_before_the_prompt_is_sent() -> None:
    with ModelServer([text("Good morning.")]) as server, someone(*MODEL, server=server) as person:
        person.types("early words" + ENTER)
        person.sees("Good morning.")
        assert person.rows[0].startswith("Open Interpreter")  # nothing was echoed above it
        assert person.screen.count("early words") == 1
        assert server.requests[0].body["messages"][-1]["content"] == "early words"
        assert person.leaves() == 0
        assert person.mode_is_restored


def test_an_unfinished_early_line_waits_in_the_prompt() -> None:
    with ModelServer([text("Good morning.")]) as server, someone(*MODEL, server=server) as person:
        person.types("early wo")
        person.sees("> early wo")
        assert person.screen.count("early wo") == 1
        person.types("rds" + ENTER)
        person.sees("Good morning.")
        assert server.requests[0].body["messages"][-1]["content"] == "early words"


def test_escape_stops_the_turn() -> None:
    slow = text("One.").then(stall(50)).then(text("Two."))
    with ModelServer([slow, text("Again.")]) as server, someone(*MODEL, server=server) as person:
        person.says("Hi")
        person.sees("One.")
        person.types("\x1b[A")  # an arrow key is not Esc
        person.types(ESCAPE)
        person.sees("Interrupted.")
        person.says("And now?")
        person.sees("Again.")
        assert "Two." not in person.screen
        assert person.leaves() == 0


def test_escape_goes_to_a_running_shell_program() -> None:
    code = "echo list''ening; read -r key; [ \"$key\" = $'\\e' ] && echo it was Es''c"
    server = ModelServer([tool_call("shell", code), text("Done.")])
    with server, someone(*MODEL, "-y", server=server) as person:
        person.says("Wait for a key")
        person.sees("listening")
        person.types(ESCAPE)
        time.sleep(0.5)  # long enough to be Esc, not Alt-Enter
        person.types(ENTER)
        person.sees("Done.")
        assert "it was Esc" in person.screen
        assert "Interrupted." not in person.screen


def test_shift_tab_cycles_the_modes_but_never_to_auto() -> None:
    with ModelServer([]) as server, someone(*MODEL, server=server) as person:
        person.at_prompt()
        for fact in (
            "plan, read-only sandbox",
            "auto-in-sandbox, sandbox workspace",
            "asks first ·",
            "plan, read",
        ):
            person.types(SHIFT_TAB)
            person.wait_until(lambda fact=fact: fact in person.emulator.screen.display[-1] + person.rows[-1], fact)
        assert "auto run" not in person.raw
        person.says("%mode")
        person.sees("Mode plan:")
        assert person.leaves() == 0


def test_shift_tab_leaves_auto() -> None:
    with ModelServer([]) as server, someone(*MODEL, "-y", server=server) as person:
        person.at_prompt()
        person.types(SHIFT_TAB)
        person.sees("asks first")
        person.says("%mode")
        person.sees("Mode ask:")


@pytest.mark.full
def test_vi_keys_edit_the_prompt() -> None:
    server = ModelServer([text("Yes.")])
    with server, someone(*MODEL, "--editing_mode", "vi", server=server) as person:
        person.at_prompt()
        person.types("one two")
        person.sees("> one two")
        person.types(ESCAPE)
        time.sleep(1)  # long enough to be Esc, not Alt
        person.types("0xiO")
        person.sees("> One two")
        person.types(ENTER)
        person.sees("Yes.")
        assert server.requests[0].body["messages"][-1]["content"] == "One two"


@pytest.mark.parametrize(
    ("after", "rings"), some(1, [("1", True), pytest.param("0", False, marks=pytest.mark.full), ("30", False)])
)
def test_the_bell_rings_after_a_long_turn(after: str, rings: bool) -> None:
    slow = text("One.").then(stall(1.5)).then(text(" Two."))
    with ModelServer([slow]) as server, someone(*MODEL, "--notify_after", after, server=server) as person:
        person.says("Hi")
        person.sees("Two.")
        assert person.leaves() == 0
        assert ("\x1b]2;Open Interpreter: finished\a\a" in person.raw) == rings


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;;{}\x1b\\"),
        ({"TERM_PROGRAM": "WezTerm"}, "\x1b]9;{}\x1b\\"),
        ({"TERM": "foot"}, "\x1b]777;notify;Open Interpreter;{}\x1b\\"),
        ({"TERM": "foot", "TMUX": "1"}, ""),
        ({"TERM": "xterm"}, ""),
    ],
)
def test_notification_sequences_depend_on_the_terminal(environment: dict[str, str], sequence: str) -> None:
    assert notification(environment) == sequence


def test_a_notification_goes_through_the_terminal_or_the_system(tmp_path: Path) -> None:
    program, said = tmp_path / "notify-send", tmp_path / "said"
    program.write_text(f'#!/bin/sh\necho "$@" > {said}\n')
    program.chmod(0o700)
    env = {"TERM_PROGRAM": "", "KITTY_WINDOW_ID": "", "TMUX": "", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    env["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    slow = text("One.").then(stall(1.5)).then(text(" Two."))
    options = [*MODEL, "--notify_after", "1", "--notify_by", "desktop"]
    with ModelServer([slow, slow]) as server:
        with someone(*options, server=server, env={**env, "TERM_PROGRAM": "WezTerm"}) as person:
            person.says("Hi")
            person.glimpses("\x1b]9;Open Interpreter: finished\x1b\\\a")
            assert person.leaves() == 0
        assert not said.exists()
        with someone(*options, server=server, env=env) as person:
            person.says("Hi")
            person.sees("Two.")
            until(said.exists, "a notification")
            assert "Open Interpreter: finished" in said.read_text()
            assert person.leaves() == 0


@pytest.mark.full
def test_the_bell_rings_for_a_question_after_a_long_wait() -> None:
    slow = stall(1.5).then(tool_call("python", "print(1)"))
    server = ModelServer([slow, text("Fine.")])
    with server, someone(*MODEL, "--notify_after", "1", server=server) as person:
        person.says("Hi")
        person.glimpses("\x1b]2;Open Interpreter: waiting for you\a\a")
