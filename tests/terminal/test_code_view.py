"""Streamed code: a finished line is drawn once, highlighted as in the whole program, and hides nothing."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.frontends.terminal.render.ansi import without_styles
from interpreter.frontends.terminal.render.code_block import CodeLines, CodeView
from interpreter.frontends.terminal.render.theme import Theme

PROGRAM = '''import os

def f(x):
    """Several
    lines of words: def, class, 1.
    """
    return [os.getcwd(), 'text', 12]  # done
'''


def shown(pieces: list[str], language: str = "python") -> list[str]:
    view = CodeView(language, Theme(), 80)
    rows: list[str] = []
    for piece in pieces:
        rows += view.feed(piece)
        view.open_rows()
    return rows + view.close()


@given(cuts=st.lists(st.integers(0, len(PROGRAM))))
@settings(max_examples=50, deadline=None)
def test_any_split_gives_the_same_rows(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(PROGRAM)]
    assert shown([PROGRAM[a:b] for a, b in itertools.pairwise(edges)]) == shown([PROGRAM])


def test_the_text_between_the_rules_is_the_code() -> None:
    rows = [without_styles(row) for row in shown([PROGRAM])]
    assert rows[0].startswith("── python ──")
    assert "\n".join(rows[1:-1]) + "\n" == PROGRAM


def test_words_in_a_multiline_string_are_not_keywords() -> None:
    rows = shown([PROGRAM])
    theme = Theme()
    assert rows[3] == theme.paint("def", "keyword") + " " + theme.paint("f", "name") + "(x):"
    assert rows[5] == theme.paint("    lines of words: def, class, 1.", "string")
    assert theme.paint("return", "keyword") in rows[7]


def test_a_very_long_multiline_string_stays_a_string() -> None:
    lines = CodeLines("python", Theme())
    lines.line('x = """')
    for _ in range(200):
        assert lines.line("class def 1") == Theme().paint("class def 1", "string")


def test_an_unknown_language_is_not_highlighted() -> None:
    assert shown(["a = 1\n"], "klingon")[1] == "a = 1"


def test_hidden_characters_are_made_visible() -> None:
    assert shown(["ls # \x1b[8mrm -rf x\x1b[0m\u202e\n"], "klingon")[1] == "ls # ␛[8mrm -rf x␛[0m<U+202E>"


def test_the_rules_fit_a_narrow_screen() -> None:
    view = CodeView("javascript", Theme(), 10)
    rows = view.feed("let a\n") + view.close()
    assert [len(without_styles(row)) for row in rows] == [9, 5, 9]
