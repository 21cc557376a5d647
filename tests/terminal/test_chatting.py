"""A chat in a real pseudo-terminal with a scripted model."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest

from model_replies import RawReply, Stall
from model_server import ModelServer, error, reasoning, stall, text, tool_call
from sampling import some
from terminal.person import ALT_ENTER, CTRL_C, CTRL_J, ENTER, PROGRAM, Person, someone

pytestmark = pytest.mark.usefixtures("no_strays")
CTRL_Z = "\x1a"
QUESTION = "Run? [y]es  [n]o"


def last_said(server: ModelServer) -> str:
    return str(server.requests[-1].messages[-1]["content"])


def test_a_whole_conversation_with_two_approved_blocks() -> None:
    replies = [
        reasoning("Let me see.")
        .then(text("I will multiply.\n\n", split=3))
        .then(tool_call("python", "x = 6\nprint(x * 7)", split=4)),
        text("It is **42**.", split=2),
        tool_call("python", "x + 1"),
        text("Still there."),
    ]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("What is six times seven?")
        person.answers(QUESTION, "y")
        person.sees("It is 42.")
        person.says("And x plus one?")
        person.answers(QUESTION, "y", times=2)
        person.sees("Still there.")
        person.at_prompt()
        begun = person.rows.index("> What is six times seven?")
        assert person.rows[begun : begun + 20] == [
            "> What is six times seven?",
            "",
            "Let me see.",
            "",
            "I will multiply.",
            "",
            "── python " + "─" * 62,
            "x = 6",
            "print(x * 7)",
            "─" * 72,
            "Changes no files",
            f"{QUESTION}  [p]review  [e]dit  [s]can  [a]lways  [b]ox",
            "Or say what to change: y",
            "42",
            "",
            "It is 42.",
            "",
            "> And x plus one?",
            "",
            "── python " + "─" * 62,
        ]
        assert "7" in person.rows
        assert person.leaves() == 0
        assert person.mode_is_restored


@pytest.mark.parametrize(("columns", "lines"), some(1, [(20, 12), (200, 50)]))
def test_text_is_complete_at_other_terminal_sizes(columns: int, lines: int) -> None:
    words = [f"word{number}" for number in range(100)]
    with (
        ModelServer([text(" ".join(words), split=9)]) as server,
        someone(server=server, columns=columns, lines=lines) as person,
    ):
        person.says("Hi")
        person.sees("word99")
        person.at_prompt()
        shown = person.screen.split("> Hi")[1].split()
        assert shown[:100] == words
        assert person.leaves() == 0


def test_alt_enter_and_ctrl_j_insert_line_breaks() -> None:
    with ModelServer([text("Yes.")]) as server, someone(server=server) as person:
        person.at_prompt()
        person.types(f"one{ALT_ENTER}two{CTRL_J}three")
        person.sees("three")
        person.types(ENTER)
        person.sees("Yes.")
        assert last_said(server) == "one\ntwo\nthree"


@pytest.mark.parametrize("marked", some(1, [True, False]))
def test_a_paste_is_not_sent_before_enter(marked: bool) -> None:
    pasted = "def f():\r    return 1\r\rf()\r"
    with ModelServer([text("Seen.")]) as server, someone(server=server) as person:
        person.at_prompt()
        person.types(f"\x1b[200~{pasted}\x1b[201~!" if marked else pasted + "!")
        person.sees("!")
        assert server.requests == []
        person.types(ENTER)
        person.sees("Seen.")
        assert last_said(server) == "def f():\n    return 1\n\nf()\n!"


@pytest.mark.full
def test_triple_quotes_allow_several_lines() -> None:
    with ModelServer([text("Read.")]) as server, someone(server=server) as person:
        person.at_prompt()
        for line in ('"""a poem', "of lines", 'ends"""'):
            person.types(line)
            person.sees(line)
            person.types(ENTER)
        person.sees("Read.")
        assert last_said(server) == '"""a poem\nof lines\nends"""'


def test_the_history_persists_between_runs(home: Path) -> None:
    for run in range(2):
        with ModelServer([text("Hello.")]) as server, someone(server=server) as person:
            person.at_prompt()
            if run:
                person.types("\x1b[A")
                person.sees("> remember me")
                person.types(ENTER)
            else:
                person.says("remember me")
            person.sees("Hello.")
            assert person.leaves() == 0
    kept = home / ".config" / "open-interpreter" / "history"
    assert kept.stat().st_mode & 0o077 == 0


def test_ctrl_c_twice_and_exit_leave_the_chat() -> None:
    with ModelServer() as server, someone(server=server) as person:
        person.at_prompt()
        person.types("half a thought" + CTRL_C)
        person.at_prompt()
        person.types(CTRL_C)
        person.sees("Press Ctrl-C again, or Ctrl-D, to exit.")
        person.types(CTRL_C)
        assert person.ends() == 0
        assert person.mode_is_restored
    with ModelServer() as server, someone(server=server) as person:
        person.says("exit")
        assert person.ends() == 0


def test_text_typed_during_a_turn_is_sent_next() -> None:
    go_on = threading.Event()
    replies = [text("First.").then(stall(go_on)), text("Second."), text("Third.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("one")
        person.sees("First.")
        person.types("two" + ENTER + "thr")
        person.sees("› two ⏎ thr")
        go_on.set()
        person.sees("> two")
        person.sees("Second.")
        person.sees("> thr")
        person.types("ee" + ENTER)
        person.sees("Third.")
        person.at_prompt()
        assert [request.messages[-1]["content"] for request in server.requests] == ["one", "two", "three"]
        assert "⏎" not in person.screen


@pytest.mark.full
def test_a_reply_stays_complete_after_a_resize() -> None:
    go_on = threading.Event()
    words = [f"word{number}" for number in range(60)]
    reply = text(" ".join(words[:30])).then(stall(go_on)).then(text(" " + " ".join(words[30:])))
    with ModelServer([reply]) as server, someone(server=server, columns=60) as person:
        person.says("Hi")
        person.sees("word29")
        person.resizes(100, 24)
        go_on.set()
        person.sees("word59")
        person.at_prompt()
        assert person.screen.split("> Hi")[1].split()[:60] == words


def test_a_dumb_terminal_gets_plain_lines() -> None:
    with (
        ModelServer([text("**Plain** words.")]) as server,
        someone(server=server, env={"TERM": "dumb"}) as person,
    ):
        person.says("Hi")
        person.sees("**Plain** words.")
        assert person.leaves() == 0
        assert "\x1b" not in person.raw


@pytest.mark.full
def test_characters_outside_the_terminals_encoding_are_replaced() -> None:
    with (
        ModelServer([text("A 漢 sign.")]) as server,
        someone(server=server, env={"PYTHONIOENCODING": "latin-1"}) as person,
    ):
        person.says("Hi")
        person.sees("A ? sign.")
        assert person.leaves() == 0


@pytest.mark.full
def test_no_color_turns_off_colours() -> None:
    reply = text("# Title\n`x`\n\n```python\nreturn 1\n```")
    with ModelServer([reply]) as server, someone(server=server, env={"NO_COLOR": "1"}) as person:
        person.says("Hi")
        person.sees("return 1")
        assert person.leaves() == 0
        assert not re.search(r"\x1b\[[0-9;]*(3|4|9|10)[0-7][0-9;]*m", person.raw)


def test_an_error_is_shown_once_and_the_chat_continues() -> None:
    with ModelServer([error(401, "too odd"), text("Better.")]) as server, someone(server=server) as person:
        person.says("Hi")
        person.sees("too odd")
        person.says("again")
        person.sees("Better.")
        person.at_prompt()
        assert person.screen.count("too odd") == 1
        assert "Traceback" not in person.screen
        assert person.leaves() == 0


def test_sigterm_restores_the_terminal() -> None:
    with ModelServer() as server, someone(server=server) as person:
        person.at_prompt()
        person.signals(signal.SIGTERM)
        assert person.ends() == 128 + signal.SIGTERM
        assert person.mode_is_restored


def test_ctrl_z_suspends_the_prompt_and_fg_resumes_it() -> None:
    with ModelServer([text("Hello.")]) as server:
        person = Person(["bash", "--norc", "--noprofile", "-i"])
        try:
            where = ["--api_base", server.base_url, "--api_key", "key"]
            person.types(shlex.join([sys.executable, "-c", PROGRAM, *where]) + ENTER)
            person.at_prompt()
            person.types("half a")
            person.sees("> half a")
            person.types(CTRL_Z)
            person.sees("Stopped")
            person.types("fg" + ENTER)
            person.wait_until(lambda: person.emulator.row == "> half a", "the prompt again")
            person.types(" word" + ENTER)
            person.sees("Hello.")
            assert server.requests[-1].messages[-1]["content"] == "half a word"
        finally:
            person.close()


@pytest.mark.full
def test_a_local_model_shows_how_much_of_the_prompt_it_has_read() -> None:
    def event(**fields: object) -> bytes:
        return b"data: " + json.dumps(fields).encode() + b"\n\n"

    empty = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]}
    progress = {"total": 8000, "cache": 0, "processed": 2048, "time_ms": 900}
    answer = {"choices": [{"index": 0, "delta": {"content": "Read."}, "finish_reason": "stop"}]}
    may_answer = threading.Event()
    reading = (event(**empty, prompt_progress=progress), Stall(may_answer), event(**answer), b"data: [DONE]\n\n")
    json_type = (("Content-Type", "application/json"),)
    refusal = RawReply((b'{"error": {"message": "unknown field return_progress"}}',), 400, json_type)
    replies = [RawReply(reading), refusal, text("Done.")]
    with ModelServer(replies) as server, someone("--model", "llamafile/tiny", server=server) as person:
        person.says("A long story")
        person.glimpses("reading the prompt: 25% of 8,000 tokens")
        may_answer.set()
        person.sees("Read.")
        person.says("And to an older server")
        person.sees("Done.")
        assert person.leaves() == 0
    asked = [request.body.get("return_progress") for request in server.requests if "messages" in request.body]
    assert asked == [True, True, None]
