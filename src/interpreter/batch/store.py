"""What a batch keeps on disk: one line per result, and a journal of attempts and requests beside it.

The first result of a task counts. A line is written at once and flushed to the disk; a torn last line of an earlier
run is cut off. A lock on the journal keeps a second run away.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from interpreter.batch.tasks import write_csv, write_parquet
from interpreter.errors import InterpreterError, UsageError
from interpreter.host import files

FORMATS = (".jsonl", ".csv", ".parquet")


def journal_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.journal")


class LineFile:
    """A file of JSON lines that is only appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file, self._writing = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), threading.Lock()

    def lock(self) -> bool:
        """Keep other processes from using it; False if one does."""
        try:
            files.lock(self._file)
        except BlockingIOError:
            return False
        return True

    def read(self) -> list[dict[str, Any]]:
        """Read all lines, and cut off a last one that was not written completely."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.ftruncate(self._file, len(whole))
        os.lseek(self._file, 0, os.SEEK_END)
        rows = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                rows.append(json.loads(line))
            except ValueError:
                raise UsageError(f"{self.path}, line {number} is not a line of a batch.") from None
        return rows

    def append(self, row: Mapping[str, Any], sync: bool = False) -> None:
        """Write a line, all of it or nothing."""
        line = json.dumps(row, ensure_ascii=False, default=repr).encode("utf-8", "backslashreplace") + b"\n"
        with self._writing:
            begin = os.lseek(self._file, 0, os.SEEK_END)
            try:
                files.write_all(self._file, line)
                if sync:
                    os.fsync(self._file)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._file, begin)
                raise InterpreterError(
                    f"{self.path} can't be written: {error.strerror}. The batch stops here; every result so far is in "
                    "the file. Start it again when that is fixed."
                ) from error

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace all lines."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        temporary = self.path.with_name(f".{self.path.name}.new")
        temporary.write_bytes(text)
        os.replace(temporary, self.path)
        os.close(self._file)
        self._file = os.open(self.path, os.O_RDWR)
        os.lseek(self._file, 0, os.SEEK_END)

    def close(self) -> None:
        os.close(self._file)


class Store:
    """The results and the journal of one batch. Only one process has them open."""

    def __init__(self, out: Path, retry_failed: bool = False) -> None:
        self.out, self._numbering = out, threading.Lock()
        if out.suffix.lower() not in FORMATS:
            raise UsageError(f"--out takes a file that ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not {out}.")
        if not out.parent.is_dir():
            raise UsageError(f"{out.parent} is not a folder.")
        self.journal = LineFile(journal_of(out))
        if not self.journal.lock():
            self.journal.close()
            raise UsageError(f"A batch is already writing {out}. `interpreter batch status {out}` shows how far it is.")
        is_lines = out.suffix.lower() == ".jsonl"
        self.lines = LineFile(out if is_lines else out.with_name(f"{out.name}.jsonl"))
        entries = self.journal.read()
        self.results = {str(row["id"]): row for row in reversed(self.lines.read()) if "id" in row}
        self.results = dict(reversed(self.results.items()))
        if retry_failed:
            self.results = {key: row for key, row in self.results.items() if row["status"] != "failed"}
            self.lines.replace(self.results.values())
        self.depends_on: dict[str, str] = next((entry["batch"] for entry in entries if "batch" in entry), {})
        self.attempts: dict[str, int] = {}
        for entry in entries:
            if "attempt" in entry:
                self.attempts[entry["attempt"]] = entry["number"]
        self.spent, self._request = spending(entries)

    def begin(self, depends_on: Mapping[str, str], count: int) -> None:
        """Begin, or resume a batch that depends on the same; UsageError names what has changed."""
        if not self.depends_on:
            if self.results:
                raise UsageError(f"{self.out} has results of something else. Choose another file for --out.")
            self.journal.append({"batch": dict(depends_on), "tasks": count}, sync=True)
            self.depends_on = dict(depends_on)
        changed = sorted(
            name for name in {*depends_on, *self.depends_on} if depends_on.get(name) != self.depends_on.get(name)
        )
        if changed:
            raise UsageError(
                f"{self.out} belongs to a batch with other {' and '.join(changed)}. To run this one, choose another "
                "file for --out; to continue that one, start it as you did."
            )

    def begin_attempt(self, task: str) -> int:
        self.attempts[task] = number = self.attempts.get(task, 0) + 1
        self.journal.append({"attempt": task, "number": number})
        return number

    def reserve(self, task: str, dollars: float) -> int:
        """Note a request that is about to be sent, with the most that it can cost; return its number."""
        with self._numbering:
            self._request += 1
            number = self._request
        self.journal.append({"reserve": number, "task": task, "cost": dollars})
        return number

    def settle(self, number: int, dollars: float, tokens: int) -> None:
        self.journal.append({"settle": number, "cost": dollars, "tokens": tokens})

    def commit(self, row: Mapping[str, Any]) -> bool:
        """Write a result; False if its task has one."""
        key = str(row["id"])
        if key in self.results:
            return False
        self.lines.append(row, sync=True)
        self.results[key] = dict(row)
        return True

    def finish(self, order: Iterable[str]) -> None:
        """Write the results as a table, in the order of the tasks, if that is what `out` is."""
        rows = [self.results[key] for key in order if key in self.results]
        write = {".csv": write_csv, ".parquet": write_parquet}.get(self.out.suffix.lower())
        if write is not None:
            temporary = self.out.with_name(f".{self.out.name}.new")
            write(rows, temporary)
            os.replace(temporary, self.out)

    def close(self) -> None:
        self.lines.close()
        self.journal.close()


def spending(entries: Iterable[Mapping[str, Any]]) -> tuple[float, int]:
    """Return what the requests in a journal cost, those without an answer at their most; and the last number."""
    costs: dict[int, float] = {}
    for entry in entries:
        number = entry.get("reserve") or entry.get("settle")
        if number is not None:
            costs[number] = entry["cost"]
    return sum(costs.values()), max(costs, default=0)


def read_status(out: Path) -> dict[str, Any]:
    """Read how far a batch is, while it runs or later."""
    journal = journal_of(out)
    lines = out if out.suffix.lower() == ".jsonl" else out.with_name(f"{out.name}.jsonl")
    if not journal.exists():
        raise UsageError(f"There is no batch with results in {out}.")
    entries = [_parsed(line) for line in journal.read_bytes().splitlines()]
    rows = [_parsed(line) for line in lines.read_bytes().splitlines()] if lines.exists() else []
    statuses = {str(row["id"]): row.get("status") for row in rows if "id" in row}
    with journal.open("rb") as file:
        try:
            files.lock(file.fileno(), shared=True)
            is_running = False
        except BlockingIOError:
            is_running = True
    begun = {entry["attempt"] for entry in entries if "attempt" in entry}
    return {
        "tasks": next((entry["tasks"] for entry in entries if "batch" in entry), 0),
        "done": sum(status == "done" for status in statuses.values()),
        "failed": sum(status == "failed" for status in statuses.values()),
        "running": len(begun - set(statuses)) if is_running else 0,
        "cost": spending(entries)[0],
        "tokens": sum(entry.get("tokens", 0) for entry in entries),
        "is_running": is_running,
    }


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(line)
        return row
    except ValueError:
        return {}  # it is being written
