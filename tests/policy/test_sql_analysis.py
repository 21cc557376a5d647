"""Static analysis of SQL: in blocks, and inside Python, JavaScript and shell code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interpreter.host import processes
from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE, seen


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        ("select region, sum(units) from sales group by 1", set()),
        ("create table t (a int); insert into t values (1)", set()),  # in memory
        ("select * from 'a.csv' join \"b.parquet\" using (x)", {("read", "a.csv"), ("read", "b.parquet")}),
        ("from read_csv(['a.csv', 'b.csv'])", {("read", "a.csv"), ("read", "b.csv")}),
        ("copy (select 1) to 'x.csv'", {("write", "x.csv")}),
        ("copy t from 'x.csv'", {("read", "x.csv")}),
        ("select * from 'https://a.example/x.csv'", {("network", "a.example")}),
        ("copy t to 's3://bucket/x'", {("network", "s3.amazonaws.com")}),
        ("attach 'x.db' as x (read_only)", {("read", "x.db")}),
        ("attach 'x.db' as x", {("read", "x.db"), ("write", "x.db"), ("database", "x.db")}),
        ("install httpfs", {("install", "DuckDB's httpfs"), ("network", "extensions.duckdb.org")}),
        (
            "install json from 'http://a.example'",
            {
                ("install", "DuckDB's json"),
                ("network", "a.example"),
                ("unknown", "what the extension http://a.example does"),
            },
        ),
        ("explain analyze copy t to 'x.csv'", {("write", "x.csv")}),
        ("vacuum into 'x.db'", {("write", "x.db")}),
        ("-- copy t to 'x'\nselect 'copy t to y'", set()),
    ],
)
def test_effects_of_a_sql_block(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("sql", code) == effects


@pytest.mark.parametrize(
    "code",
    ["select writefile('x', 'y')", "select load_extension('x')", "copy t to program 'x'", "set home_directory = 'x'", "from query('x')",
     "load './x.duckdb_extension'", "import database 'x'", "select getenv('X')", "do $$ x $$", "this is not sql", "select pg_read_file('x')",
     "create virtual table t using csv('x')", "create secret s (type s3)", "execute p", "pragma profiling_output = 'x'"],
)  # fmt: skip
def test_sql_that_may_do_anything_is_unknown(code: str) -> None:
    assert analyze("sql", code, WORKSPACE).unknown


@pytest.mark.parametrize(
    ("database", "code", "effects"),
    [
        ("sqlite:///a.db", "select 1", {("read", "a.db")}),
        ("sqlite:///a.db", "delete from t", {("read", "a.db"), ("write", "a.db"), ("database", "a.db")}),
        ("postgresql://u:p@db.example/x", "select 1", {("network", "db.example")}),
        ("postgresql://u:p@db.example/x", "with d as (delete from t returning *) select * from d",
         {("network", "db.example"), ("database", "postgresql")}),
    ],
)  # fmt: skip
def test_effects_on_the_database_of_the_session(database: str, code: str, effects: set[tuple[str, str]]) -> None:
    found = analyze("sql", code, WORKSPACE, database=database)
    assert {(effect.kind, effect.what) for effect in found.all} == effects


def test_a_later_block_may_change_an_attached_database() -> None:
    first = analyze("sql", "attach 'x.db' as x", WORKSPACE)
    later = analyze("sql", "insert into x.t values (1)", WORKSPACE, known=first.defines)
    assert [effect.what for effect in later.of("database")] == ["x.db"]
    assert not analyze("sql", "select 1", WORKSPACE, known=first.defines).all


@pytest.mark.parametrize(
    ("language", "code", "effects"),
    [
        ("python", "import duckdb\nduckdb.sql(\"select * from 'http://a.example/x.csv'\")", {("network", "a.example")}),
        ("python", "import duckdb\nduckdb.sql(\"copy t to 'x.csv'\")", {("write", "x.csv")}),
        ("python", "import pandas as pd\npd.read_sql('t', c)", set()),
        ("javascript", "db.query('delete from t')", {("database", "a database")}),
        ("shell", "duckdb -c \"from 'https://a.example/x.csv'\"", {("network", "a.example")}),
        ("shell", "sqlite3 a.db '.once x' 'select 1'", {("read", "a.db"), ("write", "x")}),
        ("shell", "psql -h a.example -c '\\dt'", {("network", "a.example")}),
    ],
)
def test_sql_inside_other_code(language: str, code: str, effects: set[tuple[str, str]]) -> None:
    assert seen(language, code) == effects


def test_the_parser_is_imported_for_sql_alone(tmp_path: Path) -> None:
    code = (
        "import sys; from interpreter.policy.analysis import analyze\n"
        "analyze('python', 'open(1)', '.'); analyze('shell', 'ls', '.'); assert 'sqlglot' not in sys.modules\n"
        "analyze('sql', 'select 1', '.'); assert 'sqlglot' in sys.modules"
    )
    done = processes.run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
