"""Previews files for small models, which otherwise guess: lists a folder, and shows how named files begin."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.host import files

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element
    from zipfile import ZipFile

_NAME = re.compile(r"[\w.~/\\-]*\w")
_SHELL = re.compile(
    r"\b((in|with|use|using|run) (the |a |an )?)(bash|zsh|shell|terminal|command line)\b", re.IGNORECASE
)
_MAYBE_SHELL = re.compile(r"\b(bash|zsh|sh|shell|command|commands|terminal)\b", re.IGNORECASE)
_FOLDERS = re.compile(r"\b(folders?|director(y|ies)|files)\b", re.IGNORECASE)
_FILES = 3
_LINES, _WIDTH = 6, 160
_READ = 4096
_LISTED = 15
_MAX_JSON_BYTES = 1_000_000
_MAX_WORKBOOK_BYTES = 20_000_000
# Arguments that pandas needs for a table, by how its lines look.
_OPTIONS = {
    "sep=';'": re.compile(r"[^,\n]*;.*\n.*;"),
    "decimal=','": re.compile(r"(?s).*;-?[\d.]*\d,\d+(;|\n|$)"),
}
_DAY_FIRST = re.compile(r"\d\d?[./]\d\d?[./]\d{4}"), re.compile(r"(1[3-9]|2\d|3[01])[./]")


def peek(request: str, folder: str) -> str:
    """Describe the files in a folder and those that a request names in a few lines; empty if there are none."""
    named = _named(request, Path(folder))
    parts = [
        _listing(Path(folder), "This folder"),
        *(_listing(path, f"The folder {name}") for name, path in named if path.is_dir()),
        *(beginning(name, path) for name, path in named if path.is_file()),
    ]
    return "\n".join(filter(None, parts))


def languages_for(request: str, folder: str, has_package: Callable[[str], bool]) -> str:
    """Return the languages to suggest. Given a choice, small models use the shell for sums or read tables by hand."""
    named = [path for _, path in _named(request, Path(folder))]
    names_table = any(path.suffix.lower() in (".csv", ".tsv", ".xlsx", ".xls", ".parquet") for path in named)
    # It is about the shell or about files themselves, not about the content of one: a column may be called "command".
    asks_for_shell = (_SHELL if names_table else _MAYBE_SHELL).search(request)
    if asks_for_shell or (_FOLDERS.search(request) and not any(path.is_file() for path in named)):
        return "Python or bash"
    return "Python (pandas)" if names_table and has_package("pandas") else "Python"


def _named(request: str, folder: Path) -> list[tuple[str, Path]]:
    """Find the first few files and folders that a request names."""
    names = [name for name in dict.fromkeys(_NAME.findall(request)) if name not in (".", "..")]
    paths = ((name, folder / os.path.expanduser(name)) for name in names)
    return list(islice(((name, path) for name, path in paths if os.path.exists(path)), _FILES))


def _listing(folder: Path, called: str) -> str:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name + "/" * entry.is_dir() for entry in entries if not entry.name.startswith("."))
    except OSError:
        return ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{called} has: {', '.join(names[:_LISTED])}{more}." if names else f"{called} is empty."


def beginning(name: str, path: Path) -> str:
    """Show how a file begins, or what is in it; empty if a few lines can't show it."""
    try:
        data = files.read_bytes(path, _READ)
    except OSError:
        return ""
    if data.startswith(b"SQLite format 3\0"):
        return _tables(name, path)
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
        return f"{name} is a picture of {width} by {height} pixels."
    if data.startswith(b"PK") and path.suffix.lower() in (".xlsx", ".xlsm"):
        return _sheets(name, path)
    if not data or b"\0" in data:
        return ""
    try:
        text, note = data.decode(errors="strict" if len(data) < _READ else "ignore"), ""
    except UnicodeDecodeError:
        text, note = data.decode("latin-1"), " (not in UTF-8, probably in latin-1)"
    if path.suffix == ".json" and (shape := _json_shape(path)):
        return f"{name} is like this:\n{shape}"
    lines = text.splitlines()
    shown = [line[:_WIDTH] for line in lines[:_LINES]]
    is_all = len(data) < _READ and len(lines) <= _LINES and shown == lines
    options = _pandas_options(lines) if lines and path.suffix.lower() == ".csv" else []
    needs = f" (pd.read_csv({', '.join([repr(name), *options])}))" if options else ""
    return f"{name}{note} {'is' if is_all else 'begins'}{needs}:\n" + "\n".join(shown)


def _pandas_options(lines: list[str]) -> list[str]:
    """Return the arguments that pandas needs to read a table with these lines."""
    text = "\n".join(lines)
    options = [option for option, form in _OPTIONS.items() if form.match(text)]
    header, *rows = [line.split(";" if "sep=';'" in options else ",") for line in lines]
    form, proof = _DAY_FIRST
    dates = []
    for column, name in enumerate(header):
        cells = [row[column].strip('" ') for row in rows if column < len(row)]
        if cells and all(map(form.fullmatch, cells[:_LINES])) and any(map(proof.match, cells)):
            dates.append(name.strip('" '))
    return [*options, f"parse_dates={dates}", "dayfirst=True"] if dates else options


def _json_shape(path: Path) -> str:
    """Write a JSON document on one line, with only the first item of each list; empty if too large or not JSON."""
    try:
        data = files.read_bytes(path, _MAX_JSON_BYTES + 1)
        if len(data) > _MAX_JSON_BYTES:
            return ""
        document = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return ""
    return json.dumps(_first_items(document), ensure_ascii=False)[: _LINES * _WIDTH]


def _first_items(value: Any, depth: int = 4) -> Any:
    if isinstance(value, list):
        more = [f"... {len(value) - 1} more"] if len(value) > 1 else []
        return [_first_items(value[0], depth - 1), *more] if value and depth else more
    if isinstance(value, dict):
        return {key: _first_items(item, depth - 1) for key, item in value.items()} if depth else {}
    return value[:_WIDTH] if isinstance(value, str) else value


def _tables(name: str, path: Path) -> str:
    """Describe the tables of a database, which is opened for reading only."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.1)) as base:
            tables = [row[0] for row in base.execute("select name from sqlite_master where type = 'table' limit 8")]
            columns = {
                table: [row[0] for row in base.execute("select name from pragma_table_info(?)", [table])]
                for table in tables
            }
    except sqlite3.Error:
        return ""
    told = ", ".join(f"{table}({', '.join(names)})" for table, names in columns.items())
    return f"{name} is an SQLite database with the tables {told}." if told else ""


def _sheets(name: str, path: Path) -> str:
    """Return the sheets of a workbook, and how the first one begins."""
    import zlib
    from io import BytesIO
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(BytesIO(files.read_bytes(path, _MAX_WORKBOOK_BYTES))) as book:
            names = [each.get("name", "") for each in _elements(book, "workbook", "sheet")]
            texts = ["".join(each.itertext()) for each in _elements(book, "sharedStrings", "si")]
            lines = []
            for row in _elements(book, "worksheets/sheet1", "row")[:_LINES]:
                values = [("".join(cell[-1].itertext()) if len(cell) else "", cell.get("t") == "s") for cell in row]
                cells = [texts[int(value)] if is_shared else value for value, is_shared in values]
                lines.append(",".join(cells)[:_WIDTH])
    except (OSError, ValueError, RuntimeError, LookupError, BadZipFile, zlib.error):
        return ""
    first = "\n".join([" The first one begins:" if names[1:] else " It begins:", *lines]) if lines else ""
    first = f" pd.read_excel({name!r}, sheet_name=None) gives a dict of all of them.{first}" if names[1:] else first
    sheets = f"the sheet{'s' * bool(names[1:])} {', '.join(names[:_LISTED])}"
    return f"{name} is an Excel file with {sheets}.{first}" if names else ""


def _elements(book: ZipFile, part: str, tag: str) -> list[Element]:
    """Yield the elements of this name from the first bytes of a part of a workbook."""
    from io import BytesIO
    from xml.etree.ElementTree import ParseError, iterparse

    elements: list[Element] = []
    if f"xl/{part}.xml" in book.namelist():
        with book.open(f"xl/{part}.xml") as file:
            data = file.read(_MAX_JSON_BYTES)
        is_plain = not (b"<!DOCTYPE" in data or b"\0" in data)  # with entities, little can become much
        with suppress(ParseError):  # where the part is longer
            for _, each in iterparse(BytesIO(data)) if is_plain else ():
                elements.append(each)
    return [each for each in elements if each.tag.rpartition("}")[2] == tag]
