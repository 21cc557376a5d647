"""API keys: telling the provider by the key's prefix, finding keys in the environment, and the key file."""

from __future__ import annotations

import stat

import pytest

from interpreter.llm.providers import (
    PROVIDERS,
    ROWS,
    STARTING_MODELS,
    keys_in_environment,
    provider_of,
    save_key,
    saved_key_for,
    saved_keys,
    selects_provider,
    starting_model,
)
from interpreter.llm.usage import known_models, look_up

PROVIDER_BY_KEY = {
    "sk-ant-api03-x": "anthropic",
    "sk-or-v1-x": "openrouter",
    "sk-proj-x": "openai",
    "sk-abcT3BlbkFJdef": "openai",
    "AIzaSyX": "gemini",
    "gsk_x": "groq",
    "xai-x": "xai",
    "sk-0123456789abcdef": None,  # several providers issue such keys
    "anything": None,
    "": None,
}


@pytest.mark.parametrize(("key", "prefix"), PROVIDER_BY_KEY.items())
def test_the_provider_is_recognised_by_its_key(key: str, prefix: str | None) -> None:
    row = provider_of(key)
    assert (row.prefix if row else None) == prefix


@pytest.mark.parametrize("prefix", STARTING_MODELS)
def test_each_starting_model_is_offered_by_its_provider(prefix: str) -> None:
    row = ROWS[prefix]
    assert row.base_url
    assert row.key_variables
    known = list(known_models(prefix))
    # openrouter does its own routing; minimax capitalises its names
    if known and prefix not in ("openrouter", "minimax"):
        assert look_up(starting_model(row)).price is not None


def test_keys_that_select_a_provider_come_first() -> None:
    found = list(
        keys_in_environment({"HF_TOKEN": "a", "XAI_API_KEY": "b", "LM_STUDIO_API_KEY": "c", "AI21_API_KEY": " "})
    )
    assert [(row.prefix, variable) for row, variable in found] == [("xai", "XAI_API_KEY"), ("huggingface", "HF_TOKEN")]
    assert [selects_provider(*pair) for pair in found] == [True, False]


def test_openai_comes_first_when_several_keys_are_set() -> None:
    every = {row.key_variables[0]: "x" for row in PROVIDERS if row.key_variables}
    assert next(keys_in_environment(every))[0].prefix == "openai"


def test_the_key_file_keeps_several_keys_and_accepts_shell_syntax() -> None:
    assert saved_keys() == {}
    save_key("A_KEY", "one")
    save_key("B_KEY", "two")
    path = save_key("A_KEY", "three")
    assert saved_keys() == {"A_KEY": "three", "B_KEY": "two"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("# mine\n\nexport GROQ_API_KEY='x=y'\nEMPTY=\nno sign\n")
    assert saved_keys() == {"GROQ_API_KEY": "x=y"}
    assert saved_key_for(ROWS["groq"]) == "x=y"
    assert saved_key_for(ROWS["openai"]) is None
