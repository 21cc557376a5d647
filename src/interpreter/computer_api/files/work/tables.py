"""Read Excel and Parquet files, which code may have made malicious: in a process where the session is."""

from __future__ import annotations

import base64
import io
import tempfile
from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

MAX_CELLS = 500_000
MAX_MEMORY = 4 << 30  # bytes, where the system can limit it
KINDS = {"int": "integer", "float": "number", "str": "text", "bool": "true/false", "datetime": "date", "date": "date"}
NEEDED = "there is no %s in the session's Python (!pip install %s)"

Column = Tuple[str, str, List[str]]  # its name, its type, its cells as text


def read(folder: str, kind: str, contents: List[Optional[str]]) -> List[Optional[Dict[str, List[Column]]]]:
    """Return the tables in each of these contents (base64) by their names; Excel has one in each sheet."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    load = sheets if kind == "xlsx" else parquet
    try:
        return [None if content is None else load(base64.b64decode(content)) for content in contents]
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 -- what a library says about a file that is damaged or too large
        raise ValueError("it can't be read (%s)" % (str(error) or type(error).__name__)) from None


def sheets(content: bytes) -> Dict[str, List[Column]]:
    try:
        load_workbook = import_module("openpyxl").load_workbook
    except ImportError:
        raise ImportError(NEEDED % ("openpyxl", "openpyxl")) from None
    tables, left = {}, MAX_CELLS
    for sheet in load_workbook(io.BytesIO(content), read_only=True).worksheets:
        rows: List[Sequence[Any]] = []
        for row in sheet.iter_rows(values_only=True):
            left -= len(row)
            check(left)
            rows.append(row)
        header, *rows = rows or [()]
        names = ["column %d" % number if name is None else text(name) for number, name in enumerate(header, 1)]
        columns = [[row[at] if at < len(row) else None for row in rows] for at in range(len(names))]
        tables[sheet.title] = [(name, kind_of(cells), list(map(text, cells))) for name, cells in zip(names, columns)]
    return tables


def parquet(content: bytes) -> Dict[str, List[Column]]:
    return {"": [(name, kind, list(map(text, cells))) for name, kind, cells in parquet_columns(content)]}


def parquet_columns(content: bytes) -> Iterator[Tuple[str, str, List[Any]]]:
    """Yield the columns, read by whichever of these libraries is installed."""
    buffer = io.BytesIO(content)
    with suppress(ImportError):
        file = import_module("pyarrow.parquet").ParquetFile(buffer)
        check(MAX_CELLS - file.metadata.num_rows * file.metadata.num_columns)
        table = file.read(use_threads=False)
        return ((field.name, str(field.type), table.column(at).to_pylist()) for at, field in enumerate(table.schema))
    with suppress(ImportError):
        polars = import_module("polars")
        lazy = polars.scan_parquet(buffer)
        check(MAX_CELLS - lazy.select(polars.len()).collect().item() * len(lazy.collect_schema()))
        return ((each.name, str(each.dtype), each.to_list()) for each in lazy.collect().get_columns())
    with suppress(ImportError):
        duckdb = import_module("duckdb")
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            file.write(content)
            file.flush()
            result = duckdb.from_parquet(file.name)
            check(MAX_CELLS - len(result) * len(result.columns))
            cells = zip(*result.fetchall()) if len(result) else ([] for _ in result.columns)
            return iter([(*each[:2], list(each[2])) for each in zip(result.columns, map(str, result.types), cells)])
    raise ImportError(NEEDED % ("pyarrow, polars or duckdb", "pyarrow"))


def check(left: int) -> None:
    if left < 0:
        raise ValueError("there are more than %s cells" % format(MAX_CELLS, ","))


def kind_of(cells: List[Any]) -> str:
    kinds = {KINDS.get(type(value).__name__, type(value).__name__) for value in cells if value is not None}
    return "number" if kinds == {"integer", "number"} else ", ".join(sorted(kinds))


def text(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(value)[:-9] if hasattr(value, "isoformat") and str(value).endswith(" 00:00:00") else str(value)
