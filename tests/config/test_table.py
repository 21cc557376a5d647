"""The settings table has every setting of the original, with its flags and defaults, and is consistent."""

from __future__ import annotations

import pytest

from interpreter.config.setting import check_value, setting_named
from interpreter.config.settings import SETTINGS
from interpreter.frontends.flags import COMMANDS

# Existing scripts rely on these: name, default, flag, short flag.
KEPT = [
    ("custom_instructions", "", "--custom_instructions", "-ci"),
    ("auto_run", False, "--auto_run", "-y"),
    ("verbose", False, "--verbose", "-v"),
    ("debug", False, "--debug", "-debug"),
    ("max_output", 2800, "--max_output", "-xo"),
    ("loop", False, "--loop", ""),
    ("disable_telemetry", False, "--disable_telemetry", "-dt"),
    ("offline", False, "--offline", "-o"),
    ("speak_messages", False, "--speak_messages", "-sp"),
    ("safe_mode", "off", "--safe_mode", "-safe"),
    ("multi_line", True, "--multi_line", "-ml"),
    ("os", False, "--os", "-os"),
    ("contribute_conversation", False, "--contribute_conversation", ""),
    ("plain_text_display", False, "--plain", "-pl"),
    ("highlight_active_line", True, "", "-nhl"),
    ("shrink_images", True, "", ""),
    ("in_terminal_interface", False, "", ""),
    ("conversation_history", True, "", ""),
    ("conversation_filename", None, "", ""),
    ("user_message_template", "{content}", "", ""),
    ("always_apply_user_message_template", False, "", ""),
    ("code_output_sender", "user", "", ""),
    ("sync_computer", False, "", ""),
    ("import_computer_api", False, "", ""),
    ("import_skills", False, "", ""),
    ("skills_path", None, "", ""),
    ("llm.model", "gpt-4o", "--model", "-m"),
    ("llm.temperature", 0, "--temperature", "-t"),
    ("llm.supports_vision", None, "--llm_supports_vision", "-lsv"),
    ("llm.supports_functions", None, "--llm_supports_functions", "-lsf"),
    ("llm.context_window", None, "--context_window", "-cw"),
    ("llm.max_tokens", None, "--max_tokens", "-x"),
    ("llm.max_budget", None, "--max_budget", "-b"),
    ("llm.api_base", None, "--api_base", "-ab"),
    ("llm.api_key", None, "--api_key", "-ak"),
    ("llm.api_version", None, "--api_version", "-av"),
    ("computer.emit_images", True, "", ""),
    ("computer.save_skills", True, "", ""),
    ("computer.import_computer_api", False, "", ""),
    ("computer.import_skills", False, "", ""),
]
KEPT_COMMANDS = {
    "--profile": "-p",
    "--fast": "-f",
    "--local": "-l",
    "--codestral": "",
    "--assistant": "",
    "--llama3": "",
    "--groq": "",
    "--vision": "-vi",
    "--reset_profile": "",
    "--profiles": "",
    "--local_models": "",
    "--conversations": "",
    "--server": "",
    "--version": "",
    "--stdin": "-s",
    "--help": "-h",
}


@pytest.mark.parametrize(("name", "default", "flag", "short"), KEPT)
def test_a_setting_of_the_original_is_kept(name: str, default: object, flag: str, short: str) -> None:
    row = setting_named(name)
    assert (row.default_value(), row.flag, row.short) == (default, flag, short)


def test_the_commands_of_the_original_are_kept() -> None:
    assert {command.flag: command.short for command in COMMANDS}.items() >= KEPT_COMMANDS.items()


def test_the_loop_breakers_are_those_of_the_original() -> None:
    breakers = setting_named("loop_breakers").default_value()
    assert breakers == [
        "The task is done.",
        "The task is impossible.",
        "Let me know what you'd like to do next.",
        "Please provide more information.",
    ]
    assert all(breaker in setting_named("loop_message").default_value() for breaker in breakers)


def test_templates_have_a_placeholder_for_the_content() -> None:
    assert "{content}" in setting_named("code_output_template").default_value()
    assert "{content}" not in setting_named("empty_code_output_template").default_value()


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.name)
def test_defaults_are_valid_values(row) -> None:
    assert check_value(row, row.default_value()) == row.default_value()
    assert row.help.endswith(".")
    if row.headless is not None:
        check_value(row, row.headless)


def test_names_flags_and_variables_are_unique() -> None:
    flags = [f for row in SETTINGS for f in (row.flag, row.short, row.no_flag) if f]
    flags += [f for command in COMMANDS for f in (command.flag, command.short) if f]
    for taken in (flags, [row.name for row in SETTINGS], [row.env for row in SETTINGS if row.env]):
        assert len(taken) == len(set(taken))


def test_an_alias_has_the_kind_and_default_of_its_setting() -> None:
    for row in SETTINGS:
        if row.alias_of:
            target = setting_named(row.alias_of)
            assert (row.kind, row.default, row.optional) == (target.kind, target.default, target.optional)
