"""Magic commands: lines that start with a percent sign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.config.setting import apply
from interpreter.errors import ModelError
from interpreter.frontends.terminal import magics
from interpreter.frontends.terminal.chat import greet
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from model_server import ModelServer, text, usage
from sampling import some
from terminal.emulator import EmulatedOutput, Emulator
from terminal.person import someone


class Desk:
    """An interpreter with a terminal that shows the output of a command."""

    def __init__(self) -> None:
        self.emulator = Emulator(columns=200)
        self.terminal = Terminal(plain=True, tty=Tty(stdout=EmulatedOutput(self.emulator)))
        self.interpreter = OpenInterpreter()
        self.interpreter.messages = [
            {"role": "user", "type": "message", "content": "first"},
            {"role": "assistant", "type": "message", "content": "hello"},
            {
                "role": "user",
                "type": "message",
                "content": "a question that is longer than thirty characters",
            },
            {"role": "computer", "type": "image", "format": "path", "content": {"odd": 1}},
        ]

    def run(self, line: str) -> str:
        before = len(self.emulator.everything)
        magics.run(self.terminal, self.interpreter, line)
        return "\n".join(self.emulator.everything[before:])


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_help_lists_every_command(desk: Desk) -> None:
    shown = desk.run("%help")
    assert all(f"%{command.name}" in shown for command in magics.COMMANDS)
    assert all(sign in shown for sign in ("%% ls", "!ls", ">>> 1 + 1"))


def test_languages_are_listed_with_their_programs(desk: Desk) -> None:
    shown = desk.run("%languages")
    here, _, missing = shown.partition("Not installed:")
    assert "Python 3." in here
    assert "AppleScript" not in here
    assert "it comes with macOS" in missing


def test_help_fits_one_screen_in_groups() -> None:
    server = ModelServer([text("A word you know.")])
    with server, someone("--model", "gpt-4o", server=server) as person:
        person.says("%help")
        person.sees("/undo works like %undo.")
        person.at_prompt()
        screen = person.emulator.screen.display
        rows = [row.rstrip() for row in screen]
        first = next(number for number, row in enumerate(rows) if row.startswith("Your code"))
        assert rows[first - 1] == "> %help", "%help has too many rows for one screen: choose a group with room"
        assert [row.split()[0] for row in rows[first:] if row[:1].isalpha()][:4] == ["Your", "Data", "Undo", "Forks"]
        shown = set("\n".join(rows).split())
        assert {f"%{command.name}" for command in magics.COMMANDS} <= shown


@pytest.mark.parametrize("asked", some(1, ["help", "?", "Help", "/help"]))
def test_asking_for_help_is_answered_without_the_model(asked: str) -> None:
    with ModelServer([]) as server, someone("--model", "gpt-4o", server=server) as person:
        person.says(asked)
        person.sees("%help undo explains a command")
        assert person.leaves() == 0
        assert not server.requests


def test_help_of_one_command_has_examples(desk: Desk) -> None:
    for asked in ("%help undo", "%help %undo", "%help /undo"):
        assert "%undo [N]" in (shown := desk.run(asked))
        assert "%undo --files" in shown
    assert "Examples:\n  %reset" in desk.run("%help reset")
    assert "Did you mean %undo?" in desk.run("%help unod")


def test_a_slash_works_like_a_percent_sign_unless_it_is_a_path(tmp_path: Path) -> None:
    assert magics.slash_command("/undo 2") == "%undo 2"
    assert magics.slash_command("/undoing things") is None
    assert magics.slash_command("/tmp is full") is None
    assert magics.slash_command("/run x.py") == (None if Path("/run").exists() else "%run x.py")
    assert magics.slash_command("/") is None
    with ModelServer([text("It is a folder.")]) as server, someone("--model", "gpt-4o", server=server) as person:
        person.says("/mode")
        person.sees("Mode ask:")
        person.says("/tmp what is in it?")
        person.sees("It is a folder.")
        assert server.requests[0].body["messages"][-1]["content"] == "/tmp what is in it?"


@pytest.mark.parametrize(("line", "advice"), [("%verbos", "Did you mean %verbose?"), ("%xyz", "%help lists")])
def test_an_unknown_command_names_the_closest(desk: Desk, line: str, advice: str) -> None:
    assert advice in desk.run(line)


def test_undo_removes_the_last_exchange(desk: Desk) -> None:
    shown = desk.run("%undo")
    assert [message["content"] for message in desk.interpreter.messages] == ["first", "hello"]
    assert "user message: a question that is longer than..." in shown
    desk.run("%undo")
    assert desk.interpreter.messages == []
    assert "nothing to undo" in desk.run("%undo")


def test_auto_run_and_verbose_can_be_switched(desk: Desk) -> None:
    desk.run("%auto_run")
    assert desk.interpreter.auto_run is True
    desk.run("%auto_run false")
    assert desk.interpreter.auto_run is False
    assert "true or false" in desk.run("%auto_run perhaps")
    assert '"hello"' in desk.run("%verbose true")
    assert desk.interpreter.verbose is True
    assert "now %verbose" in desk.run("%debug false")
    assert desk.interpreter.verbose is False


def test_the_mode_overrides_auto_run_and_says_so(desk: Desk) -> None:
    desk.interpreter.mode = "plan"
    shown = desk.run("%auto_run true")
    assert "Mode plan: code can read" in shown and "%mode auto" in shown and "without asking" not in shown


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "I'll ask before running any code. %help"),
        ({"auto_run": True}, "Code runs without asking. %help"),
        ({"mode": "auto"}, "Code runs without asking. %help"),
        ({"auto_run": True, "mode": "plan"}, "Code can read but not change anything, and has no network. %help"),
    ],
)
def test_the_greeting_says_whether_code_needs_approval(desk: Desk, settings: dict[str, Any], words: str) -> None:
    apply(desk.interpreter, settings)
    greet(desk.terminal, desk.interpreter)
    assert words in "\n".join(desk.emulator.everything) and "OS mode" not in "\n".join(desk.emulator.everything)


def test_os_mode_without_a_display_is_reported_at_the_start(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    desk.interpreter.os = True
    greet(desk.terminal, desk.interpreter)
    assert "Can't start OS mode. There is no display here" in "\n".join(desk.emulator.everything)


def test_messages_are_saved_and_loaded(desk: Desk, tmp_path: Path) -> None:
    before = list(desk.interpreter.messages)
    assert str(tmp_path / "talk.json") in desk.run(f"%save_message {tmp_path / 'talk'}").replace("\n", "")
    assert json.loads((tmp_path / "talk.json").read_text()) == before
    desk.interpreter.messages = []
    assert "4 messages" in desk.run(f"%load_message {tmp_path / 'talk.json'}")
    assert desk.interpreter.messages == before
    assert "Can't read" in desk.run("%load_message /nowhere/x")
    (tmp_path / "bad.json").write_text('{"a": 1}')
    assert "not a conversation" in desk.run(f"%load_message {tmp_path / 'bad'}").replace("\n", " ")
    assert desk.interpreter.messages == before


def test_the_model_can_be_changed_in_mid_conversation(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = desk.interpreter.llm
    monkeypatch.setenv("ANTHROPIC_API_KEY", "anthropic-key")
    llm.api_key, llm.context_window, llm.supports_vision = "openai-key", 8000, False
    assert "gpt-4o, at its own server." in desk.run("%model")
    shown = desk.run("%model gpt-4o-mini")
    assert (llm.model, llm.api_key, llm.context_window, llm.supports_vision) == (
        "gpt-4o-mini",
        "openai-key",
        None,
        None,
    )
    assert "Now using gpt-4o-mini instead of gpt-4o." in shown
    assert "8,000 tokens was set for gpt-4o" in shown
    assert "Context window: 128,000 tokens" in shown and "$0.15 / $0.6" in shown
    assert len(desk.interpreter.messages) == 4
    desk.run("%model anthropic/claude-sonnet-4-5")
    assert (llm.model, llm.api_key) == ("anthropic/claude-sonnet-4-5", None)


def test_an_unusable_model_changes_nothing(desk: Desk) -> None:
    llm = desk.interpreter.llm
    llm.api_key, llm.context_window = "openai-key", 8000
    for name, why in (("acme/x", "Unknown provider"), ("groq/llama-3.3-70b-versatile", "GROQ_API_KEY")):
        with pytest.raises(ModelError, match=why):
            desk.run(f"%model {name}")
    assert (llm.model, llm.api_key, llm.context_window) == ("gpt-4o", "openai-key", 8000)


def test_a_model_can_keep_or_change_the_server(desk: Desk) -> None:
    llm = desk.interpreter.llm
    llm.api_base, llm.api_key = "http://127.0.0.1:1/v1", "key"
    assert "Using the server at http://127.0.0.1:1/v1" in desk.run("%model meta/llama-3")
    assert (llm.model, llm.api_key) == ("meta/llama-3", "key")
    desk.run("%model groq/llama-4")
    assert (llm.model, llm.api_base, llm.api_key) == ("openai/groq/llama-4", "http://127.0.0.1:1/v1", "key")
    desk.run("%model other http://127.0.0.1:2/v1")
    assert (llm.model, llm.api_base, llm.api_key) == ("other", "http://127.0.0.1:2/v1", None)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        desk.run("%model gpt-4o own")


def test_cost_shows_the_session_and_the_budget(desk: Desk) -> None:
    desk.interpreter.llm.max_budget = 1.0
    shown = desk.run("%cost")
    assert "This session: $0.00." in shown
    assert "Left of the budget of $1.00: $1.00." in shown


def test_messages_are_saved_in_the_workspace_after_a_cd(desk: Desk, tmp_path: Path) -> None:
    desk.interpreter.workspace = str(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    desk.interpreter.computer.context.cwd = str(elsewhere)
    desk.run("%save_message")
    assert not list(elsewhere.iterdir())
    assert len(json.loads((tmp_path / "messages.json").read_text())) == 4
    desk.interpreter.messages = []
    desk.run("%load_message")
    assert len(desk.interpreter.messages) == 4


def test_info_names_the_model_and_reset_clears_the_messages(desk: Desk) -> None:
    desk.interpreter.llm.model = "my-model"
    assert "my-model" in desk.run("%info")
    desk.run("%reset")
    assert desk.interpreter.messages == []


@pytest.mark.full
@pytest.mark.usefixtures("no_strays")
def test_double_percent_runs_a_shell_command_without_the_model() -> None:
    with ModelServer([text("Yes?")]) as server, someone(server=server) as person:
        person.says("%% echo one$((1 + 1))three; read -p 'name: ' x; echo hi $x")
        person.sees("one2three")
        person.sees("name:", times=2)
        person.types("Ada\r")
        person.sees("hi Ada")
        person.says("hello")
        person.sees("Yes?")
        assert "one2three" not in json.dumps(server.requests[0].body)
        assert person.leaves() == 0


def test_tokens_shows_usage_and_cost(desk: Desk) -> None:
    assert "This session: 0 requests, 0 input tokens, 0 output tokens, $0.00." in desk.run("%tokens")
    with ModelServer([text("Hi").then(usage(20_000, 1000))] * 2) as server:
        desk.interpreter.llm.api_base, desk.interpreter.llm.api_key = server.base_url, "key"
        desk.interpreter.messages = []
        for _ in range(2):
            desk.interpreter.chat("Hello", display=False)
        shown = desk.run("%tokens how many are these?")
    assert "This session: 2 requests, 40,000 input tokens, 2,000 output tokens, about $0.12." in shown
    assert "The last turn: 1 request, 20,000 input tokens, 1,000 output tokens, about $0.0600." in shown
    assert "The next request: about 20,0" in shown and "of 128,000 (15%)." in shown
    assert "Your message has about 5 tokens." in shown


def test_compact_sends_a_note_instead_of_older_messages() -> None:
    long = "What I found: " + " ".join(map(str, range(2000)))
    replies = [text(long), text(long), text("Short."), text("Still here.")]
    with ModelServer(replies) as server, someone("--model", "gpt-4o", server=server) as person:
        person.says("%compact")
        person.sees("Nothing to compact yet")
        for number in ("first", "second", "third"):
            person.says(f"The {number} question")
            person.wait_until(lambda: person.emulator.row == ">", "the end of the turn")
        person.says("%compact")
        person.sees("Compacted from about")
        person.says("%compact")
        person.sees("Nothing to compact yet", times=2)
        person.says("The last question")
        person.sees("Still here.")
        sent = [str(message["content"]) for message in server.requests[-1].body["messages"]]
        assert sum("What I found" in each for each in sent) < 2
        assert "The first question" in "".join(sent) and "The last question" in sent[-1]
        assert person.leaves() == 0
