"""Streamed Markdown: the same result however it is split, every line shown once, nothing lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.frontends.terminal.render.ansi import without_styles
from interpreter.frontends.terminal.render.display import TerminalDisplay, TerminalScreen
from interpreter.frontends.terminal.render.markdown import MarkdownView
from interpreter.frontends.terminal.render.theme import Theme
from terminal.emulator import EmulatedOutput, Emulator

SAMPLE = '''# A title

Some **bold**, *slanted* and `code` text with a <tag> & a [link](http://x.y/z) and snake_case_names.
A second line.

1. First
2. Second **bold
   over two lines**
   - nested

   ```python
   def f(x):
       """Several
       lines"""
       return x
   ```
10. Tenth

| left | right |
|------|-------|
| one  | `two` |

> quoted
> - item

---

    indented

Underlined
==========
~~~
fence with tildes ```
~~~
the end'''

LINES = st.lists(
    st.sampled_from(
        [
            *SAMPLE.split("\n"),
            "",
            "",
            "```",
            "~~~~",
            "- x",
            "* y",
            "3) z",
            "| a |",
            "|--|",
            "> q",
            "**",
            "`",
            "---",
        ]
    ),
    max_size=25,
)


def committed(pieces: Iterable[str], width: int = 60, redraw: bool = True) -> list[str]:
    view = MarkdownView(Theme(), width)
    rows: list[str] = []
    for piece in pieces:
        rows += view.feed(piece)
        if redraw:
            rows += view.settle()
            view.open_rows()
    return rows + view.close()


@given(lines=LINES, cuts=st.lists(st.integers(0, 600)))
@settings(max_examples=150, deadline=None)
def test_any_split_gives_the_same_rows(lines: list[str], cuts: list[int]) -> None:
    text = "\n".join(lines)
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    assert committed(pieces) == committed([text], redraw=False)


@given(text=st.text(alphabet="ab *_`#>|-~1.\n[]()\\<&\t!=+é漢", max_size=120))
@settings(max_examples=200, deadline=None)
def test_any_text_fed_by_character_gives_the_same_rows(text: str) -> None:
    assert committed(text) == committed([text], redraw=False)


@pytest.mark.parametrize("width", [20, 80, 200])
def test_the_last_drawn_rows_are_the_committed_rows(width: int) -> None:
    view = MarkdownView(Theme(), width)
    rows = view.feed(SAMPLE) + view.settle()
    assert rows + view.open_rows() == committed([SAMPLE], width)


@given(
    lines=st.lists(st.from_regex(r"[a-z][a-z ]{0,100}[a-z]", fullmatch=True), min_size=1, max_size=60),
    size=st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_every_word_appears_once_and_in_order(lines: list[str], size: int) -> None:
    emulator = Emulator(40, 12)
    display = TerminalDisplay(TerminalScreen(EmulatedOutput(emulator).write, emulator.size), Theme())
    text = "\n".join(lines)
    for at in range(0, len(text), size):
        display.show({"role": "assistant", "type": "message", "content": text[at : at + size]})
        display.flush()
    display.finish()
    assert " ".join(emulator.everything).split() == text.split()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 50), (20, 10)])
def test_a_table_taller_than_the_screen_appears_once(columns: int, lines: int) -> None:
    emulator = Emulator(columns, lines)
    display = TerminalDisplay(TerminalScreen(EmulatedOutput(emulator).write, emulator.size), Theme())
    rows = [f"| {number} | cell{number} |\n" for number in range(2 * lines)]
    text = "".join(["| n | c |\n|---|---|\n", *rows])
    for at in range(0, len(text), 60):
        display.show({"role": "assistant", "type": "message", "content": text[at : at + 60]})
        display.flush()
    display.finish()
    shown = [row for row in emulator.everything if "cell" in row]
    assert [row.split()[-1] for row in shown] == [f"cell{number}" for number in range(2 * lines)]


def test_the_sample_is_rendered_as_expected() -> None:
    rows = [without_styles(row) for row in committed([SAMPLE], 60)]
    assert rows == [
        "A title",
        "",
        "Some bold, slanted and code text with a <tag> & a link",
        "(http://x.y/z) and snake_case_names.",
        "A second line.",
        "",
        "1. First",
        "2. Second bold",
        "   over two lines",
        "   • nested",
        "",
        "     def f(x):",
        '         """Several',
        '         lines"""',
        "         return x",
        "",
        "10. Tenth",
        "",
        "left   right",
        "────────────",
        "one    two",
        "",
        "▎ quoted",
        "▎ • item",
        "",
        "─" * 59,
        "",
        "    indented",
        "",
        "Underlined",
        "",
        "  fence with tildes ```",
        "",
        "the end",
    ]


def test_a_long_paragraph_goes_to_the_scrollback_row_by_row() -> None:
    view = MarkdownView(Theme(), 60)
    assert view.feed("Some words. " * 20 + "And **bold") == []
    settled = view.settle()
    assert len(settled) == 4
    assert len(view.open_rows()) == 1
    assert settled + view.feed("** ones.\n\n") == committed(["Some words. " * 20 + "And **bold** ones."], redraw=False)


def test_a_table_that_is_too_wide_becomes_a_list_of_its_cells() -> None:
    names = "abcdefgh"
    table = [f"| {' | '.join(names)} |", "|---" * len(names) + "|", f"| {' | '.join(names.upper())} |"]
    rows = [without_styles(row) for row in committed(["\n".join(table)], 20)]
    assert rows == [f"{name}: {name.upper()}" for name in names]


def test_model_text_cannot_control_the_terminal() -> None:
    rows = committed(
        ["\x1b]0;title\x07red \x1b[2J\r gone\n\n```\n\x1b[31mfence\n```\n\n| \x1b[1A |\n|---|\n| x\x08 |\n"]
    )
    allowed = [row for row in rows if "\x1b" in without_styles(row) or "\x07" in row or "\r" in row or "\b" in row]
    assert allowed == []
    assert "␛]0;title␇red ␛[2J" in "\n".join(rows)


def test_unfinished_emphasis_hides_its_markers() -> None:
    view = MarkdownView(Theme(), 60)
    view.feed("This is **very impor")
    assert [without_styles(row) for row in view.open_rows()] == ["This is very impor"]


@pytest.mark.parametrize("beginning", ["#", "`", "```", "```py", "-", "1", "1.", "> ", "| ", "***"])
def test_a_line_of_unknown_kind_is_held_back(beginning: str) -> None:
    view = MarkdownView(Theme(), 60)
    assert view.feed("text\n\n" + beginning) + view.open_rows() in (["text"], ["text", ""])
