"""The command line: flags, messages, errors, and the text of --help."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.config.settings import SETTINGS
from interpreter.errors import UsageError
from interpreter.frontends.cli import version_line
from interpreter.frontends.flags import COMMANDS, help_text, parse
from interpreter.version import __version__


def test_one_existing_folder_is_the_workspace_and_anything_else_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    data = str(tmp_path / "data")
    for line in ("data", "data -y", "-y data", "./data", "-y data/"):
        parsed = parse(line.split())
        assert (parsed.settings["workspace"], parsed.message) == (data, None)
    assert parse([data]).settings == {"workspace": data}
    for line in ("-- data", "data -- x", "data more", "nowhere", "file"):
        assert "workspace" not in parse(line.split()).settings
        assert parse(line.split()).message
    assert parse(["data"], "i").message == "I data"
    assert parse(["--workspace", "/x", "data"]).settings["workspace"] == "/x"


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("-y", {"auto_run": True}),
        ("--auto_run", {"auto_run": True}),
        ("--auto-run", {"auto_run": True}),
        ("--no-auto_run", {"auto_run": False}),
        ("--no_auto_run", {"auto_run": False}),
        ("--auto_run false", {"auto_run": False}),
        ("--offline true", {"offline": True}),
        ("--offline=false", {"offline": False}),
        ("-yv", {"auto_run": True, "verbose": True}),
        ("--mod gpt-4o", {"llm.model": "gpt-4o"}),
        ("--model=a=b", {"llm.model": "a=b"}),
        ("-m x -m y", {"llm.model": "y"}),
        ("-t 0.5 -cw 8000 -b 1", {"llm.temperature": 0.5, "llm.context_window": 8000, "llm.max_budget": 1.0}),
        ("-lsv --no-llm_supports_functions", {"llm.supports_vision": True, "llm.supports_functions": False}),
        ("-nhl", {"highlight_active_line": False}),
        ("--no_highlight_active_line", {"highlight_active_line": False}),
        ("--highlight_active_line", {"highlight_active_line": True}),
        ("--safe auto", {"safe_mode": "auto"}),
        ("-safe ask -pl", {"safe_mode": "ask", "plain_text_display": True}),
        ("-ci short -sm long", {"custom_instructions": "short", "system_message": "long"}),
        ("-o -os", {"offline": True, "os": True}),
        ("--debug_mode", {"verbose": True}),
        ("", {}),
    ],
)
def test_flags_set_only_the_given_settings(line: str, settings: dict[str, Any]) -> None:
    parsed = parse(line.split())
    assert parsed.settings == settings
    assert parsed.message is None


@pytest.mark.parametrize(
    ("line", "message", "settings"),
    [
        ("want a venv", "I want a venv", {}),
        ("want a venv -y --model x", "I want a venv", {"auto_run": True, "llm.model": "x"}),
        ("want to know what ls -l prints", "I want to know what ls -l prints", {}),
        ("want -y in a sentence -v", "I want -y in a sentence", {"verbose": True}),
        ("-y --plain list files", "list files", {"auto_run": True, "plain_text_display": True}),
        ("-y list files -v", "list files", {"auto_run": True, "verbose": True}),
        ("-- -y is a flag", "-y is a flag", {}),
        ("-y -- --model", "--model", {"auto_run": True}),
        ("explain -- git log -y", "I explain git log -y", {}),
        ("-", "I -", {}),
    ],
)
def test_words_become_the_message(line: str, message: str, settings: dict[str, Any]) -> None:
    parsed = parse(line.split())
    assert (parsed.message, parsed.settings) == (message, settings)
    assert parsed.shortcut == message.startswith("I ")


def test_the_program_i_starts_the_message_with_i() -> None:
    assert parse(["-y", "want", "a", "venv"], prog="i").message == "I want a venv"
    assert parse(["-y"], prog="i").message is None


@pytest.mark.parametrize(
    ("line", "actions"),
    [
        ("--version", {"version": True}),
        ("-h", {"help": True}),
        ("-s", {"stdin": True}),
        ("-p mine.yaml", {"profile": "mine.yaml"}),
        ("--reset_profile", {"reset_profile": True}),
        ("--reset_profile default.yaml -y", {"reset_profile": "default.yaml"}),
        ("--local --vision", {"local": True, "vision": True}),
    ],
)
def test_command_flags_are_parsed(line: str, actions: dict[str, Any]) -> None:
    assert parse(line.split()).actions == actions


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--modle x", "There is no flag --modle. Did you mean --model?"),
        ("-q", "There is no flag -q. See `interpreter --help`."),
        ("-ym x", "There is no flag -ym."),
        ("list files --moddel x", "There is no flag --moddel. Did you mean --model?"),
        ("--m x", "--m is ambiguous: --model, "),
        ("--model", "--model needs a value."),
        ("--model -y", "--model needs a value."),
        ("-t hot", "-t takes float or None, not 'hot'."),
        ("-t -1", "-t must be at least 0, not -1.0."),
        ("--safe_mode on", "--safe_mode takes 'off' or 'ask' or 'auto', not 'on'."),
        ("--auto_run=perhaps", "--auto_run takes bool, not 'perhaps'."),
        ("--version=3", "--version doesn't take a value."),
    ],
)
def test_errors_name_the_wrong_flag(line: str, words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(line.split())
    assert str(refusal.value).startswith(words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--disable_telemetry", "--disable_telemetry does nothing: "),
        ("--contribute_conversation", "--contribute_conversation does nothing: "),
        ("--debug_mode", "--debug_mode is now --verbose."),
        ("-sp -sp", "-sp does nothing: messages are not spoken yet"),
    ],
)
def test_a_notice_explains_flags_without_effect(line: str, words: str) -> None:
    [notice] = parse(line.split()).notices
    assert notice.startswith(words)
    assert "\n" not in notice


@given(st.lists(st.text(min_size=1).filter(lambda word: not word.startswith("-")), min_size=1))
def test_any_words_are_passed_on_unchanged(words: list[str]) -> None:
    assert parse(words).message == "I " + " ".join(words)
    assert parse(["-y", "--", *words]).message == " ".join(words)


@given(st.lists(st.sampled_from(["-y", "--model", "--plain", "x", "false", "--", "-t", "0.5", "-"])))
def test_any_line_is_parsed_or_raises_a_usage_error(line: list[str]) -> None:
    with contextlib.suppress(UsageError):
        parse(line)


def test_help_shows_every_flag_within_the_width() -> None:
    text = help_text()
    for row in (*SETTINGS, *COMMANDS):
        for flag in (row.flag, row.short, getattr(row, "no_flag", "")):
            assert flag in text
    assert max(map(len, text.splitlines())) <= 80
    assert "`" not in text


def test_the_version_line_has_the_version() -> None:
    assert version_line() == f"Open Interpreter {__version__} Developer Preview"
