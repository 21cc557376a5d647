"""Keys: whose they are by their look, which ones are found, and the file that keeps some."""

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

LOOKS = {
    "sk-ant-api03-x": "anthropic",
    "sk-or-v1-x": "openrouter",
    "sk-proj-x": "openai",
    "sk-abcT3BlbkFJdef": "openai",
    "AIzaSyX": "gemini",
    "gsk_x": "groq",
    "xai-x": "xai",
    "sk-0123456789abcdef": None,  # several make such keys
    "anything": None,
    "": None,
}


@pytest.mark.parametrize(("key", "prefix"), LOOKS.items())
def test_whose_key_it_is(key: str, prefix: str | None) -> None:
    row = provider_of(key)
    assert (row.prefix if row else None) == prefix


@pytest.mark.parametrize("prefix", STARTING_MODELS)
def test_each_model_to_begin_with_is_one_that_its_provider_has(prefix: str) -> None:
    row = ROWS[prefix]
    assert row.base_url
    assert row.key_variables
    known = list(known_models(prefix))
    if known and prefix not in ("openrouter", "minimax"):  # it chooses itself; it writes its name in capitals
        assert look_up(starting_model(row)).price is not None


def test_a_key_that_says_which_model_is_found_before_one_that_does_not() -> None:
    found = list(
        keys_in_environment({"HF_TOKEN": "a", "XAI_API_KEY": "b", "LM_STUDIO_API_KEY": "c", "AI21_API_KEY": " "})
    )
    assert [(row.prefix, variable) for row, variable in found] == [("xai", "XAI_API_KEY"), ("huggingface", "HF_TOKEN")]
    assert [selects_provider(*pair) for pair in found] == [True, False]


def test_openai_goes_first_where_there_are_several() -> None:
    every = {row.key_variables[0]: "x" for row in PROVIDERS if row.key_variables}
    assert next(keys_in_environment(every))[0].prefix == "openai"


def test_the_file_keeps_several_and_is_read_as_people_write_it() -> None:
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
