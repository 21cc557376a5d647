"""The arguments shown before a call is sent: nothing in them can hide or control the terminal."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from interpreter.computer_api.code_calls import ResolvedCall, ask_before_sending
from interpreter.questions import APPROVE, Answer


def send(to: str, **more: Any) -> None:
    """A method that sends something."""


@pytest.mark.parametrize(
    "hidden",
    [
        "\x1b]52;c;cm0gLXJm\x07",
        "\x1b[2J",
        "\r",
        "\u202e",
        "\u2066",
        "\u200b",
        "\u3164",
        "\uffa0",
        "\U000e0041",
        "\u2028",
    ],
)
def test_nothing_hides_in_a_question_or_in_the_record(hidden: str) -> None:
    asked: list[str] = []
    use = ResolvedCall(
        "computer.mail.send", "call", send, (f"a{hidden}b",), {"subject": [hidden], "\u3164": 1}, sends=True
    )
    for question in ask_before_sending(use):
        asked.append(question.text)
        question.settle(Answer(APPROVE))
    for words in (asked[0].replace("\n", ""), str(use), use.full_text):
        assert not [each for each in words if unicodedata.category(each)[0] == "C" or each in "\u3164\uffa0\u2028"]
        assert "b" in words
