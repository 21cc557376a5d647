"""SQL in the Python session: data frames are tables, results are data frames, and addresses stay private."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from interpreter import OpenInterpreter
from interpreter.languages.conformance import Ran, Samples, Subject
from interpreter.languages.sql import SQL
from sampling import some
from waiting import until

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b"


@pytest.fixture
def interpreter() -> Iterator[OpenInterpreter]:
    made = OpenInterpreter(auto_run=True)
    yield made
    made.computer.terminate()


def text(interpreter: OpenInterpreter, language: str, code: str) -> str:
    chunks = interpreter.computer.run(language, code)
    return Ran([dict(chunk) for chunk in chunks]).text


@pytest.mark.parametrize("database", some(1, [None, "sqlite:///:memory:"]))
def test_data_frames_are_tables_and_results_are_data_frames(interpreter: OpenInterpreter, database: str | None) -> None:
    interpreter.computer.sql = database
    text(interpreter, "python", "import pandas\nsales = pandas.DataFrame({'city': ['Rome', 'Oslo'], 'n': [40, 2]})")
    assert "42" in text(interpreter, "sql", "SELECT sum(n) AS total FROM sales")
    assert text(interpreter, "python", "print(sql_result.total[0])") == "42\n"


def test_a_block_may_have_several_statements_on_a_database_file(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    interpreter.computer.sql = f"sqlite:///{file}"
    text(interpreter, "sql", "CREATE TABLE fruit (name TEXT);\nINSERT INTO fruit VALUES ('a;b');")
    assert sqlite3.connect(file).execute("SELECT name FROM fruit").fetchall() == [("a;b",)]
    text(interpreter, "python", "import pandas\nfruit_new = pandas.DataFrame({'name': ['pear']})")
    assert "pear" in text(interpreter, "sql", "SELECT * FROM fruit_new")
    assert sqlite3.connect(file).execute("SELECT name FROM sqlite_master").fetchall() == [("fruit",)]


def test_passwords_appear_in_no_output_and_no_prompt(interpreter: OpenInterpreter) -> None:
    interpreter.computer.sql = "postgresql://me:hunter2@localhost:1/shop"
    output = text(interpreter, "sql", "SELECT 1")
    assert "hunter2" not in output
    assert "Error" in output
    assert "hunter2" not in interpreter.computer.runtimes.describe_languages()
    assert "hunter2" not in text(interpreter, "shell", "env")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_queries_work_after_the_sandbox_changed(
    interpreter: OpenInterpreter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    interpreter.computer.sql = "sqlite:///:memory:"
    assert "1" in text(interpreter, "sql", "SELECT 1 AS one")
    interpreter.sandbox = "workspace"
    output = text(interpreter, "sql", "SELECT 41 + 1 AS two")
    assert "The sandbox has changed" in output
    assert "42" in output
    assert "Error" not in output


def test_an_endless_query_can_be_stopped() -> None:
    subject = Subject(SQL, Samples(say=""))
    try:
        subject.run("CREATE TABLE kept AS SELECT 42 AS x")

        def stop_when_busy() -> None:
            worker = psutil.Process(subject.language.python.runtime.pid)
            before = worker.cpu_times().user
            until(lambda: worker.cpu_times().user > before + 0.3, "the query to be computing")
            subject.language.stop()

        stopper = threading.Thread(target=stop_when_busy)
        stopper.start()
        assert subject.run(ENDLESS).ended == "interrupted"
        stopper.join()
        assert "42" in subject.run("SELECT x FROM kept").text
    finally:
        subject.close()
