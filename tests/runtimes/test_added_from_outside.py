"""A language that is added from outside the package is known everywhere by what its class says."""

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
from interpreter.export.script.steps import steps_of
from interpreter.frontends.terminal.approval import QUESTION
from interpreter.messages import Chunk
from interpreter.policy.analysis import analyze, reversibility
from interpreter.policy.files import user_file
from interpreter.policy.scanners import Scanner
from interpreter.session.journal.reader import RecordedBlock, entries_from_messages
from model_server import ModelServer, text, tool_call
from runtimes.moonlight import CODE, PROFILE, Failing, Moonlight, Plain, Thorough
from terminal.person import Person, someone

__all__ = ["chatting"]
TESTS = Path(__file__).parent.parent


def having(language: type[BaseLanguage]) -> OpenInterpreter:
    interpreter = OpenInterpreter(stream_all=True)
    interpreter.computer.languages.append(language)
    return interpreter


def painted(person: Person, word: str) -> bool:
    """Whether the word stands on the screen in a style of its own."""
    return re.search(rf"\x1b\[[0-9;]+m{re.escape(word)}\x1b\[0?m", person.raw) is not None


# -- at the terminal ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_strays")
def test_the_terminal_highlights_edits_judges_and_exports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert painted(person, "while")
        assert painted(person, "local")
        person.answers(QUESTION, "e")
        person.answers(QUESTION, "y", times=2)
        person.sees("detide --")  # it ran as the editor left it
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


# -- what its blocks may do --------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", [Moonlight, Plain, Failing])
def test_nothing_is_known_of_what_its_code_does(language: type[BaseLanguage]) -> None:
    registry = having(language).computer.registry
    effects = analyze(language.name, CODE, ".", registry=registry)
    assert effects.language == language.name.lower()
    assert effects.unknown
    assert reversibility(effects).kind == "not"


def test_a_name_that_is_only_shown_elsewhere_is_run_here() -> None:
    class Svg(Plain):
        name = "svg"

    assert not analyze("svg", "<b>", ".").all
    assert analyze("svg", "<b>", ".", registry=having(Svg).computer.registry).unknown


def test_the_question_says_that_nothing_is_known(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("moon", CODE), text("Done."))
    interpreter.computer.languages.append(Moonlight)
    asked = _asked(interpreter)
    assert asked["undo"]["kind"] == "not"
    assert any("what moonlight code does" in line for line in asked["effects"])


def test_its_own_analysis_is_used(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("moonlight", "remove old.txt"), text("Done."))
    interpreter.computer.languages.append(Thorough)
    assert "Deletes old.txt" in _asked(interpreter)["effects"]


@pytest.mark.parametrize("name", ["moonlight", "Moon"])
def test_a_rule_names_it_as_the_user_does(chatting: Chatting, name: str) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f"rules:\n- decision: deny\n  language: {name}\n  reason: not by day\n")
    interpreter, _ = chatting(tool_call("moon", CODE), text("Done."), auto_run=True)
    interpreter.computer.languages.append(Moonlight)
    chunks = list(interpreter.chat("run", stream=True, display=False))
    decided = [chunk for chunk in chunks if chunk["type"] == "decision"]
    assert [(chunk["format"], chunk["content"]["reason"]) for chunk in decided] == [("denied", "not by day")]


def test_no_sandbox_is_said_to_contain_it(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("moon", CODE), text("Done."), mode="plan")
    interpreter.computer.languages.append(Moonlight)
    chunks = list(interpreter.chat("run", stream=True, display=False))
    assert not any(CODE[::-1] in str(chunk.get("content")) for chunk in chunks)


def test_it_is_scanned_by_what_it_names() -> None:
    found = Scanner(registry=having(Thorough).computer.registry).scan("moon", CODE)
    assert [finding.message for finding in found.findings] == ["block.moon"]
    assert not found.unseen
    assert Scanner(registry=having(Moonlight).computer.registry).scan("moon", CODE).unseen


def _asked(interpreter: OpenInterpreter) -> Chunk:
    chunks = interpreter.chat("run", stream=True, display=False)
    return next(chunk for chunk in chunks if chunk["type"] == "confirmation")


# -- written down ------------------------------------------------------------------------------------------------


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
    registry, entries = having(Plain).computer.registry, conversation("PLAINLY", "say it")
    assert "```plainly\nsay it" in markdown(ExportedConversation(entries, "T", registry)).text
    assert "<span>plainly</span>" in page(ExportedConversation(entries, "T", registry)).text
    assert "A notebook can't run plainly" in notebook(ExportedConversation(entries, "T", registry)).text
    assert steps_of(entries, registry).notes == ["Block 1 (plainly) is not included: the program is in Python."]


def test_a_class_of_0_4_3_extends_nothing() -> None:
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


def test_a_notebook_runs_it_where_it_says_how() -> None:
    entries = conversation("moon", "function f() end", "print(1)", "print(f())")
    book = json.loads(notebook(ExportedConversation(entries, "T", having(Thorough).computer.registry)).text)
    assert ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"] == [
        "%%script moon\nfunction f() end",
        "%%script moon\nprint(1)",
        "%%script moon\n-- From earlier blocks that this one needs:\nfunction f() end\n-- This block:\nprint(f())",
    ]


def test_the_model_is_told_what_its_code_defined() -> None:
    from interpreter.llm.context import note_about

    interpreter = having(Thorough)
    blocks = [
        {"role": "user", "type": "message", "content": "Go"},
        {"role": "assistant", "type": "code", "format": "moon", "content": "function f() end"},
        {"role": "computer", "type": "console", "format": "output", "content": ""},
    ]
    interpreter.computer.run("moon", "x")
    assert "The moon session is still alive, with f." in note_about(blocks, [1, 2], interpreter.computer.runtimes, 4000)
