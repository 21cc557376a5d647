"""Program output: colours stay, other escapes go, long output is folded, and progress bars stay in place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.console_text import visible
from interpreter.frontends.terminal.render.ansi import (
    LINE_LIMIT,
    ProgramText,
    clip,
    without_styles,
)
from interpreter.frontends.terminal.render.code_block import (
    HEAD,
    TAIL,
    OutputView,
)
from interpreter.frontends.terminal.render.theme import Theme


def lines_of(*pieces: str, color: bool = True) -> list[str]:
    text = ProgramText(color=color)
    return [line for piece in pieces for line in text.feed(piece)] + text.close()


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("no end", ["no end"]),
        ("\n\n", ["", ""]),
        ("10%\r20%\r30%\n", ["30%"]),
        ("10%\r20%\r", ["20%"]),
        ("old\r\x1b[Knew\n", ["new"]),
        ("old\x1b[2K\rnew\n", ["new"]),
        ("old\x1b[1Gnew\n", ["new"]),
        ("abc\b\bX\n", ["aX"]),
        ("[bold]not markup[/bold] [/x]\n", ["[bold]not markup[/bold] [/x]"]),
        ("up\x1b[1A\x1b[2J\x1b[5;5Hdown\n", ["updown"]),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\\n", ["ab"]),
        ("\x1bP1;2|data\x1b\\x\x1b(B\x1b=\x1b>\n", ["x"]),
        ("bell\x07 nul\x00 c1\x9b31m\n", ["bell nul c131m"]),
        ("tab\there\n", ["tab\there"]),
        (f"\x1b[{'9' * 5000}mlong\n", ["long"]),  # no number that Python reads
    ],
)
def test_program_output_becomes_clean_lines(printed: str, shown: list[str]) -> None:
    assert lines_of(printed) == shown


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("8", ""),
        ("08", ""),
        ("1;8;31", "1;31"),
        ("38;5;8;48;5;0", "38;5;8;48;5;0"),  # 8 is a colour there
        ("30;40", "30;40;39;49"),
        ("38;5;0;40", "38;5;0;40;39;49"),
        ("97;48;5;15", "97;48;5;15;39;49"),
        ("38:2::1:2:3;48;2;1;2;3", "38:2::1:2:3;48;2;1;2;3;39;49"),
        ("30;47", "30;47"),
        ("38;2;0;0;0;40", "38;2;0;0;0;40;39;49"),
        ("38;5;16;48;5;232", "38;5;16;48;5;232;39;49"),
        ("38;2;9;9;9;48;5;0", "38;2;9;9;9;48;5;0;39;49"),
        ("38;5;231;107", "38;5;231;107;39;49"),
        ("38;5;244;40", "38;5;244;40"),
        ("8:1", ""),
        ("38:2:1;40", "38:2:1;40;39;49"),
    ],
)
def test_styles_that_hide_text_are_dropped(style: str, shown: str) -> None:
    (line,) = lines_of(f"\x1b[{style}mtext")
    assert line == (f"\x1b[{shown}mtext\x1b[0m" if shown else "text")


def test_text_is_not_hidden_by_styles_one_after_the_other() -> None:
    assert lines_of("\x1b[30m\x1b[40mhidden\x1b[0;30mseen") == ["\x1b[30m\x1b[40;39;49mhidden\x1b[0;30mseen\x1b[0m"]


def test_colours_stay_and_end_with_their_line() -> None:
    assert lines_of("\x1b[31mred\nstill\x1b[0m\nplain\n") == [
        "\x1b[31mred\x1b[0m",
        "\x1b[31mstill\x1b[0m\x1b[0m",
        "plain",
    ]
    assert lines_of("\x1b[31mred\x1b[0m\n", color=False) == ["red"]


PIECES = [
    "a",
    "\n",
    "\r",
    "\r\n",
    "\b",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[K",
    "\x1b[2A",
    "\x1b]0;t\x07",
    "\x1b",
    "[",
    "é",
]


@given(parts=st.lists(st.sampled_from(PIECES), max_size=25), data=st.data())
@settings(max_examples=300, deadline=None)
def test_any_split_gives_the_same_lines(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cut = data.draw(st.integers(0, len(text)))
    assert lines_of(text[:cut], text[cut:]) == lines_of(text) == lines_of(*text)


@given(text=st.text(alphabet="ab\x1b[]0;31mKHJ\x07\\\r\n\b\x9b?P", max_size=60))
@settings(max_examples=300, deadline=None)
def test_nothing_but_colours_reaches_the_terminal(text: str) -> None:
    for line in lines_of(text):
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]", without_styles(line))


def test_an_endless_line_uses_limited_memory() -> None:
    text = ProgramText()
    for _ in range(50):
        text.feed("x" * 100_000)
    assert len(text.open) == LINE_LIMIT + 1


def view(columns: int = 80) -> OutputView:
    return OutputView(Theme(), columns)


def test_short_output_is_shown_whole() -> None:
    output = view()
    rows = output.feed("".join(f"{n}\n" for n in range(HEAD)))
    assert rows + output.close() == [str(n) for n in range(HEAD)]


def test_slightly_longer_output_is_not_folded() -> None:
    output = view()
    count = HEAD + TAIL
    rows = output.feed("".join(f"{n}\n" for n in range(count)))
    assert rows + output.close() == [str(n) for n in range(count)]


def test_long_output_shows_its_ends_and_the_path_of_the_rest() -> None:
    output = view()
    rows: list[str] = []
    for number in range(1000):
        rows += output.feed(f"line {number}\n")
    assert rows == [f"line {n}" for n in range(HEAD)]
    assert output.open_rows()[-1] == "line 999"
    hint, *tail = output.close()
    assert tail == [f"line {n}" for n in range(1000 - TAIL, 1000)]
    said = re.search(r"(\d+) more lines, all in (\S+)", without_styles(hint))
    assert said is not None
    assert int(said[1]) == 1000 - HEAD - TAIL
    assert Path(said[2]).read_text() == "".join(f"line {n}\n" for n in range(1000))


def test_the_blocks_own_output_file_is_named(tmp_path: Path) -> None:
    output = view()
    output.feed("x\n" * 500)
    hint = output.close(whole="/some/where.txt")[0]
    assert "all in /some/where.txt" in hint


def test_one_huge_line_is_cut() -> None:
    output = view(80)
    output.feed("x" * 1_000_000)
    output.feed("end\n")
    hint, line = output.close()
    assert "long lines are cut, all in" in hint
    assert len(line) <= 3 * 80
    path = without_styles(hint).rsplit(" ", 1)[1]
    assert len(Path(path).read_text()) == 1_000_004


def test_errors_are_red_and_the_unfinished_line_can_be_taken() -> None:
    output = view()
    assert output.feed("oops\n", stderr=True) == ["\x1b[31moops\x1b[0m"]
    assert output.feed("Name: ") == []
    assert without_styles(output.take_line()) == "Name: "
    assert output.close() == []


@pytest.mark.parametrize(
    ("text", "width", "clipped"), [("abcdef", 3, "abc"), ("漢字漢字", 5, "漢字"), ("a\tb", 4, "a   ")]
)
def test_clip_counts_cells(text: str, width: int, clipped: str) -> None:
    assert clip(text, width) == clipped


def test_clip_keeps_styles() -> None:
    assert clip("\x1b[31mabcdef\x1b[0m", 2) == "\x1b[31mab\x1b[0m"


def test_hidden_characters_in_code_are_visible() -> None:
    assert visible("a\x1b[8mb\u202ec\r") == "a␛[8mb<U+202E>c␍"
