"""The approval question before a block runs: only a clear yes counts."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from shutil import which

import pytest

from interpreter.frontends.terminal.approval import OR_SAY, QUESTION
from interpreter.policy.files import user_file
from model_server import ModelServer, stall, text, tool_call, usage
from sampling import some
from terminal.person import CTRL_C, CTRL_D, ENTER, someone

pytestmark = pytest.mark.usefixtures("no_strays")
LEFT, CTRL_S = "\x1b[D", "\x13"
RAN = "it ran"
CODE = "print('it' + ' ran')"


def test_declining_returns_to_the_prompt() -> None:
    answers = ["n" + ENTER, "No" + ENTER, CTRL_C, CTRL_D]
    replies = [*[tool_call("python", CODE)] * len(answers), text("Fine.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        for number, answer in enumerate(answers, 1):
            person.says("run")
            person.sees(QUESTION, times=number)
            person.types(answer)
            person.at_prompt()
            assert len(server.requests) == number
        person.says("go on")
        person.sees("Fine.")
        assert RAN not in person.screen
        said = [message["content"] for message in server.requests[-1].messages]
        assert said.count("I have declined to run this code.") == len(answers)


@pytest.mark.full
def test_a_declined_block_is_counted_and_shown_as_declined_after_a_resume() -> None:
    with ModelServer([tool_call("python", CODE).then(usage(10, 5))]) as server:
        with someone(server=server) as person:
            person.says("run")
            person.answers(OR_SAY, "n")
            person.says("%tokens")
            person.sees("This session: 1 request, 10 input tokens, 5 output tokens")
            assert person.leaves() == 0
        with someone("--continue", server=server) as person:
            person.sees("Not run: you said no.")
            person.at_prompt()
            assert "I have declined" not in person.screen


@pytest.mark.full
def test_in_a_narrow_window_the_question_breaks_between_words() -> None:
    replies = [tool_call("python", CODE), text("Fine.")]
    with ModelServer(replies) as server, someone(server=server, columns=30) as person:
        person.says("run")
        person.answers(OR_SAY, "y")
        person.sees("Fine.")
        assert "Run? [y]es  [n]o  [p]review" in person.rows


@pytest.mark.full
def test_text_after_no_goes_to_the_model_at_once() -> None:
    answers = ["n use another way", "no, use another way"]
    replies = [tool_call("python", CODE), tool_call("python", CODE), text("Right away.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        for number, answer in enumerate(answers, 1):
            person.answers(QUESTION, answer, times=number)
        person.sees("Right away.")
        assert server.requests[-1].messages[-1]["content"].endswith("use another way")
        assert len(server.requests) == 3
        assert RAN not in person.screen


def test_a_sentence_at_the_approval_goes_to_the_model() -> None:
    replies = [tool_call("python", CODE), text("Right away.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.answers(OR_SAY, "use pandas instead")
        person.sees("Right away.")
        assert server.requests[-1].messages[-1]["content"].endswith("use pandas instead")
        assert RAN not in person.screen


def test_a_scan_is_not_offered_where_no_scanner_can_read_the_code() -> None:
    with ModelServer([tool_call("sql", "select 1"), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        person.sees(OR_SAY)
        assert "[s]can" not in person.screen
        person.answers(QUESTION, "n")
        assert person.leaves() == 0


def test_the_approval_lists_every_answer_and_accepts_arrow_keys() -> None:
    replies = [tool_call("python", "open('made.txt', 'w').close()"), text("Done.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("run")
        person.sees(OR_SAY)
        answers_row = next(row for row in person.rows if row.startswith(QUESTION))
        assert answers_row == "Run? [y]es  [n]o  [p]review  [e]dit  [s]can  [a]lways  [b]ox"
        effects = person.rows[person.rows.index(answers_row) - 1]
        assert f"\x1b[1m{effects.split()[0]}\x1b[0m" in person.raw  # in bold, not by colour
        person.types("es" + LEFT * 2 + "y" + ENTER)
        person.sees("Done.")
        assert Path("made.txt").exists()


@pytest.mark.parametrize("arguments", some(1, [[], ["--plain"]]))
def test_long_code_is_shown_in_full_with_a_count_of_hidden_lines(arguments: list[str]) -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(40))
    with ModelServer([tool_call("python", code)]) as server, someone(*arguments, server=server) as person:
        person.says("run")
        person.sees(OR_SAY)
        hidden = int(re.search(r"(\d+) lines of this code are above this screen", person.screen)[1])
        assert all(f"line_{number} = {number}" in person.rows for number in range(40))
        on_screen = person.rows[-24:]
        assert f"line_{hidden} = {hidden}" in on_screen and f"line_{hidden - 1} = {hidden - 1}" not in on_screen


@pytest.mark.full
def test_any_other_answer_asks_again() -> None:
    answers = ["", "maybe", "ny", "yy", "run", "yes please", "%undo 2"]
    with ModelServer([tool_call("python", CODE), text("Done.")]) as server, someone(server=server) as person:
        person.says("run")
        for number, answer in enumerate(answers, 1):
            person.answers(QUESTION, answer, times=number)
            person.sees("Type one of the letters in brackets", times=number)
        assert RAN not in person.screen
        person.answers(QUESTION, "y", times=len(answers) + 1)
        person.sees("Done.")
        assert person.rows.count(RAN) == 1


@pytest.mark.parametrize("paste", some(1, ["\x1b[200~y\ry\r\x1b[201~\r", "y\ry\rmore\r"]))
def test_a_paste_does_not_count_as_an_answer(paste: str) -> None:
    with ModelServer([tool_call("python", CODE)]) as server, someone(server=server) as person:
        person.says("run")
        person.sees(QUESTION)
        person.types(paste)
        person.sees(QUESTION, times=2)
        assert RAN not in person.screen


def test_text_typed_before_the_question_does_not_answer_it() -> None:
    go_on = threading.Event()
    reply = text("Wait. ").then(stall(go_on)).then(tool_call("python", CODE))
    with ModelServer([reply, text("Second.")]) as server, someone(server=server) as person:
        person.says("run")
        person.sees("Wait.")
        person.types("y" + ENTER + "y")
        person.sees("› y ⏎ y")
        go_on.set()
        person.sees(QUESTION)
        person.types("n" + ENTER)
        person.sees("> y")
        person.sees("Second.")
        assert RAN not in person.screen
        assert server.requests[-1].messages[-1]["content"] == "y"


def test_e_opens_the_editor_and_asks_about_the_edited_code(tmp_path: Path) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\nsed -i s/ran/walked/ "$1"\n')
    editor.chmod(0o755)
    env = {"EDITOR": f"'{editor}'"}
    with (
        ModelServer([tool_call("python", CODE), text("Done.")]) as server,
        someone(server=server, env=env) as person,
    ):
        person.says("run")
        person.answers(QUESTION, "e")
        person.sees(QUESTION, times=2)
        assert "it walked" not in person.rows
        person.types("y" + ENTER)
        person.sees("Done.")
        assert "it walked" in person.rows
        assert "' walked'" in json.dumps(server.requests[-1].messages)


def test_the_editor_has_the_terminal_to_itself(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    asks = "printf 'Which'; printf ' word? '"  # also if Ctrl-C comes before it reads
    script = ["#!/bin/sh", f'trap "{asks}" INT', asks, "until read word; do :; done", 'sed -i "s/ran/$word/" "$1"', ""]
    editor.write_text("\n".join(script))
    editor.chmod(0o755)
    env = {"EDITOR": str(editor)}
    with (
        ModelServer([tool_call("python", CODE), text("Done.")]) as server,
        someone(server=server, env=env) as person,
    ):
        person.says("run")
        person.answers(QUESTION, "e")
        person.sees("Which word?")
        person.types(CTRL_C)  # goes to the editor, as in vim
        person.sees("Which word?", times=2)
        before = len(person.raw)
        person.types("walked" + ENTER)
        person.sees(QUESTION, times=2)
        person.types("y" + ENTER)
        person.sees("Done.")
        assert "it walked" in person.rows
        assert person.raw[before:].lstrip().startswith("walked")  # echoed by the terminal; we drew nothing
        assert "Interrupted" not in person.screen
        assert person.leaves() == 0


@pytest.mark.parametrize(
    ("editor", "says"),
    some(
        1,
        [
            ("/nowhere/editor", "Can't find the editor /nowhere/editor. Set EDITOR to one that is installed."),
            ("false", "Not edited: false exited with code 1."),
            pytest.param("sh -c 'kill -9 $$'", "Not edited: sh was stopped by signal 9.", marks=pytest.mark.full),
            ("true", "The code is unchanged."),
            pytest.param("sh -c 'echo >$0'", "The edited code is empty, so it was discarded.", marks=pytest.mark.full),
            pytest.param("vim '+normal x' +q!", "The code is unchanged.", marks=pytest.mark.full),
        ],
    ),
)
def test_an_editor_that_changes_nothing_returns_to_the_question(editor: str, says: str) -> None:
    if editor.startswith("vim") and not which("vim"):
        pytest.skip("no vim here")
    env = {"EDITOR": editor}
    with ModelServer([tool_call("python", CODE)]) as server, someone(server=server, env=env) as person:
        person.says("run")
        person.answers(OR_SAY, "e")
        person.sees(says)
        person.wait_until(lambda: OR_SAY in person.screen.partition(says)[2], "the question again")
        person.types("n" + ENTER)
        assert person.leaves() == 0
        assert RAN not in person.screen


@pytest.mark.full
def test_edited_code_always_needs_approval_again(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "echo it walked" > "$1"\n')
    editor.chmod(0o755)
    user_file().parent.mkdir(parents=True)
    user_file().write_text("rules:\n- decision: ask\n  command: touch\n")
    with (
        ModelServer([tool_call("shell", "touch made"), text("Done.")]) as server,
        someone("--mode", "auto", server=server, env={"EDITOR": str(editor)}) as person,
    ):
        person.says("run")
        person.answers(OR_SAY, "e")
        person.sees(OR_SAY, times=2)
        assert "it walked" not in person.rows
        person.types("y" + ENTER)
        person.sees("Done.")
        assert "it walked" in person.rows


NO_EDITOR = {"EDITOR": "", "VISUAL": ""}


def test_without_an_editor_the_code_is_edited_in_the_terminal() -> None:
    code = f"first = '\u202e'\n{CODE}"
    replies = [tool_call("python", code), text("Done.")]
    with ModelServer(replies) as server, someone(server=server, env=NO_EDITOR) as person:
        person.says("run")
        person.answers(OR_SAY, "e")
        person.sees("Ctrl-S when done")
        person.sees("first = '<U+202E>'", times=2)
        person.sees(CODE, times=2)
        person.types("x" + CTRL_C)
        person.sees("The code is unchanged.")
        person.answers(OR_SAY, "e", times=2)
        person.sees(CODE, times=3)
        person.types(ENTER + "print('and walked')" + CTRL_S)
        person.sees(OR_SAY, times=3)
        assert "and walked" not in person.rows
        person.types("y" + ENTER)
        person.sees("Done.")
        assert "\u202e" not in person.raw
        assert [row for row in person.rows if row in (RAN, "and walked")] == [RAN, "and walked"]


@pytest.mark.full
def test_a_plain_terminal_without_an_editor_says_what_to_set() -> None:
    with ModelServer([tool_call("python", CODE)]) as server, someone("--plain", server=server, env=NO_EDITOR) as person:
        person.says("run")
        person.answers(OR_SAY, "e")
        person.sees("Set EDITOR to your editor")
        person.answers(OR_SAY, "n", times=2)
        assert person.leaves() == 0
        assert RAN not in person.screen
