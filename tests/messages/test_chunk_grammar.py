"""The chunk grammar: flags around groups, and folding a stream into messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.messages import Chunk, Fold, Framer, fold

CODE: Chunk = {"role": "assistant", "type": "code", "format": "python", "content": "1"}
OUTPUT: Chunk = {"role": "computer", "type": "console", "format": "output", "content": "x"}
LINE: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": 1}
LAST: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None}


def framed(*chunks: Chunk) -> list[Chunk]:
    framer = Framer()
    return [each for chunk in chunks for each in framer.frame(chunk)] + list(framer.close())


def say(text: str) -> Chunk:
    return {"role": "assistant", "type": "message", "content": text}


def test_a_message_gets_start_and_end_flags() -> None:
    assert framed(say("Sure"), say(".")) == [
        {"role": "assistant", "type": "message", "start": True},
        say("Sure"),
        say("."),
        {"role": "assistant", "type": "message", "end": True},
    ]


def test_console_flags_carry_no_format_and_output_shares_a_group_with_active_lines() -> None:
    flag = {"role": "computer", "type": "console"}
    assert framed(LINE, OUTPUT, LAST) == [{**flag, "start": True}, LINE, OUTPUT, LAST, {**flag, "end": True}]


def test_a_plot_interrupts_the_console_group() -> None:
    image: Chunk = {"role": "computer", "type": "image", "format": "base64.png", "content": "aaaa"}
    shape = [
        (chunk["type"], chunk.get("format"), chunk.get("start"), chunk.get("end"))
        for chunk in framed(LINE, image, LAST)
    ]
    assert shape == [
        ("console", None, True, None),
        ("console", "active_line", None, None),
        ("console", None, None, True),
        ("image", "base64.png", True, None),
        ("image", "base64.png", None, None),
        ("image", "base64.png", None, True),
        ("console", None, True, None),
        ("console", "active_line", None, None),
        ("console", None, None, True),
    ]


def test_the_confirmation_ends_the_group_before_it_and_has_no_flags() -> None:
    ask: Chunk = {"role": "computer", "type": "confirmation", "format": "execution", "content": {}}
    assert [chunk["type"] for chunk in framed(CODE, ask)] == ["code", "code", "code", "confirmation"]
    assert framed(CODE, ask)[2] == {"role": "assistant", "type": "code", "format": "python", "end": True}


def test_two_blocks_of_one_language_are_two_groups() -> None:
    end: Chunk = {"role": "assistant", "type": "code", "format": "python", "end": True}
    chunks = framed(CODE, end, CODE, end)
    assert sum(1 for chunk in chunks if chunk.get("start")) == 2
    assert [message["content"] for message in fold(chunks)] == ["1", "1"]


def test_empty_content_is_dropped() -> None:
    assert framed(say("")) == []


def test_a_status_chunk_does_not_split_a_message() -> None:
    status: Chunk = {"role": "computer", "type": "status", "format": "retry", "content": {"seconds": 1}}
    assert [message["content"] for message in fold(framed(say("a"), status, say("b")))] == ["ab"]


def test_ephemeral_chunks_are_not_stored() -> None:
    reasoning: Chunk = {"role": "assistant", "type": "reasoning", "content": "hmm"}
    ask: Chunk = {"role": "computer", "type": "input_request", "content": "name?"}
    assert [message["type"] for message in fold(framed(reasoning, CODE, LINE, ask, OUTPUT, LAST))] == [
        "code",
        "console",
    ]


def test_a_block_without_output_is_stored_with_empty_output() -> None:
    assert fold(framed(CODE, LINE, LAST))[-1] == {
        "role": "computer",
        "type": "console",
        "format": "output",
        "content": "",
    }


def test_how_a_block_ended_is_stored_only_for_failures() -> None:
    fine = fold(framed(CODE, OUTPUT, {**LAST, "exit_code": 0, "ended": "done"}))
    assert set(fine[-1]) == {"role", "type", "format", "content"}
    failed = fold(framed(CODE, OUTPUT, {**LAST, "exit_code": 3, "ended": "error"}))
    assert (failed[-1].get("exit_code"), failed[-1].get("ended")) == (3, "error")


def test_stored_messages_never_alias_a_chunk() -> None:
    chunks = framed(say("a"), say("b"), OUTPUT)
    before = [dict(chunk) for chunk in chunks]
    stored = fold(chunks)
    stored[0]["content"] += "!"
    assert chunks == before
    assert not any(message is chunk for message in stored for chunk in chunks)


def test_the_list_may_be_replaced_in_the_middle_of_a_stream() -> None:
    lists: list[list[Any]] = [[]]
    folding = Fold(lambda: lists[-1])
    folding.add(say("a"))
    folding.close()
    lists.append([])
    folding.add(say("b"))
    folding.close()
    assert [[message["content"] for message in each] for each in lists] == [["a"], ["b"]]


@given(st.lists(st.text(min_size=1), min_size=1))
def test_a_message_folds_to_the_sum_of_its_pieces(pieces: list[str]) -> None:
    assert [message["content"] for message in fold(framed(*map(say, pieces)))] == ["".join(pieces)]


@given(st.lists(st.sampled_from([CODE, OUTPUT, LINE, say("a")])))
def test_flags_are_balanced_and_never_nested(chunks: list[Chunk]) -> None:
    depth = 0
    for chunk in framed(*chunks):
        depth += bool(chunk.get("start")) - bool(chunk.get("end"))
        assert depth in (0, 1)
    assert depth == 0


@pytest.mark.parametrize("size", [10, 100_000])
def test_long_output_keeps_its_head_and_tail_and_names_the_full_file(size: int) -> None:
    text = "a" * size + "z" * size
    stored = fold(framed(CODE, {**OUTPUT, "content": text}, {**LAST, "truncated": "whole.txt"}), max_output=300)[-1]
    if size == 10:
        assert stored["content"] == text
        return
    assert stored["content"].startswith("a" * 100 + "\n[")
    assert stored["content"].endswith("]\n" + "z" * 200)
    assert "200,000 characters" in stored["content"]
    assert "whole.txt" in stored["content"]
    assert stored["truncated"] == "whole.txt"
