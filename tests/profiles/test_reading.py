"""Reading profiles in YAML and JSON, and their error messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.config.profiles import load
from interpreter.config.profiles.load import read
from interpreter.config.profiles.profile import ProfileLocation
from interpreter.errors import ProfileError


def settings(text: str, kind: str = ".yaml", **environ: str) -> dict[str, Any]:
    return dict(read(ProfileLocation(f"p{kind}"), text, environ).settings)


def profile_error(text: str, kind: str = ".yaml", **environ: str) -> str:
    with pytest.raises(ProfileError) as refusal:
        settings(text, kind, **environ)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "llm:\n  model: x\n  temperature: 0.5\nauto_run: true\n",
            {"llm.model": "x", "llm.temperature": 0.5, "auto_run": True},
        ),
        ("llm.model: x\nllm.max_tokens: 10\n", {"llm.model": "x", "llm.max_tokens": 10}),
        ("safe_mode: off\n", {"safe_mode": "off"}),
        ("llm:\n  api_version: 2024-02-01\n", {"llm.api_version": "2024-02-01"}),
        ("llm:\n  model: 123\n", {"llm.model": "123"}),
        ("llm:\n  execution_instructions: false\n", {"llm.execution_instructions": False}),
        ("llm:\n  max_tokens: null\n", {"llm.max_tokens": None}),
        ("custom_instructions:\nllm:\ncomputer:\n", {}),
        ("version: 0.2.5\nwtf:\n  model: x\n", {}),
        ("version: 0.1.0\nverbose: true\n", {"verbose": True}),
        ("loop_breakers: [a, b]\n", {"loop_breakers": ["a", "b"]}),
        (
            "computer:\n  mail_account:\n    imap: imap.example.org\n    timeout: 5\n",
            {"computer.mail_account": {"imap": "imap.example.org", "timeout": 5}},
        ),
        ("", {}),
        ("# nothing\n", {}),
        (
            "a: &base {temperature: 1}\nllm:\n  <<: *base\n  model: x\n".replace("a:", "wtf:"),
            {"llm.temperature": 1, "llm.model": "x"},
        ),
    ],
)
def test_yaml_profiles_are_read(text: str, expected: dict[str, Any]) -> None:
    assert settings(text) == expected


def test_json_profiles_are_read() -> None:
    text = json.dumps(
        {"llm": {"model": "x", "max_tokens": None}, "auto_run": True, "computer.shell_rc": True}, indent="\t"
    )
    assert settings(text, ".json") == {
        "llm.model": "x",
        "llm.max_tokens": None,
        "auto_run": True,
        "computer.shell_rc": True,
    }


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("model", "llm.model", "x"),
        ("temperature", "llm.temperature", 0.3),
        ("local", "offline", True),
        ("function_calling_llm", "llm.supports_functions", True),
        ("llm_supports_vision", "llm.supports_vision", True),
        ("api_base", "llm.api_base", "http://x/v1"),
        ("max_budget", "llm.max_budget", 2),
        ("debug_mode", "verbose", True),
        ("force_task_completion", "loop", True),
        ("llm.max_output", "max_output", 900),
        ("llm.custom_instructions", "custom_instructions", "Be brief."),
    ],
)
def test_old_names_are_accepted(old: str, new: str, value: object) -> None:
    assert settings(json.dumps({old: value}), ".json") == {new: value}


def test_an_old_switch_becomes_a_choice() -> None:
    for value, choice in {"false": "never", "true": "ask"}.items():
        assert settings(f"computer:\n  offer_packages: {value}\n", ".yaml") == {"computer.install_missing": choice}


def test_an_obsolete_name_is_a_notice_not_an_error() -> None:
    [notice] = read(ProfileLocation("p.yaml"), "auto_run: true\nuse_containers: true\n").notices
    assert notice.startswith("p.yaml, line 2: use_containers does nothing")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (
            "auto_run: true\nllm:\n  modle: x\n",
            ".yaml",
            "p.yaml, line 3: There is no setting named llm.modle. Did you mean llm.model?",
        ),
        ("\nautorun: true\n", ".yaml", "p.yaml, line 2: There is no setting named autorun. Did you mean auto_run?"),
        ("llm:\n  max_tokens: many\n", ".yaml", "p.yaml, line 2: llm.max_tokens takes int or None, not 'many' (str)."),
        ("safe_mode: on\n", ".yaml", "p.yaml, line 1: safe_mode takes 'off' or 'ask' or 'auto', not 'on'."),
        ("auto_run: true\n  x: [\n", ".yaml", "p.yaml, line 2: this is not YAML: "),
        ("- a\n- b\n", ".yaml", "p.yaml, line 1: a profile is a list of names with values"),
        ("just words", ".yaml", "p.yaml, line 1: a profile is a list of names with values"),
        ("computer:\n  languages: python\n", ".yaml", "p.yaml, line 2: computer.languages takes a list of names"),
        ("start_script: [1]\n", ".yaml", "p.yaml, line 1: start_script takes Python code."),
        ('{\n\t"llm": {\n\t\t"modle": "x"\n\t}\n}', ".json", "p.json, line 3: There is no setting named llm.modle."),
        ('{\n"auto_run": yes}', ".json", "p.json, line 2: this is not JSON: Expecting value."),
        ("[]", ".json", "p.json, line 1: a profile is an object"),
    ],
)
def test_errors_name_file_line_and_key(text: str, kind: str, words: str) -> None:
    assert profile_error(text, kind).startswith(words)


def test_an_account_can_be_set_in_json() -> None:
    text = json.dumps({"computer": {"mail_account": {"imap": "imap.example.org"}}})
    assert settings(text, ".json") == {"computer.mail_account": {"imap": "imap.example.org"}}


def test_all_errors_are_reported_at_once() -> None:
    told = profile_error("autorun: true\nllm:\n  modle: x\n").splitlines()
    assert [line.split(":")[0] for line in told] == ["p.yaml, line 1", "p.yaml, line 3"]


def test_a_setting_given_twice_is_a_notice() -> None:
    profile = read(ProfileLocation("p.yaml"), "llm:\n  model: a\nmodel: b\n")
    assert profile.settings == {"llm.model": "b"}
    assert profile.notices == ["p.yaml, line 3: llm.model is set twice; line 2 is ignored."]


def test_yaml_bombs_are_refused() -> None:
    bombs = "\n".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    assert "more than" in profile_error(f"wtf:\n  a0: &a0 [x]\n{bombs}\n")
    assert "more than" in profile_error("llm: &a\n  llm: *a\n")


# -- environment variables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("$KEY", "s3cret"),
        ("${KEY}", "s3cret"),
        ("a-${KEY}-b", "a-s3cret-b"),
        ("${NONE:-other}", "other"),
        ("$$KEY", "$KEY"),
        ("costs $5", "costs $5"),
    ],
)
def test_variables_are_filled_in(written: str, filled: str) -> None:
    assert settings(f"llm:\n  api_key: '{written}'\n", KEY="s3cret") == {"llm.api_key": filled}
    account = f"computer:\n  mail_account:\n    user: '{written}'\n"
    assert settings(account, KEY="s3cret") == {"computer.mail_account": {"user": filled}}


def test_a_variable_can_hold_a_number_or_a_switch() -> None:
    text = "llm:\n  max_tokens: $N\nauto_run: $YES\nloop_breakers: [$WORD]\n"
    found = settings(text, N="5", YES="true", WORD="Enough.")
    assert found == {"llm.max_tokens": 5, "auto_run": True, "loop_breakers": ["Enough."]}
    assert "line 2: llm.max_tokens takes int" in profile_error(text, N="x", YES="true", WORD="y")


def test_an_unset_variable_is_an_error_with_its_line() -> None:
    assert profile_error("llm:\n  api_key: $NONE\n").startswith(
        "p.yaml, line 2: llm.api_key: the environment variable NONE is not set."
    )


def test_unset_variables_in_instructions_are_left_alone() -> None:
    found = settings("custom_instructions: Look at $PATH and $HOME.\n", HOME="/h")
    assert found == {"custom_instructions": "Look at $PATH and /h."}


# -- languages ---------------------------------------------------------------------------------------------------


def test_a_profile_can_choose_the_languages(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("computer:\n  languages: [Python, bash, ruby, html]\n")
    interpreter = OpenInterpreter()
    load(interpreter, str(file))
    assert [language.name for language in interpreter.computer.languages] == ["Python", "Shell", "Ruby", "HTML"]
    file.write_text("computer:\n  languages: [pyhton]\n")
    with pytest.raises(ProfileError, match=r"p\.yaml, line 2: there is no language pyhton\. Available: python, shell"):
        load(OpenInterpreter(), str(file))
