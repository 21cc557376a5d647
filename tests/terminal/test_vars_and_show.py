"""%vars and %show: the variables of the live sessions on the screen."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.frontends.terminal.render.ansi import cells
from interpreter.frontends.viewer import drawn, parsed, view_of
from interpreter.runtimes.state import TableWindow
from model_server import ModelServer
from terminal.person import Person, someone
from waiting import until

pytestmark = pytest.mark.usefixtures("no_strays")
DOWN, UP, RIGHT, PAGE_DOWN, END = "\x1b[B", "\x1b[A", "\x1b[C", "\x1b[6~", "\x1b[F"
MAKE_TABLE = ">>> import pandas as pd; df = pd.DataFrame({f'c{n}': range(500) for n in range(40)})"


@pytest.fixture
def person() -> Iterator[Person]:
    with ModelServer() as server, someone(server=server) as person:
        yield person


def test_texts_are_whole_if_there_is_room() -> None:
    times = [f"2020-01-01 00:00:0{second}.123456+00:00" for second in range(3)]
    notes = [f"a note of more than forty characters, number {number}" for number in range(3)]
    table = TableWindow("DataFrame", 3, 1, times, ["note"], [False], [notes], 3)
    assert drawn(table, 110)[0][1].split("  ") == [times[0], notes[0]]
    assert all(cells(row) <= 70 for row in drawn(table, 70)[0])


@pytest.mark.full
def test_arrow_keys_scroll_a_large_table(person: Person) -> None:
    person.says(MAKE_TABLE)
    person.says("%show df")
    person.sees("rows 1-21 of 500, columns 1-")
    person.types(DOWN * 3 + UP)
    person.sees("rows 3-23 of 500")
    person.types(PAGE_DOWN)
    person.sees("rows 23-43 of 500")
    person.types(RIGHT * 18)
    person.wait_until(lambda: " c18" in person.emulator.visible[0], "c18")
    person.types(END)
    person.sees("rows 480-500 of 500")
    assert person.emulator.visible[-3].split()[:2] == ["499", "499"]
    person.types("q")
    person.says("%exit")
    assert person.ends() == 0
    assert person.mode_is_restored


def test_small_values_are_printed(person: Person) -> None:
    person.says(">>> rows = [{'a': 1, 'b': 'x'}, {'a': 22, 'b': 'y'}]; word = 'hello'")
    person.says("%show rows")
    person.sees("rows (list, 2 × 2)")
    assert "    a  b\n0   1  x\n1  22  y" in person.screen
    person.says("%show word")
    person.sees("hello\nword (str)")
    person.says("%show nothing")
    person.sees("not defined")
    person.says("%show")
    person.sees("%vars lists")


def test_a_long_text_opens_on_the_full_screen(person: Person) -> None:
    person.says(">>> text = '\\n'.join(f'line {n}' for n in range(200))")
    person.says("%show text")
    person.sees("lines 1-21 of 200")
    person.types(END)
    person.sees("line 199")
    person.types("q")
    person.at_prompt()


def test_vars_lists_the_variables_of_all_languages(person: Person) -> None:
    person.says("%vars")
    person.sees("No session has any variables yet.")
    person.says(">>> sizes = [1, 2, 3]")
    person.says("!place=here")
    person.says("%vars")
    person.sees("Python")
    person.sees("[1, 2, 3]")
    person.sees("Shell")
    assert re.search(r"name +type +shape +size +preview\n +sizes +list +3 ", person.screen)
    person.says("%vars shell")
    person.sees("place", times=3)
    person.says("%vars cobol")
    person.sees("`cobol` is disabled or not supported")


def test_columns_that_do_not_fit_are_left_out_and_long_cells_cut() -> None:
    page = TableWindow(
        "", 2, 3, ["0", "1"], ["a", "long", "b"], [True, False, False], [["1", "22"], ["x" * 90, "漢" * 50], ["p", "q"]]
    )
    for width in range(12, 100):
        lines, columns = drawn(page, width)
        assert 1 <= len(columns) <= 3
        assert all(cells(line) <= width for line in lines)
    assert len(drawn(page, 99)[1]) == 3


# -- a full-screen table ---------------------------------------------------------------------------------------------

SALES = (
    ">>> import pandas as pd; df = pd.DataFrame({'region': ['EU', 'US', 'CN', 'JP'] * 50, 'total': range(200), "
    "'day': pd.date_range('2024-01-01', periods=200)})"
)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), pytest.param(160, 50, marks=pytest.mark.full)])
def test_keys_sort_filter_search_and_describe_a_table(columns: int, lines: int) -> None:
    with ModelServer() as server, someone(server=server, columns=columns, lines=lines) as person:

        def heading() -> str:
            return str(person.emulator.visible[0])

        def first(cells: str) -> None:
            person.wait_until(lambda: person.emulator.visible[1].split() == cells.split(), cells)

        person.says(SALES)
        person.says("%show df")
        person.sees(f"rows 1-{lines - 3} of 200")
        first("0 EU 0 2024-01-01")
        person.types(RIGHT + "s")
        person.wait_until(lambda: "total ▲" in heading(), "an arrow")
        person.types("s")
        first("199 JP 199 2024-07-18")
        assert "total ▼" in heading()
        person.types("f")
        person.sees("Filter:")
        person.types('region == "EU" and total < 100\r')
        person.sees("of 25 (200 in all)")
        first("96 EU 96 2024-04-06")
        person.types("i")
        person.sees("median")
        assert [row.split() for row in person.emulator.visible[2:4]] == [["count", "25"], ["missing", "0"]]
        person.types("i/")
        person.sees("Search:")
        person.types("2024-01-0\r")
        person.sees("of 3 (200 in all)")
        person.types("f")
        person.sees("Filter: region")
        person.types("\x15nothing > 1\r")
        person.sees("There is no column nothing.")
        person.types("r")
        first("0 EU 0 2024-01-01")
        person.types("q")
        person.says(">>> df.total.is_monotonic_increasing, len(df)")
        person.sees("200)")
        assert "(True, 200)" in person.screen.replace("np.True_", "True")
        assert person.leaves() == 0
        assert person.mode_is_restored


@pytest.mark.full
def test_ctrl_c_stops_a_slow_filter_and_the_session_continues(person: Person, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    person.says(">>> class Endless:")
    person.types(f"    def __eq__(self, other):\r        open({str(begun)!r}, 'w').close()\r")
    person.types("        while True: pass\r\r")
    person.says(">>> rows = [{'a': Endless(), 'n': n} for n in range(100)]; kept = 41")
    person.says("%show rows")
    person.sees("rows 1-21 of 100")
    person.types("fa == 1\r")
    person.sees("Working. Ctrl-C stops it.")
    person.types("\x03")
    person.sees("this took too long, and was stopped")
    person.types(DOWN)
    person.sees("rows 2-22 of 100")
    person.types("q")
    begun.unlink()
    person.says("%show rows filter=a == 1")
    until(begun.exists, "the filter")
    person.types("\x03")
    person.sees("Stopped.")
    person.says(">>> kept + 1")
    person.sees("42")
    assert person.leaves() == 0


@pytest.fixture
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.full
def test_the_rows_shown_can_be_exported_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_display: None
) -> None:
    monkeypatch.chdir(tmp_path)
    with ModelServer() as server, someone(server=server) as person:
        person.says(SALES)
        person.says("%show df")
        person.sees("rows 1-21 of 200")
        person.types("ftotal < 3\r")
        person.sees("of 3 (200 in all)")
        person.types("esmall.csv\r")
        person.sees("Wrote 3 rows to")
        assert (tmp_path / "small.csv").read_text() == (
            "region,total,day\nEU,0,2024-01-01\nUS,1,2024-01-02\nCN,2,2024-01-03\n"
        )
        person.types("esmall.csv\r")
        person.sees("small.csv exists already")
        person.types("c")
        person.sees("Sent to the clipboard of your terminal: 3 rows.")
        copied = re.findall(r"\x1b\]52;c;([^\x07]*)\x07", person.raw)
        assert b64decode(copied[0]).decode().startswith("region\ttotal\tday\nEU\t0\t2024-01-01\n")
        person.types("q")
        person.says("%show df sort=total desc rows=2 columns=region,total")
        person.sees("df (DataFrame, 200 × 2): 198 more rows")
        assert "     region  total ▼" not in person.screen
        person.says("%show df filter=total > 196 export=sub/large.tsv")
        person.sees("Wrote 3 rows to")
        assert (tmp_path / "sub/large.tsv").read_text().splitlines()[1] == "US\t197\t2024-07-16"
        person.says("%show df export=table.doc")
        person.sees("Tables are exported to .csv, .tsv, .parquet, .xlsx files.")
        person.says("%undo --files 1")
        assert person.leaves() == 0


@pytest.mark.full
def test_plain_output_accepts_the_same_options(no_display: None) -> None:
    with ModelServer() as server, someone("--plain", server=server) as person:
        person.says(SALES)
        person.says('%show df filter=region == "EU" and total > 190 sort=total desc')
        person.sees("df (DataFrame, 200 × 3): 2 of 200 rows match")
        assert (
            "     region  total  day\n196  EU        196  2024-07-15\n192  EU        192  2024-07-11" in person.screen
        )
        person.says("%show df stats=region")
        person.sees("df (DataFrame, statistics)")
        assert "top 1    EU (50)" in person.screen
        person.says("%show df find=2024-07-1 rows=3")
        person.sees("9 of 200 rows match, 6 more rows")
        person.says("%show df order=total")
        person.sees("There is no option order= here.")
        person.says("%show df copy")
        person.sees("There is no clipboard here")
        person.says("%exit")
        assert person.ends() == 0


@pytest.mark.parametrize(
    ("typed", "name", "options"),
    [
        ("df", "df", {}),
        ('sizes["a b"]', 'sizes["a b"]', {}),
        ("df sort=unit price desc", "df", {"sort": "unit price desc"}),
        ("df filter=rows==5 and sort == 1 rows=7", "df", {"filter": "rows==5 and sort == 1", "rows": "7"}),
        ("df filter='a == \"x\"' copy", "df", {"filter": 'a == "x"', "copy": ""}),
        ('df filter="x" == a or b == "y"', "df", {"filter": '"x" == a or b == "y"'}),
        ("df stats", "df", {"stats": ""}),
    ],
)
def test_options_end_where_the_next_one_begins(typed: str, name: str, options: dict[str, str]) -> None:
    assert parsed(typed) == (name, options)


def test_the_sort_direction_follows_the_column() -> None:
    view = view_of({"sort": "unit price DESC", "columns": "a, b"})
    assert (view.sort, view.descending, view.columns) == ("unit price", True, ("a", "b"))
    assert view_of({"sort": "desc"}).sort == "desc"
