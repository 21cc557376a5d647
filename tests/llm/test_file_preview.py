"""Small models get a preview of the folder and of the files named in the request."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation import Chatting, chatting
from interpreter.llm.file_preview import languages_for, peek
from model_replies import text

__all__ = ["chatting"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sales.csv").write_text("day,amount\n" + "".join(f"{n},{n * n}\n" for n in range(100)))
    (tmp_path / "note.txt").write_text("short\n")
    (tmp_path / "kosten.csv").write_bytes("Straße;Betrag\n".encode("latin-1"))
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.eml").write_text("")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / ".secret").write_text("hidden")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("create table orders(id int, amount real)")
    return tmp_path


def test_the_folder_is_listed(folder: Path) -> None:
    assert peek("hello", str(folder)) == (
        "This folder has: inbox/, kosten.csv, logo.png, note.txt, sales.csv, shop.db."
    )


def test_a_long_listing_is_cut(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"f{number:02}").touch()
    assert peek("", str(tmp_path)).endswith("f14 and 25 more.")


def test_the_first_lines_of_a_named_file_are_shown(folder: Path) -> None:
    preview = peek("What is in sales.csv?", str(folder))
    assert preview.endswith("sales.csv begins:\nday,amount\n0,0\n1,1\n2,4\n3,9\n4,16")


def test_a_short_file_is_shown_whole(folder: Path) -> None:
    assert peek("Read 'note.txt'.", str(folder)).endswith("note.txt is:\nshort")


def test_a_json_file_is_shown_by_its_structure(folder: Path) -> None:
    books = [{"title": f"Book {n}", "author": {"last": "Berg"}, "tags": []} for n in range(50)]
    (folder / "books.json").write_text(json.dumps({"books": books, "total": 50}, indent=4))
    assert peek("books.json", str(folder)).endswith(
        "books.json is like this:\n"
        '{"books": [{"title": "Book 0", "author": {"last": "Berg"}, "tags": []}, "... 49 more"], "total": 50}'
    )


def test_invalid_json_is_shown_as_text(folder: Path) -> None:
    (folder / "half.json").write_text('{"a": 1,\n')
    assert peek("half.json", str(folder)).endswith('half.json is:\n{"a": 1,')


def test_another_encoding_is_named(folder: Path) -> None:
    assert "kosten.csv (not in UTF-8, probably in latin-1) is:\nStraße;Betrag" in peek("kosten.csv", str(folder))


def test_a_named_folder_and_the_tables_of_a_database_are_listed(folder: Path) -> None:
    preview = peek("Look into the inbox and shop.db", str(folder))
    assert "The folder inbox has: a.eml." in preview
    assert "shop.db is an SQLite database with the tables orders(id, amount)." in preview


def test_the_sheets_of_a_workbook_and_the_first_rows_are_shown(folder: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("region", "units"), ("A & B", 3), (None, 4.5)]:
        book.active.append(row)
    for _ in range(30_000):  # more than is read
        book.active.append(["South", 7])
    book.active.title = "January"
    book.create_sheet("R & D")
    book.save(folder / "quarter.xlsx")
    preview = peek("How many units are in quarter.xlsx?", str(folder))
    assert (
        "quarter.xlsx is an Excel file with the sheets January, R & D. "
        "pd.read_excel('quarter.xlsx', sheet_name=None) gives a dict of all of them. The first one begins:\n" in preview
    )
    assert preview.endswith("\nregion,units\nA & B,3\n4.5\nSouth,7\nSouth,7\nSouth,7")


@pytest.mark.parametrize(
    "part", ["", "<a", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<row><c t='s'><v>9</v></c></row>"]
)
def test_a_broken_workbook_is_not_shown(folder: Path, part: str) -> None:
    with zipfile.ZipFile(folder / "broken.xlsx", "w") as book:
        for name in ("workbook", "sharedStrings", "worksheets/sheet1"):
            book.writestr(f"xl/{name}.xml", part)
    (folder / "cut.xlsx").write_bytes((folder / "broken.xlsx").read_bytes()[:60])
    assert "Excel" not in peek("Read broken.xlsx and cut.xlsx", str(folder))


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("a;b\n1;2\n", ", sep=';'"),
        (
            "due;amount\n03.04.2024;5,50\n21.04.2024;1.017,25\n",
            ", sep=';', decimal=',', parse_dates=['due'], dayfirst=True",
        ),
        ("name,joined\nAda,25/12/2020\nBob,1/2/2020\n", ", parse_dates=['joined'], dayfirst=True"),
        ("name,joined\nAda; Bob,12/25/2020\n", ""),
        ("a,b\n1,50\n", ""),
        ("joined\n", ""),
    ],
)
def test_what_pandas_needs_for_a_table_is_said(folder: Path, table: str, options: str) -> None:
    (folder / "t.csv").write_text(table)
    preview = peek("Read t.csv", str(folder))
    assert f"t.csv is (pd.read_csv('t.csv'{options})):\n" in preview if options else "pd" not in preview


def test_a_binary_file_is_not_shown(folder: Path) -> None:
    assert "PNG" not in peek("logo.png", str(folder))


@given(st.text(max_size=200))
def test_any_request_text_gives_a_preview(words: str) -> None:
    assert isinstance(peek(words, "/nonexistent"), str)
    assert peek(words * 50, "/").startswith("This folder has: ")


def test_the_preview_is_sent_with_the_request_and_stays_unchanged(
    chatting: Chatting, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    block = "```python\nopen('note.txt', 'w').write('changed')\n```"
    interpreter, server = chatting(text(block), text("Done."), auto_run=True)
    interpreter.llm.model = "openai/tiny-coder-1.5b"
    interpreter.chat("Change note.txt", display=False)
    first, second = (request.messages for request in server.requests)
    assert "note.txt is:\nshort" in first[1]["content"]
    assert second[:2] == first
    assert interpreter.messages[0]["content"] == "Change note.txt"


def test_large_models_get_no_preview(chatting: Chatting, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    interpreter, server = chatting(text("Done."))
    interpreter.chat("Change note.txt", display=False)
    assert "short" not in str(server.requests[0].messages)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Add up the amounts in sales.csv", False),
        ("How many days are there until Christmas?", False),
        ("Use shell commands to count the lines of sales.csv", True),
        ("How many files are in this folder?", True),
        ("Move all files with a capital letter into the folder old", True),
        ("Make a list of the files that sales.csv names", False),
        ("Use the file sales.csv in the current folder. What is the mean of amount? Print it.", False),
        ("Which terminal in sales.csv has the highest amount per command?", False),
        ("Use the shell: how many lines has sales.csv?", True),
    ],
)
def test_bash_is_offered_only_for_requests_about_files_or_the_shell(tmp_path: Path, words: str, expected: bool) -> None:
    (tmp_path / "sales.csv").write_text("region,amount\nnorth,5\n")
    (tmp_path / "old").mkdir()
    assert (languages_for(words, str(tmp_path), lambda _: False) == "Python or bash") is expected
