"""Thinking that a model writes between marks in its text is told apart, however the text is cut."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asking import Start, folded
from interpreter.llm.reply_parser import thinks_first
from interpreter.llm.text_mode import TextParser
from model_server import reasoning, text


def spans(pieces: list[str], first: bool = False) -> list[tuple[str, str]]:
    """The pieces of one kind that stand together, put together."""
    parser = TextParser(fences=False, thinks_first=first)
    found = [chunk for piece in pieces for chunk in parser.feed(piece)] + parser.finish()
    groups = groupby(found, key=lambda chunk: chunk["type"])
    return [(kind, "".join(chunk["content"] for chunk in group)) for kind, group in groups]


M, R = "message", "reasoning"
TEXTS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "none": ("Hello\nyou", [(M, "Hello\nyou")]),
    "at the beginning": ("<think>Hm.</think>Yes", [(R, "Hm."), (M, "Yes")]),
    "with space around": ("\n <think>\n Hm.\n\n</think>\n\nYes\n", [(R, "Hm."), (M, "Yes\n")]),
    "space inside": ("<think>a\n\nb </think>", [(R, "a\n\nb")]),
    "empty": ("<think>\n\n</think>\n\nYes", [(M, "Yes")]),
    "nothing behind": ("<think>Hm.</think>", [(R, "Hm.")]),
    "never closed": ("<think>Hm, </thi", [(R, "Hm, </thi")]),
    "never closed, at a space": ("<think>Hm. \n", [(R, "Hm.")]),
    "two": ("<think>a</think>\n<think>b</think>Yes", [(R, "ab"), (M, "Yes")]),
    "later, on its own line": ("Well\n<think>Hm.</think>\nYes", [(M, "Well\n"), (R, "Hm."), (M, "Yes")]),
    "other marks": ("<thinking>a</thinking>[THINK]b[/THINK]Yes", [(R, "ab"), (M, "Yes")]),
    "other marks inside": ("<think>a </thinking> b</think>Yes", [(R, "a </thinking> b"), (M, "Yes")]),
    "talked about": ("The <think> mark, `</think>`", [(M, "The <think> mark, `</think>`")]),
    "in code": ("```html\n<think>\n```\n", [(M, "```html\n<think>\n```\n")]),
    "in long fences": ("````\n```\n<think>\n````\n", [(M, "````\n```\n<think>\n````\n")]),
    "behind code": ("~~~\nx\n~~~\n<think>a</think>b", [(M, "~~~\nx\n~~~\n"), (R, "a"), (M, "b")]),
    "nearly": ("<thin\n<thinker>", [(M, "<thin\n<thinker>")]),
    "only space": (" \n ", [(M, " \n ")]),
    "less than": ("a\n  <b>", [(M, "a\n  <b>")]),
}


@pytest.mark.parametrize(("words", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_any_cut_gives_the_same(words: str, expected: list[tuple[str, str]]) -> None:
    assert spans([words]) == expected
    assert spans(list(words)) == expected
    for at in range(len(words)):
        assert spans([words[:at], words[at:]]) == expected


PARTS = ["<think>", "</think>", "<", "[THINK]", "[/THINK]", "```", "~~~", "`", "\n", " ", "a", "<thi", "nk>"]


@given(st.lists(st.sampled_from(PARTS), max_size=14), st.data())
def test_any_text_in_any_cut_gives_the_same(parts: list[str], data: Any) -> None:
    words = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=6)))
    pieces = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    assert spans(pieces) == spans(list(words)) == spans([words])
    assert spans(pieces, True) == spans(list(words), True) == spans([words], True)


@given(st.text(alphabet="ab<>/think \n`", max_size=60))
def test_text_without_marks_comes_out_as_it_went_in(words: str) -> None:
    if not any(f"<{mark}>" in words for mark in ("think", "thinking")):
        assert spans(list(words)) == ([(M, words)] if words else [])


UNOPENED: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "only the closing mark": ("Hm.\n\nSo.\n</think>\n\nYes", [(R, "Hm.\n\nSo."), (M, "Yes")]),
    "in the middle of a line": ("Hm. </think> Yes", [(R, "Hm."), (M, "Yes")]),
    "with code in it": ("Try\n```python\nbad()\n```\n</think>\nYes", [(R, "Try\n```python\nbad()\n```"), (M, "Yes")]),
    "no thought": ("\n</think>\nYes", [(M, "Yes")]),
    "both marks": ("<think>\nHm.\n</think>\n\nYes", [(R, "Hm."), (M, "Yes")]),
    "none": ("Yes\n", [(R, "Yes"), (M, "Yes\n")]),
}


@pytest.mark.parametrize(("words", "expected"), UNOPENED.values(), ids=UNOPENED.keys())
def test_a_reply_that_begins_in_the_middle_of_a_thought(words: str, expected: list[tuple[str, str]]) -> None:
    assert spans([words], first=True) == expected
    assert spans(list(words), first=True) == expected
    for at in range(len(words)):
        assert spans([words[:at], words[at:]], first=True) == expected


def test_which_models_do_that() -> None:
    assert thinks_first("ollama/deepseek-r1:7b")
    assert thinks_first("together_ai/deepseek-ai/DeepSeek-R1-Distill-Llama-70B")
    assert thinks_first("openai/QwQ-32B")
    assert not thinks_first("deepseek/deepseek-chat")
    assert not thinks_first("gpt-4o")


def test_a_server_that_tells_thinking_apart_is_believed(asking: Start) -> None:
    reply = reasoning("Hm.").then(text("Yes, that </think> is a mark."))
    chunks = asking(reply, model="deepseek-r1").chunks()
    assert folded(chunks) == ["Yes, that </think> is a mark."]


def test_code_in_a_thought_that_was_never_opened_is_not_run(asking: Start) -> None:
    reply = text("I could\n```python\nbad()\n```\n</think>\n\n```python\n1\n```\n", 3)
    chunks = asking(reply, model="deepseek-r1:7b", supports_functions=False).chunks()
    assert folded(chunks) == [("python", "1")]


def test_words_are_not_held_back() -> None:
    parser = TextParser(fences=False)
    assert parser.feed("H") == [{"type": M, "content": "H"}]
    assert parser.feed("i <") == [{"type": M, "content": "i <"}]
    assert parser.feed("\n<") == [{"type": M, "content": "\n"}]
    assert parser.feed("b") == [{"type": M, "content": "<b"}]


@pytest.mark.parametrize("split", [None, 1, 5])
def test_in_a_reply_with_code(asking: Start, split: Any) -> None:
    reply = "<think>\nI could run\n```python\nbad()\n```\n</think>\n\nLook:\n```python\n1\n```\n"
    chunks = asking(text(reply, split), supports_functions=False).chunks()
    thought = [chunk["content"] for chunk in chunks if chunk["type"] == "reasoning"]
    assert "".join(thought) == "I could run\n```python\nbad()\n```"
    assert folded(chunks) == ["Look:\n", ("python", "1")]
