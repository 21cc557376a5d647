"""Keys: whose they are by their look, which ones are found, and the file that keeps some."""

from __future__ import annotations

import stat

import pytest

from interpreter.llm import keys, prices
from interpreter.llm.catalogue import PROVIDERS, ROWS

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
    row = keys.provider_of(key)
    assert (row.prefix if row else None) == prefix


@pytest.mark.parametrize("prefix", keys.STARTING_MODELS)
def test_each_model_to_begin_with_is_one_that_its_provider_has(prefix: str) -> None:
    row = ROWS[prefix]
    assert row.base_url
    assert row.key_variables
    known = list(prices.models(prefix))
    if known and prefix not in ("openrouter", "minimax"):  # it chooses itself; it writes its name in capitals
        assert prices.look_up(keys.starting_model(row)) is not None


def test_a_key_that_says_which_model_is_found_before_one_that_does_not() -> None:
    found = list(
        keys.in_environment({"HF_TOKEN": "a", "XAI_API_KEY": "b", "LM_STUDIO_API_KEY": "c", "AI21_API_KEY": " "})
    )
    assert [(row.prefix, variable) for row, variable in found] == [("xai", "XAI_API_KEY"), ("huggingface", "HF_TOKEN")]
    assert [keys.settles(*pair) for pair in found] == [True, False]


def test_openai_goes_first_where_there_are_several() -> None:
    every = {row.key_variables[0]: "x" for row in PROVIDERS if row.key_variables}
    assert next(keys.in_environment(every))[0].prefix == "openai"


def test_the_file_keeps_several_and_is_read_as_people_write_it() -> None:
    assert keys.kept() == {}
    keys.keep("A_KEY", "one")
    keys.keep("B_KEY", "two")
    path = keys.keep("A_KEY", "three")
    assert keys.kept() == {"A_KEY": "three", "B_KEY": "two"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("# mine\n\nexport GROQ_API_KEY='x=y'\nEMPTY=\nno sign\n")
    assert keys.kept() == {"GROQ_API_KEY": "x=y"}
    assert keys.kept_for(ROWS["groq"]) == "x=y"
    assert keys.kept_for(ROWS["openai"]) is None
