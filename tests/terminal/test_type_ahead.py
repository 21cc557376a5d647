"""Text typed while the model works: kept, editable, and sent with Enter; a paste is never sent automatically."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpreter.frontends.terminal.keyboard import TypeAhead


def typed(*keys: bytes) -> TypeAhead:
    ahead = TypeAhead()
    for key in keys:
        ahead.feed(key)
    return ahead


def test_enter_sends_and_the_rest_stays_open() -> None:
    ahead = typed(b"first\r", b"second\r", b"thi")
    assert (ahead.take_sent(), ahead.open) == ("first\nsecond", "thi")
    assert ahead.take_all() == "thi"
    assert ahead.take_all() == ""


def test_a_command_is_sent_alone() -> None:
    ahead = typed(b"one\r", b"two\r", b"%vars\r", b">>> x\r", b"three\r")
    assert [ahead.take_sent() for _ in range(5)] == ["one\ntwo", "%vars", ">>> x", "three", ""]


def test_take_all_returns_sent_and_open_lines() -> None:
    assert typed(b"one\r", b"two").take_all() == "one\ntwo"


def test_editing_keys_change_the_open_line() -> None:
    assert typed(b"abc\x7f\x7fX").open == "aX"
    assert typed(b"abc\x15d").open == "d"
    assert typed(b"a\x1b[Ab\x1bOPc\x1b[3~d").open == "abcd"
    assert typed(b"a\nb").open == "a\nb"
    assert typed(b"\r  \r").sent == []


def test_a_paste_is_not_sent() -> None:
    ahead = typed(b"look: \x1b[200~line 1\rline 2\r\nline 3\x1b[201~ ok")
    assert (ahead.sent, ahead.open) == ([], "look: line 1\nline 2\nline 3 ok")


@given(cut=st.integers(0, 40))
def test_keys_may_be_split_anywhere(cut: int) -> None:
    keys = "é\x1b[200~漢\r字\x1b[201~\x1b[Ab".encode()
    assert typed(keys[:cut], keys[cut:]).open == "é漢\n字b"
