"""Calls that a model writes out as text are repaired, so that the streamed code is the stored code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.llm.reply_parser import CallRepair, unwrapped
from interpreter.messages import Chunk
from scripted_llm import folded

CALL = '{"language": "shell", "code": "ls"}'
REPAIRED_CODE = {
    "`\nprint(1)": ("python", "print(1)"),
    "print(1)executeexecute": ("python", "print(1)"),
    "print(1)executeexecute\n": ("python", "print(1)\n"),
    "print('executeexecute')\n": ("python", "print('executeexecute')\n"),
    "executeexecute\nprint(1)": ("python", "executeexecute\nprint(1)"),
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


def repair_all(chunks: list[Chunk]) -> list[Any]:
    repair = CallRepair()
    out = [repaired for chunk in chunks for repaired in repair.feed([chunk])]
    return folded(out + repair.finish())


def code(pieces: list[str]) -> list[Chunk]:
    chunks: list[Chunk] = [{"type": "code", "format": "python", "content": piece} for piece in pieces]
    return [*chunks, {"type": "code", "format": "python", "end": True}]


def words(pieces: list[str]) -> list[Chunk]:
    return [{"type": "message", "content": piece} for piece in pieces]


@pytest.mark.parametrize(("written", "block"), REPAIRED_CODE.items())
def test_code_is_repaired_however_it_is_split(written: str, block: tuple[str, str]) -> None:
    assert repair_all(code([written])) == repair_all(code(list(written))) == [block]
    for at in range(len(written)):
        assert repair_all(code([written[:at], written[at:]])) == [block]


@pytest.mark.parametrize("written", [CALL, f"functions.execute({CALL})", f"\n\n{CALL}\n"])
def test_a_call_written_out_as_text_becomes_a_block(written: str) -> None:
    assert repair_all(words([written])) == repair_all(words(list(written))) == [("shell", "ls")]


def test_a_reply_that_only_starts_like_a_call_stays_text() -> None:
    for said in (
        '{"language": "r"} is JSON',
        "{x} is a set",
        "functions are fun",
        "f",
        "functions.execute(x)",
    ):
        assert repair_all(words([said])) == repair_all(words(list(said))) == [said]


def test_ordinary_text_is_passed_on_at_once() -> None:
    repair = CallRepair()
    assert repair.feed(words(["Hel"])) == words(["Hel"])
    assert repair.feed(words(["{"])) == words(["{"])


def test_blank_messages_and_leading_blank_lines_are_dropped() -> None:
    assert repair_all(words(["\n", " \n"])) == []
    two = [("python", "1"), ("python", "2")]
    assert repair_all([*words(["\n\n"]), *code(["1"]), *words(["\n"]), *code(["2"])]) == two
    assert repair_all(words(["\n", "\n  a\n"])) == ["  a\n"]


@given(st.text(alphabet="`\nexcut{}\"':, abcdlangu", max_size=40), st.data())
def test_splitting_does_not_change_the_repair(text: str, data: Any) -> None:
    at = data.draw(st.integers(0, len(text)))
    assert repair_all(code([text])) == repair_all(code(list(text))) == repair_all(code([text[:at], text[at:]]))
    assert repair_all(words([text])) == repair_all(words(list(text))) == repair_all(words([text[:at], text[at:]]))


@given(st.text(max_size=40), st.text(alphabet="abcR+#", min_size=1, max_size=8))
def test_the_code_of_a_written_out_call_is_recovered(code: str, language: str) -> None:
    assert unwrapped(json.dumps({"language": language, "code": code})) == (language, code)
