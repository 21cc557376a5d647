"""Runs SQL inside the Python runtime, on the session's Python (3.8 or later), with only the standard library."""

from __future__ import annotations

import builtins
import os
import re
import sqlite3
import sys
import threading
from types import ModuleType
from typing import Any

STATE = "interpreter_sql"  # the module that keeps the connections from block to block
FRAMES = {"DataFrame", "LazyFrame", "Table"}
LIBRARIES = {"pandas", "polars", "pyarrow"}
RESULT = "sql_result"
POLL_INTERVAL = 0.05  # seconds
MAX_PLAIN = 100  # rows that are printed where there is no pandas


def run(code: str, address_file: str | None, namespace: dict[str, Any]) -> None:
    """Run a block of SQL; the result is shown and kept as `sql_result`."""
    address = ""
    if address_file:
        with open(address_file, encoding="utf-8") as file:
            address = file.read()
        os.unlink(address_file)
    try:
        identifiers = set(re.findall(r"\w+", code))
        frames = {  # data frames that the code may refer to
            name: value
            for name, value in namespace.items()
            if name in identifiers
            and type(value).__name__ in FRAMES
            and type(value).__module__.split(".")[0] in LIBRARIES
        }
        state: Any = sys.modules.setdefault(STATE, ModuleType(STATE))
        connections = state.__dict__.setdefault("connections", {})
        if address not in connections:
            connections[address] = open_database(address)
        names, rows = interruptible(connections[address], code, frames)
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None
    except Exception as error:  # noqa: BLE001 - a traceback would be about this file, and could show the address
        message = "%s: %s" % (type(error).__name__, error)
        print(message.replace(address, "the database") if address else message, file=sys.stderr)
        raise SystemExit(1) from None
    if names and not (names == ["Count"] and not rows):
        show(names, rows, namespace)


def open_database(address: str) -> Any:
    kind, _, rest = address.partition(":")
    path = rest[3:] if rest.startswith("///") else rest
    if kind == "sqlite":
        return sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
    if kind in ("", "duckdb"):
        try:
            import duckdb
        except ImportError:
            if address:
                raise
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection = duckdb.connect(path or ":memory:")
        connection.execute("SET enable_progress_bar = false")
        return connection
    try:
        import sqlalchemy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError("a database at %s:// needs SQLAlchemy: pip install sqlalchemy" % kind) from None
    return sqlalchemy.create_engine(address).connect().execution_options(isolation_level="AUTOCOMMIT")


def interruptible(connection: Any, code: str, frames: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """Execute in another thread: Ctrl-C reaches this one, but not the inside of a database."""
    done: list[tuple[list[str], list[Any]] | BaseException] = []

    def work() -> None:
        try:
            done.append(execute(connection, code, frames))
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
            done.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(POLL_INTERVAL)
    except KeyboardInterrupt:
        if hasattr(connection, "interrupt"):
            connection.interrupt()
            worker.join()
        raise
    if isinstance(done[0], BaseException):
        raise done[0]
    return done[0]


def execute(connection: Any, code: str, frames: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """Execute the statements, and return the columns and rows of the last one."""
    names: list[str] = []
    rows: list[Any] = []
    if isinstance(connection, sqlite3.Connection):
        for name, frame in frames.items():
            copy_frame(connection, name, frame)
        try:
            for statement in statements(code):
                cursor = connection.execute(statement)
                names = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchall()
            return names, rows
        finally:
            for name in frames:
                connection.execute('DROP TABLE IF EXISTS temp."%s"' % name)
    if type(connection).__module__.startswith("sqlalchemy"):
        result = connection.exec_driver_sql(code)
        return (list(result.keys()), [tuple(row) for row in result]) if result.returns_rows else ([], [])
    for name, frame in frames.items():
        connection.register(name, frame)
    try:
        connection.execute(code)
        names = [column[0] for column in connection.description or ()]
        return names, connection.fetchall() if names else []
    finally:
        for name in frames:
            connection.unregister(name)


def copy_frame(connection: sqlite3.Connection, name: str, frame: Any) -> None:
    """Copy a data frame to a temporary table for SQLite; the database itself stays as it is."""
    if hasattr(frame, "collect"):
        frame = frame.collect()
    if hasattr(frame, "to_dicts") or hasattr(frame, "to_pylist"):
        rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_pylist()
    else:
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    names = [str(column) for column in getattr(frame, "column_names", frame.columns)]
    quoted = ", ".join('"%s"' % column.replace('"', '""') for column in names)
    connection.execute('CREATE TEMP TABLE "%s" (%s)' % (name, quoted))
    plain = (int, float, str, bytes, type(None))
    values = [[value if isinstance(value, plain) else str(value) for value in row.values()] for row in rows]
    connection.executemany('INSERT INTO temp."%s" VALUES (%s)' % (name, ", ".join("?" * len(names))), values)


def statements(code: str) -> list[str]:
    complete, pending = [], ""
    for piece in re.split(r"(?<=;)", code):
        pending += piece
        if sqlite3.complete_statement(pending):
            complete.append(pending)
            pending = ""
    return [*complete, pending] if pending.strip() else complete


def show(names: list[str], rows: list[Any], namespace: dict[str, Any]) -> None:
    display: Any = namespace.get("display") or getattr(builtins, "display", print)
    try:
        import pandas  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        namespace[RESULT] = [dict(zip(names, row)) for row in rows]
        for row in [names, *rows[:MAX_PLAIN]]:
            print(" | ".join(map(str, row)))
        if len(rows) > MAX_PLAIN:
            print("... %d rows" % len(rows))
        return
    namespace[RESULT] = pandas.DataFrame(rows, columns=names)
    display(namespace[RESULT])
