"""The final text of console output, however the stream was split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.console_text import ConsoleText


def final_text(*pieces: str, limit: int = 10_000) -> str:
    console = ConsoleText(limit)
    for piece in pieces:
        console.write(piece)
    return console.text()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("plain\n", "plain\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("long line\rshort\n", "shortline\n"),
        ("long line\r\x1b[Kshort\n", "short\n"),
        ("\x1b[31mred\x1b[0m\n", "red\n"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07\n", "link\n"),
        ("ab\b\bcd\n", "cd\n"),
        ("emoji 🎉\n", "emoji 🎉\n"),
        ("no newline", "no newline"),
    ],
)
def test_text_is_resolved_as_a_terminal_would(raw: str, text: str) -> None:
    assert final_text(raw) == text


@given(
    st.lists(
        st.sampled_from(["a", "bc", "\r", "\n", "\r\n", "\b", "\x1b[31m", "\x1b[K", "\x1b]0;t\x07", "🎉", "\x1b"])
    ),
    st.data(),
)
def test_any_split_gives_the_same_text(tokens: list[str], data: st.DataObject) -> None:
    raw = "".join(tokens)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)))))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert final_text(*pieces) == final_text(raw)


@given(st.lists(st.text(alphabet="ab\n", max_size=30)), st.integers(0, 60))
def test_bounded_text_keeps_both_ends(pieces: list[str], limit: int) -> None:
    raw = "".join(pieces)
    text = final_text(*pieces, limit=limit)
    if len(raw) <= limit:
        assert text == raw
    else:
        head, _, rest = text.partition("\n[... ")
        _, _, tail = rest.partition(" ...]\n")
        assert raw.startswith(head)
        assert raw.endswith(tail)
        assert len(head) + len(tail) == limit


def test_a_hundred_megabytes_on_one_line_stay_bounded() -> None:
    console = ConsoleText(1000)
    for _ in range(100):
        console.write("x" * 1_000_000)
    assert len(console.text()) < 1100
    assert "100,000,000 characters" in console.text()
