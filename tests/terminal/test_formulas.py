"""Simple LaTeX becomes Unicode, and Markdown tables are aligned."""

from __future__ import annotations

import time

import pytest

from interpreter.frontends.terminal.render.ansi import without_styles
from interpreter.frontends.terminal.render.latex import readable
from interpreter.frontends.terminal.render.markdown import MarkdownView
from interpreter.frontends.terminal.render.theme import Theme


def shown(source: str) -> list[str]:
    view = MarkdownView(Theme(), 80)
    return [without_styles(row) for row in view.feed(source) + view.close()]


@pytest.mark.parametrize(
    ("source", "row"),
    [
        (r"So $\mu = \frac{1}{n}\sum_{i=1}^{n} x_i$.", "So μ = 1/n∑ᵢ₌₁ⁿ xᵢ."),
        (r"\[ \sigma^2 = \frac{\sum (x_i - \mu)^2}{n-1} \]", "σ² = (∑ (xᵢ - μ)²)/(n-1)"),
        (r"\(\sqrt{a+b} \cdot \alpha_{ij}\)", "√(a+b) · αᵢⱼ"),
        (r"$x_{foo} \leq 10\%$ and $e^{\pi i}$", "x_foo ≤ 10% and e^(π i)"),
        ("$$E = mc^2$$", "E = mc²"),
        ("Let $n$ be 3.", "Let n be 3."),
        (r"$a \unknown{b}$ stays", r"$a \unknown{b}$ stays"),
        ("costs $5 and $6_000, or $7=8", "costs $5 and $6_000, or $7=8"),
        ("run `$x^2$` in $HOME and $PATH_X", "run $x^2$ in $HOME and $PATH_X"),
        (r"(see \(the note\))", "(see (the note))"),
    ],
)
def test_formulas_become_unicode(source: str, row: str) -> None:
    assert shown(source) == [row]


def test_a_streamed_formula_is_complete_at_the_end() -> None:
    source = "word " * 30 + r"so $\alpha^2 + \beta^2 = 1$ " + "word " * 30
    view, rows = MarkdownView(Theme(), 80), []
    for sign in source:
        rows += view.feed(sign) + view.settle()
    assert "so α² + β² = 1 word" in " ".join(without_styles(row) for row in rows + view.close())


@pytest.mark.parametrize("text", ["$a_" * 3000, r"\(" * 5000, "`" * 9999, "`a" * 4999, "$$" * 4999, "{" * 9999 + "$x^"])
def test_hostile_text_is_rendered_quickly(text: str) -> None:
    began = time.process_time()
    readable(text)
    assert time.process_time() - began < 2


def test_columns_are_aligned_as_the_table_says() -> None:
    rows = shown("| name | n | side |\n|:---|---:|:---:|\n| a | 1 | x |\n| bbbb | 1000 | y |\n")
    assert rows[0] == "name      n   side"
    assert rows[2] == "a         1    x"
    assert rows[3] == "bbbb   1000    y"
