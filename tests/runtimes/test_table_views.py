"""Views of tables in a session: sorted, filtered, searched, summarized and exported."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from interpreter.errors import UsageError
from interpreter.languages.in_process import InProcessPython
from interpreter.runtimes.state import File, TableQuery, TableWindow
from javascript_runtimes import JavaScriptRuntime
from javascript_runtimes import fresh as javascript  # noqa: F401
from python_runtimes import PythonRuntime
from waiting import until

SETUP = """
import datetime, os
import numpy as np, pandas as pd
try:
    import polars as pl
except ImportError:
    pl = None
rows = [
    {"region": "EU", "total": 50, "unit price": 1.5, "day": datetime.datetime(2024, 1, 1)},
    {"region": "US", "total": 200, "unit price": 2.25, "day": datetime.datetime(2024, 1, 2)},
    {"region": "EU", "total": 150, "unit price": None, "day": datetime.datetime(2024, 2, 1)},
    {"region": None, "total": 300, "unit price": 4.0, "day": None},
]
frame = pd.DataFrame(rows, index=list("aabc"))
polars_frame = pl.DataFrame(rows) if pl else rows
columns = {name: [row[name] for row in rows] for name in rows[0]}
keyed = dict(zip("wxyz", rows))
array = np.arange(12).reshape(4, 3)
before = repr((frame, polars_frame, rows, columns, keyed, array))
"""
TABLES = ("frame", "polars_frame", "rows", "columns", "keyed")


@pytest.fixture(scope="module")
def session() -> Iterator[PythonRuntime]:
    session = PythonRuntime()
    try:
        assert session.do(SETUP).ended == "done"
        yield session
        assert session.do("repr((frame, polars_frame, rows, columns, keyed, array)) == before").text == "True\n"
        assert session.do("os.path.exists('made')").text == "False\n"
    finally:
        session.terminate()


def totals(session: PythonRuntime, name: str, **view: Any) -> list[str]:
    page = session.look(name, view=TableQuery(**view))
    assert isinstance(page, TableWindow)
    assert (page.rows, page.total) == (len(page.index), 4)
    return list(page.cells[page.header.index("total")])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('region == "EU" and total > 100', ["150"]),
        ("`unit price` < 3", ["50", "200"]),
        ('region in ["US", "CN"] or total == 300', ["200", "300"]),
        ('"U" in region and not total > 100', ["50"]),
        ("region is None", ["300"]),
        ("region is not None and day != None", ["50", "200", "150"]),
        ('day > "2024-01-01"', ["200", "150"]),
        ('"E" not in region', ["200", "300"]),
        ("100 < total <= 200", ["200", "150"]),
        ("total * 2 - 100 >= 500", ["300"]),
        ("total > 1000", []),
    ],
)
def test_a_filter_keeps_the_rows_that_match(
    session: PythonRuntime, name: str, condition: str, found: list[str]
) -> None:
    assert totals(session, name, filter=condition) == found


@pytest.mark.parametrize("name", TABLES)
def test_tables_can_be_sorted_and_searched(session: PythonRuntime, name: str) -> None:
    assert totals(session, name, sort="total") == ["50", "150", "200", "300"]
    assert totals(session, name, sort="total", descending=True, filter="total < 300") == ["200", "150", "50"]
    assert totals(session, name, sort="region")[-1] == "300"  # missing values come last
    assert totals(session, name, sort="region", descending=True)[-1] == "300"
    assert totals(session, name, find="eu") == ["50", "150"]
    page = session.look(name, view=TableQuery(columns=("total", "region"), sort="total"))
    assert isinstance(page, TableWindow) and page.header == ["total", "region"]


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("totl > 1", "no column totl. Did you mean total?"),
        ("__import__('os').mkdir('made')", "only compares columns"),
        ("total.to_csv('made')", "only compares columns"),
        ("total.values.fill(0)", "only compares columns"),
        ("region.__class__ == 1", "only compares columns"),
        ("[os.mkdir('made') for x in [1]]", "only compares columns"),
        ("@os.mkdir('made')", "not complete"),
        ("total > 'x'", "does not fit"),
        ("total >", "not complete"),
        ("1 == 1", "names no column"),
        ("(" * 5000, "not complete"),
    ],
)
def test_a_filter_cannot_run_code(session: PythonRuntime, condition: str, why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("?", r"\?")):
        session.look("frame", view=TableQuery(filter=condition))


def test_arrays_dicts_and_lists_are_tables_too(session: PythonRuntime) -> None:
    page = session.look("array", view=TableQuery(filter="`1` > 3", sort="2", descending=True))
    assert isinstance(page, TableWindow) and page.cells[0] == ["9", "6", "3"]
    session.do("sizes, words = {'small': 3, 'big': 1}, ['b', 'a']")
    page = session.look("sizes", view=TableQuery(sort="value"))
    assert isinstance(page, TableWindow) and page.cells == [["big", "small"], ["1", "3"]]
    page = session.look("words", view=TableQuery(sort="value"))
    assert isinstance(page, TableWindow) and page.cells == [["a", "b"]]
    with pytest.raises(UsageError, match="not a table"):
        session.look("before", view=TableQuery(sort="value"))


@pytest.mark.parametrize("name", TABLES)
def test_columns_have_statistics(session: PythonRuntime, name: str) -> None:
    page = session.look(name, view=TableQuery(stats="unit price"))
    assert isinstance(page, TableWindow)
    found = dict(zip(page.index, page.cells[0], strict=True))
    wanted = {
        "count": "3",
        "missing": "1",
        "unique": "3",
        "min": "1.5",
        "median": "2.25",
        "mean": "2.58333",
        "max": "4",
    }
    assert wanted.items() <= found.items()
    assert page.index[-1] == "top 3"
    page = session.look(name, view=TableQuery(stats="", filter="total < 300"))
    assert isinstance(page, TableWindow)
    columns = dict(zip(page.header, (dict(zip(page.index, each, strict=True)) for each in page.cells), strict=True))
    assert columns["region"]["top 1"] == "EU (2)"
    assert (columns["day"]["min"], columns["day"]["max"]) == ("2024-01-01", "2024-02-01")


@pytest.mark.parametrize("name", TABLES)
def test_views_can_be_exported(session: PythonRuntime, name: str) -> None:
    view = TableQuery(filter="total > 100", sort="total", descending=True, columns=("total", "region"))

    def content(form: str) -> io.BytesIO:
        file = session.look(name, view=TableQuery(**{**vars(view), "export": form}))
        assert isinstance(file, File) and file.rows == 3
        return io.BytesIO(file.data)

    assert content("csv").read().decode().splitlines()[-3:] == (
        ["c,300,", "a,200,US", "b,150,EU"] if name == "frame" else ["300,", "200,US", "150,EU"]
    )
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    assert pd.read_excel(content("xlsx"))["total"].tolist() == [300, 200, 150]
    assert pd.read_parquet(content("parquet"))["total"].tolist() == [300, 200, 150]


def test_row_labels_and_missing_numbers_are_shown(session: PythonRuntime) -> None:
    session.do("dated = pd.DataFrame({'n': pd.array([1, None], dtype='Int64')}, pd.to_datetime(['2024-01-01'] * 2))")
    page = session.look("dated")
    assert isinstance(page, TableWindow)
    assert (page.index, page.cells, page.numeric) == (["2024-01-01"] * 2, [["1", ""]], [True])


def test_a_slow_view_can_be_stopped(session: PythonRuntime) -> None:
    session.do(
        "class Endless:\n    def __eq__(self, other):\n        global begun; begun = True\n        while True: pass\n"
        "begun, endless = False, [{'a': Endless()}, {'a': Endless()}]"
    )
    failures: list[str] = []

    def look() -> None:
        try:
            session.look("endless", view=TableQuery(filter="a == 1"))
        except UsageError as error:
            failures.append(str(error))

    thread = threading.Thread(target=look)
    thread.start()
    assert session.runtime is not None
    until(session.runtime._querying.locked, "the question")
    while thread.is_alive():
        session.stop_looking()
        thread.join(0.2)
    assert failures == ["this took too long, and was stopped"]
    assert session.do("begun").text == "True\n"


def test_javascript_tables_have_no_views(javascript: JavaScriptRuntime) -> None:  # noqa: F811
    javascript.do("rows = [{a: 1}, {a: 2}]")
    assert isinstance(javascript.look("rows"), TableWindow)
    with pytest.raises(UsageError, match="only Python ones"):
        javascript.look("rows", view=TableQuery(sort="a"))


def test_in_process_python_has_table_views() -> None:
    language = InProcessPython()
    list(language.run("numbers = [3, 1, 2]"))
    page = language.look("numbers", view=TableQuery(sort="value"))
    assert isinstance(page, TableWindow) and page.cells == [["1", "2", "3"]]
