"""Figures in terminals without graphics: text charts from what the session has put inside the image."""

from __future__ import annotations

import json
import random
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from interpreter.frontends.pictures.charts import chart_in, drawn_chart
from interpreter.frontends.terminal.render.ansi import cells, without_styles
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.runtimes.python.driver.displays import Figures
from model_server import ModelServer, text, tool_call
from terminal.person import someone

mpl.use("agg")
PLAIN = Theme(color=False, unicode=False)


@pytest.fixture(autouse=True)
def no_open_figures() -> Iterator[None]:
    yield
    plt.close("all")


def rows(width: int = 79, lines: int = 24, theme: Theme = PLAIN) -> list[str]:
    """The chart of the current figure."""
    png = Figures(lambda data: None).png(plt.gcf()) or b""
    return [without_styles(row) for row in drawn_chart(chart_in(png), width, lines, theme)]


def labels(row: str) -> list[str]:
    return row.split()


# -- what is shown -----------------------------------------------------------------------------------------------


def test_lines_have_ticks_labels_and_a_legend() -> None:
    x = np.linspace(0, 10, 100)
    plt.plot(x, 2 * x, label="double")
    plt.plot(x, x, label="same")
    plt.title("Growth")
    plt.xlabel("time (s)")
    plt.ylabel("size")
    plt.legend()
    title, legend, above, *plot, across, below = rows()
    assert (title.strip(), legend.strip(), above, below.strip()) == ("Growth", "* double   o same", "size", "time (s)")
    assert labels(across) == ["0", "2", "4", "6", "8", "10"]
    heights = [float(found[0]) for row in plot if (found := re.match(r" *[\d.]+(?= \+)", row))]
    assert heights == sorted(heights, reverse=True)
    assert {0, 20} <= set(heights)
    double, same = ([number for number, row in enumerate(plot) if mark in row[5:]] for mark in "*o")
    assert min(double) < min(same)  # the steeper line ends above


def test_bars_of_categories_are_rows_with_their_values() -> None:
    plt.bar(["North", "South", "East"], [1200, 3400, 560])
    plt.title("Units per region")
    shown = rows()
    assert [(row.split()[0], row.split()[-1]) for row in shown[1:]] == [
        ("North", "1,200"),
        ("South", "3,400"),
        ("East", "560"),
    ]
    lengths = [row.count("*") for row in shown[1:]]
    assert lengths[1] > 60 and abs(lengths[0] / lengths[1] - 1200 / 3400) < 0.02


def test_horizontal_bars_keep_their_order_from_top_to_bottom() -> None:
    plt.barh(["low", "high"], [1, 2])
    assert [row.split()[0] for row in rows()] == ["high", "low"]


def test_several_series_of_bars_stand_side_by_side_or_stacked() -> None:
    table = pd.DataFrame({"2023": [10, 20], "2024": [12, 18]}, index=["North", "South"])
    table.plot.bar()
    assert [row.split()[-1] for row in rows()[1:]] == ["10", "12", "20", "18"]
    plt.close("all")
    table.plot.bar(stacked=True)
    legend, north, south = rows()
    assert labels(legend) == ["*", "2023", "o", "2024"]
    assert north.endswith("10 + 12") and "*o" in north
    assert south.endswith("20 + 18")


def test_a_histogram_stays_one() -> None:
    plt.hist(random.Random(0).choices(range(100), k=1000), bins=20)
    shown = rows(theme=Theme(color=False))
    assert sum(row.count("█") for row in shown) > 100
    assert labels(shown[-1]) == ["0", "20", "40", "60", "80", "100"]


def test_points_are_where_they_belong() -> None:
    plt.scatter([0, 1, 2], [0, 10, 0])
    marked = [row for row in rows() if "*" in row]
    top, bottom = marked
    assert len(marked) == 2 and bottom.index("*") < top.index("*") < bottom.rindex("*")


def test_dates_on_the_axis_are_dates() -> None:
    days = pd.date_range("2023-01-01", periods=400)
    plt.plot(days, range(400))
    assert labels(rows()[-1])[0] == "2023-01"
    plt.close("all")
    pd.Series(range(400), index=days).plot()
    assert "Jan 2023" in rows()[-1]


def test_logarithmic_axes_are_straight() -> None:
    plt.loglog([1, 10, 100, 1000], [1, 10, 100, 1000])
    shown = rows()
    assert labels(shown[-1]) == ["10^0", "10^1", "10^2", "10^3"]
    places = [row.index("*") for row in shown if "*" in row]
    assert places == sorted(places, reverse=True)


def test_a_peak_among_a_million_values_stays() -> None:
    values = np.zeros(1_000_000)
    values[123_456] = 5
    plt.plot(values)
    assert sum("*" in row for row in rows()) > 8


def test_panels_are_below_each_other() -> None:
    left, right = plt.subplots(1, 2)[1]
    left.plot([1, 2, 3])
    left.set_title("Lines")
    right.bar(["a", "b"], [1, 2])
    right.set_title("Bars")
    shown = [row.strip() for row in rows()]
    assert shown.index("Lines") < shown.index("") < shown.index("Bars")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plt.pie([1, 2]),
        lambda: plt.imshow([[1, 2], [3, 4]]),
        lambda: plt.figure().add_subplot(projection="3d").plot([1, 2], [1, 2], [1, 2]),
        lambda: plt.pcolormesh([[1, 2], [3, 4]]),
        lambda: plt.figure().add_subplot(projection="polar").plot([1, 2], [1, 2]),
        lambda: plt.text(0.5, 0.5, "only words"),
        lambda: plt.subplots(3, 3)[1][0][0].plot([1, 2]),
    ],
    ids=["pie", "image", "3d", "heat map", "polar", "words", "many panels"],
)
def test_other_figures_have_no_text_form(draw: Any) -> None:
    draw()
    png = Figures(lambda data: None).png(plt.gcf()) or b""
    assert png.startswith(b"\x89PNG") and chart_in(png) == []


@pytest.mark.parametrize("theme", [PLAIN, Theme(color=False), Theme(color=True)], ids=["ascii", "monochrome", "colour"])
@pytest.mark.parametrize("width", [20, 79, 200])
def test_charts_fit_the_window(width: int, theme: Theme) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    left.bar([f"A very long name of a category {number}" for number in range(9)], range(9))
    right.plot([0, 1], [-123456, 987654], label="a long name in the legend of this figure")
    right.set_title("A title that is much longer than most titles are, and then some more words")
    png = Figures(lambda data: None).png(figure) or b""
    assert all(cells(row) <= width for row in drawn_chart(chart_in(png), width, 24, theme))


def test_plain_charts_are_ascii() -> None:
    plt.plot([1, -2, 3], label="a")
    plt.legend()
    assert "".join(rows()).isascii()


def test_the_image_opens_as_before() -> None:
    from io import BytesIO

    from PIL import Image

    plt.plot([1, 2])
    image = Image.open(BytesIO(Figures(lambda data: None).png(plt.gcf()) or b""))
    image.load()
    assert image.size[0] > 300


# -- what code could send ----------------------------------------------------------------------------------------


def png_with(chart: Any) -> bytes:
    body = b"zTXtInterpreter-Chart\0\0" + zlib.compress(json.dumps(chart).encode())
    return b"\x89PNG".ljust(33, b"\0") + struct.pack(">I", len(body) - 4) + body


PANEL = {"title": "", "x": "", "y": "", "x_ticks": [], "y_ticks": []}


@pytest.mark.parametrize(
    "series",
    [
        {"kind": "line", "name": "", "color": "", "at": [[1, 2, 3, 4]]},
        {"kind": "bars", "name": "", "color": "", "at": [[1, 2, 3, 4]], "values": []},
        {"kind": "line", "name": "", "color": "", "at": [[10**9, 0]]},
        {"kind": "line", "name": 5, "color": "", "at": []},
        {"kind": "other", "name": "", "color": "", "at": []},
    ],
)
def test_anything_else_than_a_chart_is_ignored(series: Any) -> None:
    assert chart_in(png_with({"panels": [{**PANEL, "series": [series]}]})) == []


def test_a_flood_inside_an_image_is_ignored() -> None:
    body = b"zTXtInterpreter-Chart\0\0" + zlib.compress(b"[" * 50_000_000)
    assert chart_in(b"\x89PNG".ljust(33, b"\0") + struct.pack(">I", len(body) - 4) + body) == []


@pytest.mark.filterwarnings("ignore:Glyph")
def test_labels_cannot_control_the_terminal() -> None:
    plt.plot([1, 2], label="a\x1b[2Jb\u202e")
    plt.legend()
    shown = "\n".join(rows())
    assert "\x1b" not in shown and "\u202e" not in shown


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "kind": st.just("bars"),
                "name": st.text(max_size=5),
                "color": st.sampled_from(["", "#ff0000", "#00ff00"]),
                "pairs": st.lists(
                    st.tuples(st.tuples(*[st.integers(-1000, 2000)] * 4), st.text(max_size=5)), max_size=5
                ),
            }
        ),
        max_size=3,
    ),
    st.lists(st.tuples(st.integers(0, 1000), st.text(max_size=5)), max_size=5),
    st.integers(4, 130),
)
@settings(max_examples=60, deadline=None)
def test_any_chart_of_the_right_form_is_drawn(series: Any, ticks: Any, width: int) -> None:
    for each in series:
        pairs = each.pop("pairs")
        each["at"], each["values"] = [box for box, _ in pairs], [value for _, value in pairs]
    panels = chart_in(png_with({"panels": [{**PANEL, "x_ticks": ticks, "y_ticks": ticks, "series": series}]}))
    assert all(cells(row) <= max(width, 20) for row in drawn_chart(panels, width, 24, PLAIN))


# -- in the program ----------------------------------------------------------------------------------------------

CODE = "import matplotlib.pyplot as plt\nplt.bar(['North', 'South'], [12, 34])\nplt.title('Units'){}"


@pytest.mark.usefixtures("no_strays")
@pytest.mark.parametrize("ending", ["", "\nplt.show()", "\nplt.gcf()"])
def test_a_terminal_with_blocks_gets_the_chart(ending: str) -> None:
    replies = [tool_call("python", CODE.format(ending)), text("Done.")]
    with ModelServer(replies) as server, someone("-y", "--terminal_images", "blocks", server=server) as person:
        person.says("draw it")
        person.sees("Done.")
        shown = person.emulator.everything
        at = next(number for number, row in enumerate(shown) if row.strip() == "Units")
        assert [row.split()[0] for row in shown[at + 1 : at + 3]] == ["North", "South"]
        assert shown[at + 2].endswith(" 34")
        assert shown[at + 3].startswith("Image: ") and "%open" in shown[at + 4]
        assert sum("█" in row for row in shown) == 2
        assert person.leaves() == 0


@pytest.mark.usefixtures("no_strays")
def test_plain_text_gets_the_chart_in_ascii() -> None:
    replies = [tool_call("python", CODE.format("")), text("Done.")]
    with ModelServer(replies) as server, someone("-y", "--plain", server=server) as person:
        person.says("draw it")
        person.sees("Done.")
        shown = person.emulator.everything
        assert any(row.startswith("South |***") and row.endswith(" 34") for row in shown)
        assert any(row.startswith("[figure: saved to ") for row in shown)
        assert person.leaves() == 0
