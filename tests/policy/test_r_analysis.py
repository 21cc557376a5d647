"""Static analysis of R code, with R's own parser."""

from __future__ import annotations

import pytest

from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE, seen
from sampling import some

pytestmark = pytest.mark.needs("Rscript")


@pytest.mark.parametrize(
    ("code", "effects"),
    some(6, [
        ("df <- read.csv('a.csv') |> subset(x > 1)\nwrite.csv(df, file.path('out', 'b.csv'))",
         {("read", "a.csv"), ("write", "out/b.csv")}),
        ("library(dplyr)\nfor (f in c('a', 'b')) file.remove(f)", {("delete", "a"), ("delete", "b")}),
        ("f <- list.files('data', full.names = TRUE)\nlapply(f, read.csv)", {("read", "data"), ("read", "data/*")}),
        ("system('rm x'); install.packages('zoo')",
         {("delete", "x"), ("install", "zoo"), ("network", "cloud.r-project.org")}),
        ("con <- file('x', 'w'); writeLines('a', con); download.file('https://a.example/y', 'y')",
         {("write", "x"), ("network", "a.example"), ("write", "y")}),
        ("'x' %>% unlink", {("delete", "x")}),
        ("`unlink`('x'); base::unlink('y')", {("delete", "x"), ("delete", "y")}),
        ("write.csv(f = 'x', x = df)", {("write", "x")}),
        ("con <- dbConnect(SQLite(), 'a.db'); dbExecute(con, 'delete from t')",
         {("write", "a.db"), ("read", "a.db"), ("database", "a.db")}),
        ("setwd('/outside'); saveRDS(1, 'x')", {("write", "x")}),
        ("fread(cmd = 'rm x'); fread('rm y'); lapply('z', fread)", {("delete", "x"), ("delete", "y"), ("read", "z")}),
        ("save.image(); pdf(); svg(filename = 'x')", {("write", ".RData"), ("write", "Rplots.pdf"), ("write", "x")}),
        ("con <- dbConnect(duckdb(), dbdir = 'a.db'); m <- dbConnect(SQLite(), ':memory:'); dbExecute(con, 'delete from t')",
         {("write", "a.db"), ("read", "a.db"), ("database", "a.db")}),
        ("con <- dbConnect(duckdb(dbdir = 'a.db')); dbExecute(con, 'delete from t')",
         {("write", "a.db"), ("read", "a.db"), ("database", "a.db")}),
        ("con <- dbConnect(duckdb()); dbExecute(con, 'create table t (a int)')", set()),
        ("tools::pskill(7)", {("kill", "process 7")}),
        ("unzip('a.zip', list = TRUE)", {("read", "a.zip")}),
        ("train <- df[idx, ]; apply(df[, 2:3], 1, max); dt[, .(n = sum(x)), by = g][order(-n)]; unlink(c('a', x[, 1]))",
         {("delete", "a"), ("delete", "*")}),
        ("m <- lm(y ~ x, data = df); summary(m); plot(m$fitted.values)", set()),
    ]),
)  # fmt: skip
def test_effects_of_r_code(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("r", code) == effects


@pytest.mark.parametrize(
    "code",
    some(4, [
        "x <- unlink; x('a')", "eval(parse(text = 'unlink(1)'))", "get('unlink')('a')", "baseenv()$unlink('a')",
        "base:::unlink('a')", "library(nobody_knows_it)", "f <- function() unlink\nf()('a')", "do.call('unlink', list('a'))",
        "load('a.RData')", "source('a.R')", "options(editor = 'x')", "nobody_knows()", "unzip('a.zip')", "untar('a.tar', tar = 'x')", "q('yes')",
        "tbl(con, 't') |> compute(name = 'u', temporary = FALSE)", "sqldf('delete from t', dbname = 'a.db')", "not R (", "e$f <- system",
    ]),
)  # fmt: skip
def test_r_code_that_may_do_anything_is_unknown(code: str) -> None:
    assert analyze("r", code, WORKSPACE).unknown


def test_nothing_of_r_code_is_evaluated(tmp_path: object) -> None:
    code = (
        f"`{tmp_path}/made` <- 1; file.create('{tmp_path}/made'); delayedAssign('x', file.create('{tmp_path}/made')); x"
    )
    analyze("r", code, WORKSPACE)
    assert list(tmp_path.iterdir()) == []  # type: ignore[attr-defined]


def test_a_call_has_the_effects_of_a_function_of_an_earlier_block() -> None:
    first = analyze("r", "clean <- function() unlink('x')\ncount <- function(a) length(a)", WORKSPACE)
    later = analyze("r", "count(1)\nclean()", WORKSPACE, known=first.defines)
    assert [(effect.kind, effect.what, effect.line) for effect in later.all] == [("delete", "x", 2)]


def test_values_that_stand_for_each_other_end() -> None:
    code = f"x <- c({', '.join(['x'] * 50)})\nunlink(x)"
    (effect,) = analyze("r", code, WORKSPACE).of("delete")
    assert not effect.known


def test_r_code_is_unknown_without_r(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert analyze("r", "x <- 'without R'", WORKSPACE).unknown
