"""Table diffs by rows, columns and cells, with limited time and memory for hostile files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.frontends.terminal.render.notes import files_note
from interpreter.table_diffs import data_diff, workbook_diff
from sampling import some

SALES = b"id,region,amount\n1,N,10\n2,S,20\n3,E,30\n"


def lines(before: bytes | None, after: bytes | None, path: str = "a.csv") -> list[str]:
    found = data_diff(path, before, after, 10.0)
    return found.lines if found is not None else []


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (
            b"id,region,amount,total\n1,N,10,1\n2,S,25,2\n4,E,30,4\n5,W,1,1\n",
            [
                "3 -> 4 rows, 3 -> 4 columns",
                "columns added: total",
                "2 rows added, 1 row removed, 1 cell changed",
                "  id 2, amount: 20 -> 25",
            ],
        ),
        (b"id,region,amount\n3,E,30\n1,N,10\n2,S,20\n", ["3 rows, 3 columns", "the same rows in another order"]),
        (
            b"id,amount\n1,10.0\n2,20.5\n3,30.0\n",
            [
                "3 rows, 3 -> 2 columns",
                "columns removed: region",
                "types changed: amount (integer -> number)",
                "1 cell changed",
                "  id 2, amount: 20 -> 20.5",
            ],
        ),
        (b"id;region;amount\n1;N;10\n2;S;20\n3;E;30\n", ["3 rows, 3 columns", "no cells changed"]),
        (None, ["3 rows, 3 columns"]),
    ],
)
def test_table_diffs_list_changed_rows_columns_and_cells(after: bytes | None, expected: list[str]) -> None:
    assert lines(SALES, after) == expected


def test_leading_zeros_are_not_lost_silently() -> None:
    found = lines(b"zip,city\n007,A\n010,B\n", b"zip,city\n7,A\n10,B\n")
    assert found[1:3] == ["types changed: zip (text -> integer)", "2 cells changed"]


def test_rows_without_a_key_are_only_counted() -> None:
    assert lines(b"a,b\n1,1\n1,2\n2,1\n2,1\n", b"a,b\n1,1\n1,2\n2,2\n")[1:] == ["1 row added, 2 rows removed"]


def test_json_lines_are_compared_as_tables() -> None:
    found = lines(b'{"a":1,"b":"x"}\n{"a":2}\n', b'{"a":"1","b":"x"}\n{"a":2,"c":[1]}\n', "a.jsonl")
    assert found[1:] == [
        "columns added: c",
        "types changed: a (integer -> text)",
        "1 cell changed",
        '  row 1, a: 1 -> "1"',
    ]


def test_diffs_show_at_most_three_cells_on_one_line_each() -> None:
    before = b"id,x\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(50))
    found = lines(before, b"id,x\n" + b"".join(b'%d,"a\nundo: yes"\n' % n for n in range(50)))
    assert found[2] == "50 cells changed"
    assert found[3:] == [f"  id {n}, x: {n} -> a undo: yes" for n in range(3)]


@pytest.mark.parametrize(
    "content",
    [
        b"," * 2_000_000 + b"\n" + b"1,2\n" * 10,
        b'"' * 2_000_000,
        b"\n" * 600_000,
        b'{"a":' * 100_000,
        b"a,b\n1,2,3\n",
        b"a\0b\n",
        b"a\n1e99999999999999999999\n",
    ],
    ids=["columns", "quotes", "lines", "depth", "ragged", "binary", "exponent"],
)
def test_files_that_are_not_tables_are_given_up_quickly(content: bytes) -> None:
    began = time.process_time()
    for path in ("a.csv", "a.jsonl"):
        data_diff(path, content, content + b"1\n", 1.0)
        data_diff(path, SALES, content, 1.0)
    assert time.process_time() - began < 10


def test_the_file_note_includes_the_table_diff_if_it_fits() -> None:
    content = {"changed": [{"what": "changed", "path": "a.csv", "data": "5 -> 4 rows, 3 columns, 1 row removed"}]}
    assert files_note(content, 100, hint="") == "files: changed a.csv (5 -> 4 rows, 3 columns, 1 row removed)"
    assert files_note(content, 40, hint="") == "files: changed a.csv"
    assert files_note(content, 78) == "files: changed a.csv (5 -> 4 rows, 3 columns, 1 row removed) (%undo)"


# -- Excel and Parquet -----------------------------------------------------------------------------------------------

MAKE = """
import pandas as pd
old = pd.DataFrame({"id": range(5), "x": [1, 2, 3, 4, 5], "day": pd.date_range("2024-01-01", periods=5)})
"""
CHANGE = """
new = old.assign(new="n", day=old["day"].astype(str)).drop(index=4)
new.loc[2, "x"] = 9
"""
WRITE = {
    "sales.xlsx": "{0}.to_excel('sales.xlsx', index=False)",
    "sales.parquet": "{0}.to_parquet('sales.parquet', index=False)",
}


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    made = OpenInterpreter(workspace=str(tmp_path))
    yield made
    made.computer.terminate()


def hide_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make imports of these packages fail in the session's Python."""
    for name in names:
        (tmp_path / "missing" / name).mkdir(parents=True)
        (tmp_path / "missing" / name / "__init__.py").write_text("raise ImportError('missing')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "missing"))


def note_of(interpreter: OpenInterpreter, code: str) -> str | None:
    chunks = list(interpreter.computer.run("python", code, stream=True))
    assert chunks[-1].get("ended", "done") == "done"
    fields = next(chunk["content"] for chunk in chunks if chunk.get("format") == "files")
    return next((each.get("data") for each in fields["changed"] if each["path"].startswith("sales")), None)


@pytest.mark.parametrize(("path", "needed"), some(1, [("sales.xlsx", "openpyxl"), ("sales.parquet", "pyarrow")]))
def test_workbooks_are_compared_cell_by_cell(interpreter: Any, path: str, needed: str) -> None:
    pytest.importorskip(needed)
    interpreter.stream_all = True
    assert note_of(interpreter, MAKE + WRITE[path].format("old")) == "5 rows, 3 columns"
    assert note_of(interpreter, CHANGE + WRITE[path].format("new")) == (
        "5 -> 4 rows, 3 -> 4 columns, 1 row removed, 1 cell changed"
    )
    block = interpreter.timeline.blocks[-1].id
    found = interpreter.timeline.diff(block, data=True)[path].splitlines()
    assert found[0] == f"{path}: 5 -> 4 rows, 3 -> 4 columns"
    assert found[1] == "  columns added: new"
    assert found[2].startswith("  types changed: day (")
    assert found[3:] == ["  1 row removed, 1 cell changed", "    id 2, x: 3 -> 9"]
    assert interpreter.timeline.diff(block)[path].splitlines() == found  # workbooks have no text diff


@pytest.mark.full
@pytest.mark.parametrize("library", ["pyarrow", "polars", "duckdb"])
def test_any_parquet_library_works(
    interpreter: Any, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    frame = pytest.importorskip("polars").DataFrame({"n": [1, 2], "s": ["x", None]})
    frame.write_parquet(tmp_path / "old")
    frame.with_columns(n=frame["n"] * 2).write_parquet(tmp_path / "new")
    hide_packages(tmp_path, monkeypatch, *{"pyarrow", "polars", "duckdb"} - {library})
    contents = [(tmp_path / name).read_bytes() for name in ("old", "new")]
    found = workbook_diff(*interpreter.timeline.read_tables("parquet", contents, 60.0), 10.0)
    assert found is not None
    assert found.lines == ["2 rows, 2 columns", "2 cells changed", "  row 1, n: 1 -> 2", "  row 2, n: 2 -> 4"]


@pytest.mark.full
def test_unreadable_workbooks_say_why(interpreter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl")
    code = "for name in ('a.xlsx', 'b.parquet'):\n    open(name, 'wb').write(b'PK' + bytes(100))"
    list(interpreter.computer.run("python", code))
    found = interpreter.timeline.diff(interpreter.timeline.blocks[-1].id, data=True)
    assert found["a.xlsx"].startswith("a.xlsx: created; no cell diff: it can't be read (")
    hide_packages(tmp_path, monkeypatch, "openpyxl")
    found = interpreter.timeline.diff(interpreter.timeline.blocks[-1].id, data=True)
    assert found["a.xlsx"] == (
        "a.xlsx: created; no cell diff: there is no openpyxl in the session's Python (!pip install openpyxl)\n"
    )


def test_sheets_are_compared_by_their_names() -> None:
    table, other = [["id", "integer", ["1", "2"]], ["x", "text", ["a", "b"]]], [["id", "integer", ["1", "2"]]]
    changed = [table[0], ["x", "text", ["a", "c"]]]
    found = workbook_diff(
        {"One": table, "Two": table, "Old": other}, {"One": table, "Two": changed, "New": other}, 10.0
    )
    assert found is not None
    assert found.lines == [
        "3 sheets",
        "sheets added: New",
        "sheets removed: Old",
        "Two: 2 rows, 2 columns",
        "Two: 1 cell changed",
        "Two:   id 2, x: b -> c",
        "1 sheet changed",
    ]


@pytest.mark.parametrize(
    "sent",
    [[], {"": 1}, {"": [["a"]]}, {"": [["a", "b", ["1"]], ["c", "d", []]]}, {"": [["a", "b", None]]}, "x", {}],
    ids=["list", "number", "column without values", "columns of different length", "no values", "text", "no sheets"],
)
def test_malformed_tables_from_the_session_are_ignored(sent: Any) -> None:
    assert workbook_diff(sent, sent, 1.0) is None or sent == {}
