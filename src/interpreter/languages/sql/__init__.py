"""SQL blocks, run inside the Python runtime: its data frames are tables, and results are data frames."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interpreter.questions import Question, Step
from interpreter.runtimes import built_in
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.live import HasContext, LiveLanguage
from interpreter.runtimes.python import Python

__all__ = ["SQL"]

DRIVER = Path(__file__).with_name("driver.py")


class SQL(built_in.SQL, BaseLanguage):
    """DuckDB if the session's Python has it, else SQLite; or the database that `computer.sql` names."""

    def __init__(self, computer: HasContext | None = None) -> None:
        self._pool: Any = getattr(computer, "runtimes", computer)
        self._own: Python | None = None if hasattr(self._pool, "runtime") else Python(computer)

    @property
    def python(self) -> Any:
        """Return the Python language whose runtime runs the SQL."""
        return self._own or self._pool.runtime("python")

    def version(self) -> str | None:
        context: RuntimeContext | None = getattr(self.python, "context", None)
        if context is None:
            return None  # Python is a user's own class, without a runtime to run SQL in
        if context.sql:
            return context.sql.partition(":")[0]
        engine = "DuckDB" if context.has_python_package("duckdb") else "SQLite"
        return f"{engine}, Python's DataFrames are tables"

    def installed(self) -> str | None:
        """Return the name with the version of DuckDB, read from pip's folder for it."""
        version = self.version()
        if version is None or not version.startswith("DuckDB"):
            return version
        folders = self.python.context.python_environment().places
        places = (place for folder in folders for place in Path(folder).glob("duckdb-*.dist-info"))
        number = next((place.name.removesuffix(".dist-info").partition("-")[2] for place in places), "")
        return f"DuckDB {number}".rstrip()

    def run(self, code: str) -> Iterator[Step]:
        python = self.python
        python.on_end = self.on_end
        old = python.runtime if isinstance(python, LiveLanguage) else None
        if old is not None and old.launch.containment is not python.context.containment:
            # After a sandbox change, start the new runtime first: its folder, for the address file, is a different one.
            yield from _without_lines(python.run(""))
        place = None
        if python.context.sql:  # it may contain a password, so it goes into a private file, not into code
            folder = python.start().folder if isinstance(python, LiveLanguage) else None
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
                file.write(python.context.sql)
            place = file.name
        call = f"__import__('runpy').run_path({str(DRIVER)!r})['run']({code!r}, {place!r}, globals())"
        yield from _without_lines(python.run(call), keep_end=True)

    def stop(self) -> None:
        self.python.stop()

    def terminate(self) -> None:
        if self._own is not None:
            self._own.terminate()


def _without_lines(steps: Iterator[Step], keep_end: bool = False) -> Iterator[Step]:
    """Leave out the active lines, which are not lines of the SQL, and the end of the block unless `keep_end`."""
    for step in steps:
        if isinstance(step, Question) or step.get("format") != "active_line" or (keep_end and step["content"] is None):
            yield step
