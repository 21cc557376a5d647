"""A reply that repeats itself is cut off while it streams; one that is merely regular is not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import Chatting, chatting
from interpreter.errors import RepeatingReplyError
from interpreter.llm.reply_parser import Repetition, repeats
from model_replies import text

__all__ = ["chatting"]


def cut_at(said: str, piece: int = 4) -> int | None:
    repetition = Repetition()
    for at in range(0, len(said), piece):
        if repetition.feed(said[at : at + piece]):
            return at
    return None


@given(st.text(st.characters(codec="ascii"), min_size=4, max_size=200), st.text(max_size=300))
def test_any_repeated_sentence_is_detected(sentence: str, before: str) -> None:
    at = cut_at(before + sentence * 2000)
    assert at is not None
    assert at < len(before) + 2000 + 8 * len(sentence)


def test_repetition_in_one_large_chunk_is_detected() -> None:
    assert cut_at("I will do it again. " * 500, piece=100_000) is not None


@pytest.mark.parametrize(
    "said",
    [
        "-" * 400,
        "\n".join(f"| {n} | {n * n} | {'yes' if n % 2 else 'no'} |" for n in range(500)),
        "\n".join(f"df['c{n}'] = df['c{n}'].fillna(0)" for n in range(300)),
        "[" + "0, " * 300 + "]",
        "        self.x = x\n" * 20,
        "ha " * 50,
    ],
)
def test_regular_text_is_not_a_repetition(said: str) -> None:
    assert cut_at(said) is None


def test_random_words_are_not_a_repetition() -> None:
    words = random.Random(7).choices(["alpha", "beta", "gamma", "delta"], k=20_000)
    assert cut_at(" ".join(words)) is None


def test_only_a_repetition_at_the_end_counts() -> None:
    assert repeats("again and again. " * 100)
    assert not repeats("again and again. " * 100 + "Now to something else entirely, which ends it. ")


REPEATING = "```python\n" + "print('once more')\n" * 200 + "```"


def test_the_model_is_asked_again_without_the_repeated_text(chatting: Chatting) -> None:
    interpreter, server = chatting(text(REPEATING, split=10), text("Sorry. It is 7."), auto_run=True)
    interpreter.chat("What is it?", display=False)
    assert interpreter.messages[-1]["content"] == "Sorry. It is 7."
    sent = str(server.requests[1].body["messages"])
    assert "once more" not in sent
    assert "repeated itself" in sent
    assert not any(message["role"] == "computer" for message in interpreter.messages)  # a partial block does not run


def test_a_second_repetition_raises_an_error(chatting: Chatting) -> None:
    interpreter, server = chatting(*[text(REPEATING, split=10)] * 2)
    with pytest.raises(RepeatingReplyError, match="kept repeating"):
        interpreter.chat("What is it?", display=False)
    assert len(server.requests) == 2
    assert len(interpreter.messages) == 3  # both partial replies are kept
