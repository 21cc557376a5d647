"""Calls that a model writes out as text are mended, so that what is streamed is what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asking import folded
from interpreter.llm.reply_parser import CallRepair, unwrapped
from interpreter.messages import Chunk

CALL = '{"language": "shell", "code": "ls"}'
MENDED_CODE = {
    "`\nprint(1)": ("python", "print(1)"),
    "print(1)executeexecute": ("python", "print(1)"),
    "executeexecute": ("python", ""),
    "print('execute')": ("python", "print('execute')"),
    "executeexecut": ("python", "executeexecut"),
    CALL: ("shell", "ls"),
    f"functions.execute({CALL})": ("shell", "ls"),
    f"\n functions.execute( {CALL} );\n": ("shell", "ls"),
    '{language: "shell", code: "ls"}': ("shell", "ls"),
    '{"code": "a\nb", "language": "r"}': ("r", "a\nb"),
    '{"language": "r", "code": "1", "more": 1}': ("python", '{"language": "r", "code": "1", "more": 1}'),
    '{"language": "shell"}': ("python", '{"language": "shell"}'),
    '{"a": 1}': ("python", '{"a": 1}'),
    "functions.other(1)": ("python", "functions.other(1)"),
    "`\n`\nx": ("python", "`\nx"),
    "x": ("python", "x"),
    "": ("python", ""),
}


def mend(chunks: list[Chunk]) -> list[Any]:
    repair = CallRepair()
    out = [mended for chunk in chunks for mended in repair.feed([chunk])]
    return folded(out + repair.finish())


def code(pieces: list[str]) -> list[Chunk]:
    chunks: list[Chunk] = [{"type": "code", "format": "python", "content": piece} for piece in pieces]
    return [*chunks, {"type": "code", "format": "python", "end": True}]


def words(pieces: list[str]) -> list[Chunk]:
    return [{"type": "message", "content": piece} for piece in pieces]


@pytest.mark.parametrize(("written", "block"), MENDED_CODE.items())
def test_code_is_mended_however_it_is_cut(written: str, block: tuple[str, str]) -> None:
    assert mend(code([written])) == mend(code(list(written))) == [block]
    for at in range(len(written)):
        assert mend(code([written[:at], written[at:]])) == [block]


@pytest.mark.parametrize("written", [CALL, f"functions.execute({CALL})", f"\n\n{CALL}\n"])
def test_a_reply_that_is_a_call_written_out_is_a_block(written: str) -> None:
    assert mend(words([written])) == mend(words(list(written))) == [("shell", "ls")]


def test_a_reply_that_only_begins_like_a_call_is_words() -> None:
    for said in (
        '{"language": "r"} is JSON',
        "{x} is a set",
        "functions are fun",
        "f",
        "functions.execute(x)",
    ):
        assert mend(words([said])) == mend(words(list(said))) == [said]


def test_words_are_passed_on_at_once_when_nothing_is_suspicious() -> None:
    repair = CallRepair()
    assert repair.feed(words(["Hel"])) == words(["Hel"])
    assert repair.feed(words(["{"])) == words(["{"])


def test_blank_messages_are_dropped_and_blank_lines_before_words() -> None:
    assert mend(words(["\n", " \n"])) == []
    two = [("python", "1"), ("python", "2")]
    assert mend([*words(["\n\n"]), *code(["1"]), *words(["\n"]), *code(["2"])]) == two
    assert mend(words(["\n", "\n  a\n"])) == ["  a\n"]


@given(st.text(alphabet="`\nexcut{}\"':, abcdlangu", max_size=40), st.data())
def test_any_code_and_any_words_are_mended_the_same_however_they_are_cut(text: str, data: Any) -> None:
    at = data.draw(st.integers(0, len(text)))
    assert mend(code([text])) == mend(code(list(text))) == mend(code([text[:at], text[at:]]))
    assert mend(words([text])) == mend(words(list(text))) == mend(words([text[:at], text[at:]]))


@given(st.text(max_size=40), st.text(alphabet="abcR+#", min_size=1, max_size=8))
def test_a_call_written_out_gives_back_its_code(code: str, language: str) -> None:
    assert unwrapped(json.dumps({"language": language, "code": code})) == (language, code)
