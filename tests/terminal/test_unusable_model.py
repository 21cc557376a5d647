"""A named model that can't be used: a short message says what to do and what was found."""

from __future__ import annotations

import pytest

from model_server import ModelServer, text
from terminal.person import ENTER, someone


def test_a_missing_key_says_what_to_do_and_which_keys_exist() -> None:
    with someone("--model", "gpt-4o", env={"GROQ_API_KEY": "gsk-secret"}) as person:
        person.sees("API key, hidden while you type (Enter to leave):")
        assert "OPENAI_API_KEY" in person.screen
        assert "Keys in the environment: GROQ_API_KEY." in person.screen
        assert "gsk-secret" not in person.raw
        assert "--api_base" in person.screen
        assert "--setup" in person.screen
        assert len(person.rows) < 14
        person.types(ENTER)
        assert person.ends() == 1
        assert person.mode_is_restored


def test_a_key_can_be_typed_and_is_not_shown() -> None:
    with someone("--model", "gpt-4o") as person:
        person.sees("API key, hidden")
        person.types("typed-key" + ENTER)
        person.sees("Save the key for next time?")
        person.types(ENTER)
        person.at_prompt()
        assert "typed-key" not in person.raw
        assert person.leaves() == 0


@pytest.mark.full
def test_a_custom_server_needs_no_key() -> None:
    with (
        ModelServer([text("Welcome.")]) as server,
        someone(env={"OPENAI_API_BASE": server.base_url}) as person,
    ):
        person.says("Hi")
        person.sees("Welcome.")
        assert person.leaves() == 0


def test_an_unreachable_server_is_reported() -> None:
    with ModelServer() as server:
        address = server.base_url
    with someone("--api_base", address, "--max_retries", "0") as person:
        person.says("Hi")
        person.sees("Nothing answers at")
        person.at_prompt()
        assert "Traceback" not in person.screen
        assert person.leaves() == 0


def test_an_unknown_provider_ends_the_program_at_once() -> None:
    with someone("--model", "acme/model") as person:
        assert person.ends() == 1
        assert "acme" in person.screen
