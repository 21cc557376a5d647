"""The examples in the docs about profiles and headless use are correct."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.config.profiles import builtin_names
from interpreter.frontends.flags import parse

DOCS = Path(__file__).parent.parent.parent / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_documented_yaml_profile_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORK_KEY", "k")
    [example] = blocks("profiles.md", "yaml")
    (tmp_path / "p.yaml").write_text(example)
    made = OpenInterpreter()
    made.load_profile(str(tmp_path / "p.yaml"))
    assert (made.llm.model, made.llm.api_key, made.llm.temperature) == ("gpt-4o", "k", 0.2)
    assert [language.name for language in made.computer.languages] == ["Python", "Shell"]


def test_the_documented_python_profile_loads(tmp_path: Path) -> None:
    [example] = blocks("profiles.md", "python")
    (tmp_path / "p.py").write_text(example)
    made = OpenInterpreter()
    made.load_profile(str(tmp_path / "p.py"))
    assert made.custom_instructions == "The user is called Ada."


def test_every_built_in_profile_is_documented() -> None:
    table = (DOCS / "profiles.md").read_text("utf-8").partition("## Built-in")[2]
    forms = {f"{name}-{form}" for name in ("llama3", "codestral") for form in ("vision", "os")}
    assert set(builtin_names()) - forms == {name for name in builtin_names() if f"`{name}`" in table} - forms


def test_documented_command_lines_are_valid() -> None:
    lines = "".join(blocks("profiles.md", "shell") + blocks("headless.md", "shell")).splitlines()
    calls = [line for line in lines if "interpreter " in line]
    assert len(calls) > 8
    for line in calls:
        words = shlex.split(line.replace("<(", "").replace(")", ""), comments=True)
        words = words[words.index("interpreter") + 1 :]
        parse(words[: words.index(">")] if ">" in words else words)


def test_the_documented_events_are_valid() -> None:
    [example] = blocks("headless.md", "json")
    events = [json.loads(line) for line in example.splitlines()]
    assert [event["seq"] for event in events] == list(range(6))
    assert all(list(event)[:3] == ["seq", "turn", "group"] for event in events)
    assert list(events[-1]["content"]) == [
        "exit_code",
        "reason",
        "answer",
        "result",
        "unmet",
        "ungrounded",
        "input_tokens",
        "output_tokens",
        "cost",
    ]
