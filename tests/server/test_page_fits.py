"""The page fits what it shows: tables as wide as their texts, sessions told apart, requests about real files."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from model_replies import text, tool_call
from web_page import OpenPage, open_page

pytestmark = pytest.mark.needs("chromium")
TABLE = (
    "import pandas as pd\n"
    "time = pd.date_range('2020-01-01', periods=1_000_000, freq='s')\n"
    "df = pd.DataFrame({'time': time, 'value': range(1_000_000), 'note': 'x' * 500}, index=time)"
)
CUT_CELLS = """box => [...box.querySelectorAll('[role=cell], .grid-index')]
    .filter((cell) => cell.scrollWidth > cell.clientWidth && !cell.textContent.startsWith('xxx')).map((cell) => cell.textContent)"""


def open_table(visit: OpenPage) -> None:
    visit.served.run(visit.session, TABLE)
    visit.key("v")
    visit.page.get_by_role("complementary", name="Variables").get_by_role("button", name="df").click()
    expect(visit.page.locator(".grid-bar .facts")).to_have_text("1,000,000 rows · 3 columns")


@pytest.mark.parametrize("screen", [(1200, 800), (390, 844)], ids=["desktop", "phone"])
def test_columns_are_as_wide_as_their_texts(home: Path, chromium: Browser, screen: tuple[int, int]) -> None:
    with open_page(chromium, screen=screen) as visit:
        open_table(visit)
        grid = visit.page.get_by_role("table", name="df")
        expect(grid.get_by_role("cell", name="2020-01-01 00:00:01", exact=True)).to_be_visible()
        assert grid.evaluate(CUT_CELLS) == []
        widths = grid.evaluate("box => [...box.querySelectorAll('.grid-name')].map((each) => each.offsetWidth)")
        lefts = grid.evaluate("box => [...box.querySelectorAll('.grid-name')].map((each) => each.offsetLeft)")
        assert widths[1] < widths[0] and lefts[1] == lefts[0] + widths[0]
        if screen[0] > 500:  # the long texts get what is left, and nothing scrolls
            assert grid.evaluate("box => box.scrollWidth - box.clientWidth") == 0
            assert widths[2] > 600


def test_a_table_that_a_block_printed_keeps_its_cells_on_one_line(home: Path, chromium: Browser) -> None:
    code = "import pandas as pd\npd.DataFrame({'time': ['2020-01-01 00:00:00'], 'name': ['customer number 1'], 'city': ['San José']})"
    with open_page(chromium, tool_call("python", code), text("Done."), screen=(390, 844)) as visit:
        visit.say("Show it.")
        visit.approve()
        visit.idle()
        cell = visit.page.frame_locator("iframe").get_by_role("cell", name="customer number 1")
        expect(cell).to_be_attached()
        assert cell.evaluate("cell => cell.getClientRects()[0].height") < 40  # pixels


def test_a_table_of_text_keeps_its_lines_and_a_log_is_wrapped(home: Path, chromium: Browser) -> None:
    row = "North   2024-01-03   Widget   12.50   customer number 1"
    code = f"print({row!r} + chr(10) + {row!r})"
    log = "print('a long line of a log, which is broken where the screen ends')"
    replies = [tool_call("python", code), text("Done."), tool_call("python", log), text("Done.")]
    with open_page(chromium, *replies, screen=(390, 844)) as visit:
        for _ in range(2):
            visit.say("Show it.")
            visit.approve()
            visit.idle()
        table, words = visit.page.get_by_label("Output", exact=True).all()
        assert table.evaluate("box => box.scrollWidth > box.clientWidth && box.offsetHeight < 90")
        assert words.evaluate("box => box.scrollWidth == box.clientWidth")


def test_sessions_of_one_name_show_folder_and_time(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        page = visit.page
        expect(page.locator(".session small")).to_have_count(0)
        page.get_by_role("navigation", name="Sessions").get_by_role("button", name="New session").click()
        rows = page.locator(".session")
        expect(rows).to_have_count(2)
        expect(rows.locator("small")).to_have_count(2)
        expect(rows.locator("small").first).to_contain_text(f"{Path.cwd().name} · ")


def test_suggestions_name_files_of_the_folder(home: Path, chromium: Browser) -> None:
    with open_page(chromium) as visit:
        ideas = visit.page.locator(".ideas button")
        expect(ideas.first).to_contain_text("Plot a sine wave")
        assert "folder" not in " ".join(ideas.all_inner_texts())
    for name in ("sales.csv", "report.pdf", ".hidden.log", "a\nb.json"):
        Path(name).write_text("a,b\n1,2\n")
    Path("photos.png").mkdir()
    with open_page(chromium) as visit:
        ideas = visit.page.locator(".ideas button")
        expect(ideas).to_have_count(4)
        shown = " ".join(ideas.all_inner_texts())
        assert shown.count("sales.csv") == 3 and "report.pdf" in shown
        assert not any(word in shown for word in ("hidden", "json", "photos", "project"))
        ideas.first.click()
        expect(visit.page.get_by_label("Message", exact=True)).to_have_value("Tell me what is in sales.csv.")
