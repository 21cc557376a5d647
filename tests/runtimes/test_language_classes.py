"""A language class that a user adds works everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conversation import Chatting, chatting
from interpreter import BaseLanguage, OpenInterpreter
from interpreter.export import ExportedConversation
from interpreter.export.documents import markdown, page
from interpreter.export.notebook import notebook
from interpreter.frontends.terminal.approval import QUESTION
from interpreter.messages import Chunk
from interpreter.policy.analysis import analyze, reversibility
from interpreter.policy.files import user_file
from interpreter.scanners import Scanner
from interpreter.script.steps import steps_of
from interpreter.session.journal.reader import RecordedBlock, entries_from_messages
from model_server import ModelServer, text, tool_call
from runtimes.example_language import CODE, PROFILE, Failing, Moonlight, Plain, Thorough
from terminal.person import Person, someone

__all__ = ["chatting"]
TESTS = Path(__file__).parent.parent


def interpreter_with(language: type[BaseLanguage]) -> OpenInterpreter:
    interpreter = OpenInterpreter(stream_all=True)
    interpreter.computer.languages.append(language)
    return interpreter


def is_highlighted(person: Person, word: str) -> bool:
    """Whether the word is on the screen in its own style."""
    return re.search(rf"\x1b\[[0-9;]+m{re.escape(word)}\x1b\[0?m", person.raw) is not None


# -- at the terminal ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_strays")
def test_the_terminal_highlights_edits_runs_and_exports_an_added_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, editor, named = tmp_path / "moon.py", tmp_path / "editor", tmp_path / "named"
    profile.write_text(PROFILE)
    editor.write_text(f'#!/bin/sh\necho "$1" > {named}\necho "-- edited" >> "$1"\n')
    editor.chmod(0o755)
    Path("hello.moon").write_text("olleh")
    monkeypatch.setenv("PYTHONPATH", f"{TESTS.parent / 'src'}:{TESTS}")
    prose = "Like this:\n\n```moon\nwhile true do end\n```\n"
    replies = [text(prose).then(tool_call("moon", CODE)), tool_call("python", "open('made.txt', 'w')"), text("Done.")]
    arguments = ("--profile", str(profile))
    with ModelServer(replies) as server, someone(*arguments, server=server, env={"EDITOR": str(editor)}) as person:
        person.says("run")
        person.sees(QUESTION)
        assert "what moonlight code does" in " ".join(person.rows)
        assert "undo isn't guaranteed" in person.screen
        assert is_highlighted(person, "while")
        assert is_highlighted(person, "local")
        person.answers(QUESTION, "e")
        person.answers(QUESTION, "y", times=2)
        person.sees("detide --")  # the edited code ran
        assert named.read_text().strip().endswith(".moon")
        person.answers(QUESTION, "y", times=3)
        person.sees("Done.")
        person.says("%run hello.moon")
        person.sees("hello")
        for command in ("%markdown a.md", "%jupyter a.ipynb", "%html a.html", "%script a.py"):
            person.says(command)
            person.sees(f"a{Path(command).suffix}.")
        assert person.leaves() == 0
    assert f"```moonlight\n{CODE}" in Path("a.md").read_text()
    source = "".join("".join(cell["source"]) for cell in json.loads(Path("a.ipynb").read_text())["cells"])
    assert f"```moonlight\n{CODE}" in source
    assert "A notebook can't run moonlight" in source
    shown = Path("a.html").read_text()
    assert "<span>moonlight</span>" in shown
    assert '<span class="kd">local</span>' in shown
    assert "Block 1 (moonlight) is not included" in Path("a.py").read_text()


# -- policy ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", [Moonlight, Plain, Failing])
def test_effects_of_an_added_language_are_unknown(language: type[BaseLanguage]) -> None:
    registry = interpreter_with(language).computer.registry
    effects = analyze(language.name, CODE, ".", registry=registry)
    assert effects.language == language.name.lower()
    assert effects.unknown
    assert reversibility(effects).kind == "not"


def test_an_added_language_can_replace_a_display_only_one() -> None:
    class Svg(Plain):
        name = "svg"

    assert not analyze("svg", "<b>", ".").all
    assert analyze("svg", "<b>", ".", registry=interpreter_with(Svg).computer.registry).unknown


def test_the_approval_question_says_that_effects_are_unknown(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("moon", CODE), text("Done."))
    interpreter.computer.languages.append(Moonlight)
    asked = _asked(interpreter)
    assert asked["undo"]["kind"] == "not"
    assert any("what moonlight code does" in line for line in asked["effects"])


def test_an_added_language_can_have_an_analysis(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("moonlight", "remove old.txt"), text("Done."))
    interpreter.computer.languages.append(Thorough)
    assert "Deletes old.txt" in _asked(interpreter)["effects"]


@pytest.mark.parametrize("name", ["moonlight", "Moon"])
def test_policy_rules_match_its_name_and_aliases(chatting: Chatting, name: str) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f"rules:\n- decision: deny\n  language: {name}\n  reason: not by day\n")
    interpreter, _ = chatting(tool_call("moon", CODE), text("Done."), auto_run=True)
    interpreter.computer.languages.append(Moonlight)
    chunks = list(interpreter.chat("run", stream=True, display=False))
    decided = [chunk for chunk in chunks if chunk["type"] == "decision"]
    assert [(chunk["format"], chunk["content"]["reason"]) for chunk in decided] == [("denied", "not by day")]


def test_plan_mode_does_not_run_an_added_language(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("moon", CODE), text("Done."), mode="plan")
    interpreter.computer.languages.append(Moonlight)
    chunks = list(interpreter.chat("run", stream=True, display=False))
    assert not any(CODE[::-1] in str(chunk.get("content")) for chunk in chunks)


def test_an_added_language_can_have_scanners() -> None:
    found = Scanner(registry=interpreter_with(Thorough).computer.registry).scan("moon", CODE)
    assert [finding.message for finding in found.findings] == ["block.moon"]
    assert not found.unseen
    assert Scanner(registry=interpreter_with(Moonlight).computer.registry).scan("moon", CODE).unseen


def _asked(interpreter: OpenInterpreter) -> Chunk:
    chunks = interpreter.chat("run", stream=True, display=False)
    return next(chunk for chunk in chunks if chunk["type"] == "confirmation")


# -- exports -----------------------------------------------------------------------------------------------------


def conversation(name: str, *codes: str) -> list[RecordedBlock]:
    messages = [
        message
        for code in codes
        for message in (
            {"role": "assistant", "type": "code", "format": name, "content": code},
            {
                "role": "computer",
                "type": "console",
                "format": "output",
                "content": "x",
                "ended": "done",
                "exit_code": 0,
            },
        )
    ]
    return list(entries_from_messages(messages))


def test_a_class_with_a_name_and_run_is_enough() -> None:
    registry, entries = interpreter_with(Plain).computer.registry, conversation("PLAINLY", "say it")
    assert "```plainly\nsay it" in markdown(ExportedConversation(entries, "T", registry)).text
    assert "<span>plainly</span>" in page(ExportedConversation(entries, "T", registry)).text
    assert "A notebook can't run plainly" in notebook(ExportedConversation(entries, "T", registry)).text
    assert steps_of(entries, registry).notes == ["Block 1 (plainly) is not included: the program is in Python."]


def test_language_classes_of_0_4_3_still_work() -> None:
    class Old:
        name = "old"

        def run(self, code: str) -> Iterator[Chunk]:
            yield {"type": "console", "format": "output", "content": code}

    interpreter = OpenInterpreter(stream_all=True)
    interpreter.computer.languages.append(Old)  # type: ignore[arg-type]
    assert interpreter.computer.run("old", "hi")[0]["content"] == "hi"
    assert analyze("old", "hi", ".", registry=interpreter.computer.registry).unknown
    interpreter.computer.languages = interpreter.computer.languages[-1:]
    assert interpreter.computer.runtimes.is_alive("old")


def test_notebooks_run_it_with_its_cell_magic() -> None:
    entries = conversation("moon", "function f() end", "print(1)", "print(f())")
    book = json.loads(notebook(ExportedConversation(entries, "T", interpreter_with(Thorough).computer.registry)).text)
    assert ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"] == [
        "%%script moon\nfunction f() end",
        "%%script moon\nprint(1)",
        "%%script moon\n-- From earlier blocks that this one needs:\nfunction f() end\n-- This block:\nprint(f())",
    ]


def test_the_context_note_lists_what_its_code_defined() -> None:
    from interpreter.llm.context import note_about

    interpreter = interpreter_with(Thorough)
    blocks = [
        {"role": "user", "type": "message", "content": "Go"},
        {"role": "assistant", "type": "code", "format": "moon", "content": "function f() end"},
        {"role": "computer", "type": "console", "format": "output", "content": ""},
    ]
    interpreter.computer.run("moon", "x")
    assert "The moon session is still alive, with f." in note_about(blocks, [1, 2], interpreter.computer.runtimes, 4000)
