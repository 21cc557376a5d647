"""Thinking between tags in the text becomes reasoning, however the text is split."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.llm.reply_parser import thinks_first
from interpreter.llm.text_mode import TextParser
from model_server import reasoning, text
from scripted_llm import Start, folded


def spans(pieces: list[str], first: bool = False) -> list[tuple[str, str]]:
    """The chunks, joined with their neighbours of the same type."""
    parser = TextParser(fences=False, thinks_first=first)
    found = [chunk for piece in pieces for chunk in parser.feed(piece)] + parser.finish()
    groups = groupby(found, key=lambda chunk: chunk["type"])
    return [(kind, "".join(chunk["content"] for chunk in group)) for kind, group in groups]


M, R = "message", "reasoning"
TEXTS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "no thinking": ("Hello\nyou", [(M, "Hello\nyou")]),
    "at the beginning": ("<think>Hm.</think>Yes", [(R, "Hm."), (M, "Yes")]),
    "space around it": ("\n <think>\n Hm.\n\n</think>\n\nYes\n", [(R, "Hm."), (M, "Yes\n")]),
    "space inside": ("<think>a\n\nb </think>", [(R, "a\n\nb")]),
    "empty": ("<think>\n\n</think>\n\nYes", [(M, "Yes")]),
    "nothing after it": ("<think>Hm.</think>", [(R, "Hm.")]),
    "never closed": ("<think>Hm, </thi", [(R, "Hm, </thi")]),
    "never closed, trailing space": ("<think>Hm. \n", [(R, "Hm.")]),
    "two": ("<think>a</think>\n<think>b</think>Yes", [(R, "ab"), (M, "Yes")]),
    "later, on its own line": ("Well\n<think>Hm.</think>\nYes", [(M, "Well\n"), (R, "Hm."), (M, "Yes")]),
    "other tags": ("<thinking>a</thinking>[THINK]b[/THINK]Yes", [(R, "ab"), (M, "Yes")]),
    "another closing tag inside": ("<think>a </thinking> b</think>Yes", [(R, "a </thinking> b"), (M, "Yes")]),
    "mentioned in text": ("The <think> mark, `</think>`", [(M, "The <think> mark, `</think>`")]),
    "in code": ("```html\n<think>\n```\n", [(M, "```html\n<think>\n```\n")]),
    "in long fences": ("````\n```\n<think>\n````\n", [(M, "````\n```\n<think>\n````\n")]),
    "after code": ("~~~\nx\n~~~\n<think>a</think>b", [(M, "~~~\nx\n~~~\n"), (R, "a"), (M, "b")]),
    "almost a tag": ("<thin\n<thinker>", [(M, "<thin\n<thinker>")]),
    "only space": (" \n ", [(M, " \n ")]),
    "less than": ("a\n  <b>", [(M, "a\n  <b>")]),
}


@pytest.mark.parametrize(("words", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_thinking_is_recognised_however_the_text_is_split(words: str, expected: list[tuple[str, str]]) -> None:
    assert spans([words]) == expected
    assert spans(list(words)) == expected
    for at in range(len(words)):
        assert spans([words[:at], words[at:]]) == expected


PARTS = ["<think>", "</think>", "<", "[THINK]", "[/THINK]", "```", "~~~", "`", "\n", " ", "a", "<thi", "nk>"]


@given(st.lists(st.sampled_from(PARTS), max_size=14), st.data())
def test_any_split_of_any_text_gives_the_same_spans(parts: list[str], data: Any) -> None:
    words = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=6)))
    pieces = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    assert spans(pieces) == spans(list(words)) == spans([words])
    assert spans(pieces, True) == spans(list(words), True) == spans([words], True)


@given(st.text(alphabet="ab<>/think \n`", max_size=60))
def test_text_without_think_tags_stays_unchanged(words: str) -> None:
    if not any(f"<{mark}>" in words for mark in ("think", "thinking")):
        assert spans(list(words)) == ([(M, words)] if words else [])


UNOPENED: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "closing tag only": ("Hm.\n\nSo.\n</think>\n\nYes", [(R, "Hm.\n\nSo."), (M, "Yes")]),
    "in the middle of a line": ("Hm. </think> Yes", [(R, "Hm."), (M, "Yes")]),
    "with code in it": ("Try\n```python\nbad()\n```\n</think>\nYes", [(R, "Try\n```python\nbad()\n```"), (M, "Yes")]),
    "empty thinking": ("\n</think>\nYes", [(M, "Yes")]),
    "both tags": ("<think>\nHm.\n</think>\n\nYes", [(R, "Hm."), (M, "Yes")]),
    "no tag": ("Yes\n", [(R, "Yes"), (M, "Yes\n")]),
}


@pytest.mark.parametrize(("words", "expected"), UNOPENED.values(), ids=UNOPENED.keys())
def test_a_reply_may_start_inside_thinking(words: str, expected: list[tuple[str, str]]) -> None:
    assert spans([words], first=True) == expected
    assert spans(list(words), first=True) == expected
    for at in range(len(words)):
        assert spans([words[:at], words[at:]], first=True) == expected


def test_which_models_start_inside_thinking() -> None:
    assert thinks_first("ollama/deepseek-r1:7b")
    assert thinks_first("together_ai/deepseek-ai/DeepSeek-R1-Distill-Llama-70B")
    assert thinks_first("openai/QwQ-32B")
    assert not thinks_first("deepseek/deepseek-chat")
    assert not thinks_first("gpt-4o")


def test_a_separate_reasoning_field_turns_off_tag_parsing(asking: Start) -> None:
    reply = reasoning("Hm.").then(text("Yes, that </think> is a mark."))
    chunks = asking(reply, model="deepseek-r1").chunks()
    assert folded(chunks) == ["Yes, that </think> is a mark."]


def test_code_in_unopened_thinking_is_not_a_block(asking: Start) -> None:
    reply = text("I could\n```python\nbad()\n```\n</think>\n\n```python\n1\n```\n", 3)
    chunks = asking(reply, model="deepseek-r1:7b", supports_functions=False).chunks()
    assert folded(chunks) == [("python", "1")]


def test_text_streams_unless_a_tag_may_follow() -> None:
    parser = TextParser(fences=False)
    assert parser.feed("H") == [{"type": M, "content": "H"}]
    assert parser.feed("i <") == [{"type": M, "content": "i <"}]
    assert parser.feed("\n<") == [{"type": M, "content": "\n"}]
    assert parser.feed("b") == [{"type": M, "content": "<b"}]


@pytest.mark.parametrize("split", [None, 1, 5])
def test_code_inside_thinking_is_not_a_block(asking: Start, split: Any) -> None:
    reply = "<think>\nI could run\n```python\nbad()\n```\n</think>\n\nLook:\n```python\n1\n```\n"
    chunks = asking(text(reply, split), supports_functions=False).chunks()
    thought = [chunk["content"] for chunk in chunks if chunk["type"] == "reasoning"]
    assert "".join(thought) == "I could run\n```python\nbad()\n```"
    assert folded(chunks) == ["Look:\n", ("python", "1")]
