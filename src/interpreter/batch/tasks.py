"""The tasks of a batch: read from a file or a folder, checked as a whole before the first request."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interpreter.errors import InterpreterError, UsageError
from interpreter.host.installation import pip_command

MAX_PROBLEMS = 10  # shown at once
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Task:
    """One row of the input: a request for a separate session."""

    id: str
    message: str
    files: tuple[str, ...] = ()  # copied into the folder of the session
    model: str | None = None
    schema: Mapping[str, Any] | None = None
    budget: float | None = None  # dollars

    @property
    def digest(self) -> str:
        return _digest(asdict(self))


def read_tasks(source: Path, template: str | None = None) -> list[Task]:
    """Read the tasks of a JSONL, CSV or Parquet file, or one per file of a folder. UsageError lists what is wrong."""
    if not source.exists():
        raise UsageError(f"{source} does not exist.")
    return tasks_of(_rows(source), template, source if source.is_dir() else source.parent, str(source))


def tasks_of(rows: Iterable[Any], template: str | None, folder: Path, source: str = "row") -> list[Task]:
    """Make tasks of rows: texts, or mappings with `prompt` or the columns that the template names."""
    problems: list[str] = []
    tasks: list[Task] = []
    numbers: dict[str, int] = {}  # by id, of its first row
    for number, row in enumerate(rows, 1):
        try:
            task = _task(row, template, folder)
            if task.id in numbers:
                advice = "Give each its own id." if "id" in row else "Remove one, or give each an id."
                raise ValueError(f"the same task as row {numbers[task.id]} ({task.id}). {advice}")
        except ValueError as error:
            problems.append(f"{source}, row {number}: {error}")
            continue
        numbers[task.id] = number
        tasks.append(task)
    if problems:
        more = [f"... and {len(problems) - MAX_PROBLEMS:,} more"] if len(problems) > MAX_PROBLEMS else []
        raise UsageError("\n".join([*problems[:MAX_PROBLEMS], *more]))
    if not tasks:
        raise UsageError(f"{source} has no tasks.")
    return tasks


def digest_of(tasks: Iterable[Task], settings: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of everything a batch depends on, so that a resumed batch can report changes."""
    parts = {name: _digest(value) for name, value in settings.items()}
    return {"tasks": _digest([task.digest for task in tasks]), **parts}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _task(row: Any, template: str | None, folder: Path) -> Task:
    """Make the task of a row; ValueError describes a problem with the row."""
    row = {"prompt": row} if isinstance(row, str) else row
    if not isinstance(row, Mapping):
        raise ValueError("not an object with named values.")
    message = _filled(template, row) if template is not None else row.get("prompt")
    if not isinstance(message, str) or not message.strip():
        raise ValueError("no prompt. Add a column `prompt`, or use --prompt 'Summarise {text}'.")
    files, schema = _files(row.get("files") or (), folder), row.get("schema")
    if isinstance(schema, str) and schema:
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise ValueError(f"its schema is not JSON: {error}.") from None
    if schema and not isinstance(schema, Mapping):
        raise ValueError("its schema is not an object.")
    try:
        budget = float(row["budget"]) if row.get("budget") not in (None, "") else None
    except (TypeError, ValueError):
        raise ValueError(f"its budget is not a number of dollars: {row['budget']!r}.") from None
    task = Task("", message, files, str(row.get("model") or "") or None, schema or None, budget)
    given = str(row.get("id") if row.get("id") is not None else "")
    return Task(given or task.digest, message, files, task.model, task.schema, budget)


def _filled(template: str, row: Mapping[str, Any]) -> str:
    """Put the values of a row into a template."""

    def value(field: re.Match[str]) -> str:
        if field[1] not in row:
            raise ValueError(f"no column {field[1]!r}; it has {', '.join(map(repr, row)) or 'none'}.")
        return str(row[field[1]])

    return _FIELD.sub(value, template)


def _files(names: Any, folder: Path) -> tuple[str, ...]:
    names = [names] if isinstance(names, str) else names
    paths = [os.path.join(folder, str(name)) for name in names]
    for path in paths:
        if not os.path.isfile(path):
            raise ValueError(f"its file {path} does not exist.")
    same = {os.path.basename(path) for path in paths}
    if len(same) < len(paths):
        raise ValueError("two of its files have the same name.")
    return tuple(os.path.abspath(path) for path in paths)


# -- reading -----------------------------------------------------------------------------------------------------------


def _rows(source: Path) -> Iterator[Any]:
    if source.is_dir():
        for path in sorted(source.iterdir()):
            if path.is_file() and not path.name.startswith("."):
                yield {"id": path.name, "file": path.name, "files": [path.name]}
        return
    match source.suffix.lower():
        case ".csv":
            with source.open(encoding="utf-8-sig", newline="") as lines:
                yield from csv.DictReader(lines)
        case ".parquet":
            yield from _parquet(source)
        case ".jsonl" | ".ndjson" | ".json":
            with source.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        try:
                            yield json.loads(line)
                        except ValueError as error:
                            raise UsageError(f"{source}, line {number} is not JSON: {error}.") from None
        case suffix:
            raise UsageError(
                f"{source}: tasks are read from .jsonl, .csv and .parquet files, and from folders, not "
                f"from {suffix or 'files without an extension'}."
            )


def _parquet(source: Path) -> Iterator[Any]:
    try:
        import pyarrow.parquet
    except ImportError:
        command = " ".join(pip_command("pyarrow"))
        raise InterpreterError(f"Parquet files need pyarrow: {command}") from None
    for batch in pyarrow.parquet.ParquetFile(source).iter_batches():
        yield from batch.to_pylist()


def write_parquet(rows: list[dict[str, Any]], target: Path) -> None:
    """Write results as Parquet; values that are lists or objects are written as JSON."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        command = " ".join(pip_command("pyarrow"))
        raise InterpreterError(f"Parquet files need pyarrow: {command}") from None
    arrow.parquet.write_table(arrow.Table.from_pylist(_flat(rows)), target)


def write_csv(rows: list[dict[str, Any]], target: Path) -> None:
    with target.open("w", encoding="utf-8", newline="") as file:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(_flat(rows))


def _flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write values that a table can't hold as JSON; columns with values of several types become text."""
    columns = dict.fromkeys(name for row in rows for name in row)
    kinds = {name: {type(row[name]) for row in rows if row.get(name) is not None} for name in columns}

    def cell(name: str, value: Any) -> Any:
        if value is None or (len(kinds[name]) == 1 and not isinstance(value, list | dict)):
            return value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return [{name: cell(name, row.get(name)) for name in columns} for row in rows]
