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
        ("attach 'x.db' as x (read_only false)", {("read", "x.db"), ("write", "x.db"), ("database", "x.db")}),
        ("attach 'x.db' as x (access_mode read_only)", {("read", "x.db")}),
        ("attach 'sqlite:x.db' as x", {("read", "x.db"), ("write", "x.db"), ("database", "x.db")}),
        ("attach 'md:x'", {("network", "api.motherduck.com")}),
        ("attach 'postgres:host=a.example' as x", {("network", "network")}),
        ('from read_csv("https://a.example/x.csv")', {("network", "a.example")}),
        ("summarize 'https://a.example/x.csv'", {("network", "a.example")}),
        (
            "install x from community",
            {
                ("install", "DuckDB's x"),
                ("network", "community-extensions.duckdb.org"),
                ("unknown", "what the extension community does"),
            },
        ),
        ("copy t to 'file:///outside/x'", {("write", "file:///outside/x")}),
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
     "create virtual table t using csv('x')", "update extensions", "attach 'ducklake:x' as x", "/*! drop table t */", "create secret s (type s3)", "execute p", "pragma profiling_output = 'x'"],
)  # fmt: skip
def test_sql_that_may_do_anything_is_unknown(code: str) -> None:
    assert analyze("sql", code, WORKSPACE).unknown


@pytest.mark.parametrize(
    ("database", "code", "effects"),
    [
        ("sqlite:///a.db", "select 1", {("read", "a.db")}),
        ("sqlite:///a.db", "delete from t", {("read", "a.db"), ("write", "a.db"), ("database", "a.db")}),
        ("sqlite:///a.db", "pragma table_info(t)", {("read", "a.db")}),
        ("mssql+pyodbc://db.example/x", r"select 'a\'; drop table t; -- '",
         {("network", "db.example"), ("database", "mssql+pyodbc")}),
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
        ("shell", "duckdb md:x -c 'delete from t'", {("network", "api.motherduck.com")}),
        ("shell", "psql postgresql://a.example/x -L log -c 'select 1'", {("network", "a.example"), ("write", "log")}),
        ("shell", "psql -h a.example -c '\\dt'", {("network", "a.example")}),
        ("python", "import polars as pl\npl.sql(\"from read_csv('http://a.example/x')\")", {("network", "a.example")}),
        ("python", "con.execute('select 1; -- the first')", set()),
        ("python", "con.execute('pragma user_version')", set()),
        ("python", "df.query('price in [1, 2] and region == \"N\"')", set()),
        ("python", "db.query('select a from t')", set()),
        ("python", "db.query('delete from t')", {("database", "a database")}),
        (
            "python",
            "import duckdb\nduckdb.table('t').query('v', \"copy v to '/outside/x'\")",
            {("write", "/outside/x")},
        ),
        (
            "python",
            "import sqlalchemy as sa\nwith sa.create_engine('sqlite:///a.db').begin() as c:\n"
            "    c.execute(sa.text('delete from t'))",
            {("write", "a.db"), ("database", "a.db")},
        ),
        (
            "python",
            "import sqlalchemy as sa\nwith sa.create_engine('sqlite:///a.db').connect() as c:\n"
            "    c.execute(sa.text('select 1')).scalars().all()",
            {("write", "a.db")},
        ),
        ("python", "con.execute('pragma user_version(5)')", {("database", "a database")}),
        # Which of these is text depends on the database, which is not known here.
        ("python", r"""con.execute("select 'a\\'; drop table t; -- '")""", {("database", "a database")}),
        ("python", r"""con.execute("select 'a\\''; drop table t; -- '")""", {("database", "a database")}),
        ("python", 'con.execute("select 1 /* /* */; drop table t; -- */")', {("database", "a database")}),
        (
            "python",
            "import pandas as pd\npd.read_sql('select 1', 'postgresql://a.example/x')",
            {("network", "a.example")},
        ),
    ],
)
def test_sql_inside_other_code(language: str, code: str, effects: set[tuple[str, str]]) -> None:
    assert seen(language, code) == effects


@pytest.mark.parametrize(
    ("code", "databases"),
    [
        ("import duckdb\ncon = duckdb.connect('a.db'); con.sql('create table t as select 1')", {"a.db"}),
        ("import duckdb\nduckdb.connect(database='a.db').query('delete from t')", {"a.db"}),
        ("import duckdb\nwith duckdb.connect('a.db') as con: con.append('t', df)", {"a.db"}),
        ("import duckdb\ncon = duckdb.connect('a.db'); con.table('t').insert([1])", {"a.db"}),
        ("import duckdb\ncon = duckdb.connect('a.db'); con.cursor().execute('delete from t')", {"a.db"}),
        ("import duckdb\ncon = duckdb.connect(); con.sql('create table t as select 1')", set()),
        ("import duckdb\ncon = duckdb.connect('a.db', read_only=True); con.sql('select 1')", set()),
        ("import sqlite3\na = sqlite3.connect(':memory:'); b = sqlite3.connect('b.db'); b.execute('drop table t')", {"b.db"}),
        ("import sqlite3\na = sqlite3.connect('a.db'); b = sqlite3.connect(':memory:'); b.execute('drop table t')", set()),
        ("import sqlite3\na = sqlite3.connect('a.db'); b = sqlite3.connect('b.db'); b.cursor().execute('drop table t')", {"b.db"}),
        ("import sqlite3\nself.a = sqlite3.connect('a.db'); b = sqlite3.connect(':memory:'); self.a.execute('drop table t')", {"a.db"}),
        ("import sqlite3\nsqlite3.connect('a.db').execute('drop table t')", {"a.db"}),
        ("import sqlite3\na = sqlite3.connect(':memory:'); other.execute('drop table t')", {"a database"}),
        ("import sqlite3\na = sqlite3.connect(':memory:')\ndf.to_sql('t', a)", set()),
        ("import sqlite3\na = sqlite3.connect(':memory:')\ndf.to_sql('t', 'sqlite:///b.db')", {"b.db"}),
        ("import pandas as pd\npd.read_sql('drop table t', con=sqlite3.connect('a.db'))", {"a.db"}),
        ("a = b; b = a; a.execute('drop table t')", {"a database"}),  # what stands for itself
        ("import pymysql\npymysql.connect(host='a.example').query('/*! drop table t */')", {"a database"}),
    ],
)  # fmt: skip
def test_python_changes_the_database_that_its_connection_is_to(code: str, databases: set[str]) -> None:
    assert {effect.what for effect in analyze("python", code, WORKSPACE).of("database")} == databases


@pytest.mark.parametrize("code", ["sqlite3 a.db < a.sql", "cat a.sql | sqlite3 a.db", "duckdb < a.sql"])
def test_what_a_database_shell_reads_may_do_anything(code: str) -> None:
    assert analyze("shell", code, WORKSPACE).unknown


def test_later_python_may_change_a_database_that_duckdb_has_attached() -> None:
    first = analyze("python", "import duckdb\nduckdb.sql(\"attach 'x.db' as x\")", WORKSPACE)
    later = "import duckdb\nduckdb.sql('insert into x.t values (1)')"
    assert [effect.what for effect in analyze("python", later, WORKSPACE, known=first.defines).of("database")] == [
        "x.db"
    ]


def test_a_method_that_is_handed_on_may_change_anything() -> None:
    code = "import sqlite3\nlist(map(sqlite3.connect('a.db').execute, ['drop table t']))"
    assert analyze("python", code, WORKSPACE).unknown


def test_the_parser_is_imported_for_sql_alone(tmp_path: Path) -> None:
    code = (
        "import sys; from interpreter.policy.analysis import analyze\n"
        "analyze('python', 'open(1)', '.'); analyze('shell', 'ls', '.'); assert 'sqlglot' not in sys.modules\n"
        "analyze('sql', 'select 1', '.'); assert 'sqlglot' in sys.modules"
    )
    done = processes.run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
