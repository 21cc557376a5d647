"""Tables that code displays: parsed from HTML and fitted to the screen, with a note on what is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.frontends.terminal.render.ansi import cells, without_styles
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.render.tables import TextTable, fitted, table_in
from interpreter.frontends.terminal.render.theme import Theme
from terminal.test_display import Stage, output, over

POLARS = (
    "<div><style>\n.dataframe > thead > tr {text-align: right;}\n</style>\n<small>shape: (2, 2)</small>"
    '<table border="1" class="dataframe"><thead><tr><th>n</th><th>word</th></tr><tr><td>i64</td><td>str</td></tr>'
    "</thead><tbody><tr><td>1</td><td>&quot;x&quot;</td></tr><tr><td>22</td><td>null</td></tr></tbody></table></div>"
)


def html(frame: Any) -> str:
    return str(frame._repr_html_())


def rows(frame: Any, width: int = 79) -> list[str]:
    table = table_in(html(frame))
    assert table is not None
    return [without_styles(row) for row in fitted(table, width, Theme())[0]]


def test_numbers_align_right_and_words_left() -> None:
    frame = pd.DataFrame({"name": ["Ann", "Bo"], "n": [1, 2222], "x": [0.5, None]})
    assert rows(frame) == [
        "   name     n    x",
        "──────────────────",
        "0  Ann      1  0.5",
        "1  Bo    2222  NaN",
    ]


def test_columns_are_left_out_of_the_middle_and_counted() -> None:
    frame = pd.DataFrame(np.arange(60).reshape(2, 30), columns=[f"c{n:02}" for n in range(30)])
    shown = rows(frame, 40)
    assert max(map(cells, shown[:4])) <= 40
    assert shown[0].split() == ["c00", "c01", "c02", "c03", "…", "c27", "c28", "c29"]
    assert shown[-1] == "23 columns not shown"


def test_rows_are_left_out_by_pandas_or_for_the_screen() -> None:
    hundred = rows(pd.DataFrame({"n": range(100)}))
    assert [row.split()[0] for row in hundred[2:-1]] == ["0", "1", "2", "3", "4", "…", "95", "96", "97", "98", "99"]
    assert hundred[-1] == "100 rows × 1 columns"
    fifty = rows(pd.DataFrame({"n": range(50)}))
    assert len(fifty) < 25
    assert fifty[-1] == "32 rows not shown"


@pytest.mark.parametrize("note", ["<p>5000 rows × 1 columns</p>", "<small>shape: (5_000, 1)</small>"])
def test_rows_left_out_by_the_html_are_counted(note: str) -> None:
    cells = ["0", "1", *map(str, range(2, 50)), "...", *map(str, range(4950, 5000))]
    page = f"<div><table>{''.join(f'<tr><td>{cell}</td></tr>' for cell in cells)}</table>{note}</div>"
    table = table_in(page)
    assert table is not None
    assert without_styles(fitted(table, 79, Theme())[0][-1]).endswith(" · 4,982 rows not shown")
    assert table.what_is_saved == "part of the table, 100 rows"


def test_multi_level_headers_are_shown() -> None:
    frame = pd.DataFrame({"b": list("xxy"), "c": list("uvu"), "a": [1, 2, 3]}).pivot_table(
        index=["b", "c"], values="a", aggfunc=["sum", "max"]
    )
    assert rows(frame) == [
        "      sum  max",
        "        a    a",
        "b  c",
        "──────────────",
        "x  u    1    1",
        "   v    2    2",
        "y  u    3    3",
    ]


def test_a_polars_frame_is_parsed() -> None:
    table = table_in(POLARS)
    assert table == TextTable(
        header=[["n", "word"], ["i64", "str"]],
        rows=[["1", '"x"'], ["22", "null"]],
        notes=["shape: (2, 2)"],
    )


@pytest.mark.parametrize(
    "page",
    [
        "<b>bold</b>",
        "<table><tr><td><img src=x></td></tr></table>",
        "<table><tr><td>1</td></tr></table><script>x</script>",
        "<table><tr><td>1</td></tr></table>" * 2,
        "<table></table>",
        "<table>" + "<tr><td>1</td></tr>" * 100_000,
        html(pd.DataFrame()),
    ],
)
def test_html_that_is_not_just_a_table_is_a_page(page: str) -> None:
    assert table_in(page) is None


@given(page=st.text(alphabet="<>/trdhablep =\"'12&;\n", max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_html_is_parsed_and_fitted(page: str) -> None:
    table = table_in("<table>" + page)
    assert table is None or fitted(table, 40, Theme())[0]


@given(
    grid=st.integers(1, 12).flatmap(
        lambda n: st.lists(st.lists(st.text("ab 漢1.", max_size=50), min_size=n, max_size=n), min_size=1, max_size=30)
    ),
    width=st.integers(30, 120),
)
@settings(max_examples=100, deadline=None)
def test_table_rows_never_wrap(grid: list[list[str]], width: int) -> None:
    table = TextTable([grid[0]], grid[1:])
    for row in fitted(table, width, Theme())[0][:-1]:
        assert cells(row) <= width


def test_a_hostile_cell_cannot_move_the_cursor() -> None:
    table = table_in("<table><tr><td>a\x1b[2Jb</td></tr></table>")
    assert table is not None
    assert "\x1b[2J" not in "".join(fitted(table, 40, Theme())[0])


def shown_frame(frame: Any) -> list[dict[str, Any]]:
    page = {"role": "computer", "type": "code", "format": "html", "content": html(frame), "recipient": "user"}
    return [output(f"{frame}\n", also="html"), page]


def test_a_frame_is_shown_only_as_a_table() -> None:
    stage = Stage()
    stage.show(output("before\n"), *shown_frame(pd.DataFrame({"n": [1]})), output("after\n"), over())
    stage.display.finish()
    assert stage.rows == ["before", "   n", "────", "0  1", "after"]


def test_a_table_that_does_not_fit_is_saved_to_a_file() -> None:
    stage = Stage()
    stage.show(*shown_frame(pd.DataFrame(np.ones((2, 60)))), over())
    stage.display.finish()
    assert "columns not shown" in stage.rows[-2]
    assert Path(stage.rows[-1].removeprefix("Whole table: ")).read_text().count("<th>") > 60


def test_a_file_with_part_of_the_table_says_so() -> None:
    stage = Stage()
    stage.show(*shown_frame(pd.DataFrame(np.ones((100, 60)))), over())
    stage.display.finish()
    assert stage.rows[-1].startswith("Part of the table, 10 rows: ")


def test_a_page_keeps_its_text_unless_it_is_a_bare_repr() -> None:
    stage = Stage()
    page = {"role": "computer", "type": "code", "format": "html", "content": "<b>x</b>", "recipient": "user"}
    stage.show(output("a model of x\n", also="html"), page, output("<a.B object>\n", also="html"), page, over())
    stage.display.finish()
    text, first, second = stage.rows
    assert text == "a model of x"
    assert first.startswith("Page: ") and second.startswith("Page: ")


def test_text_is_shown_if_its_html_never_arrives() -> None:
    stage = Stage()
    stage.show(output("only this\n", also="html"), over(None, "interrupted"))
    stage.display.finish()
    assert stage.rows[0] == "only this"


def test_plain_text_shows_a_table_as_lines_and_a_file() -> None:
    written: list[str] = []
    display = PlainDisplay(written.append)
    for chunk in shown_frame(pd.DataFrame({"n": range(100)})):
        display.show(chunk)  # type: ignore[arg-type]
    text = "".join(written)
    assert "99  99" in text
    assert re.search(
        r"^\[table: 100 rows × 1 columns, part of the table, 10 rows saved to \S+\.html\]$", text, re.MULTILINE
    )
