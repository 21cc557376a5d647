"""Each leaf can be deleted: the rest imports, explains itself and answers, and what needs it says how to get it.

`make test-full` also runs the other suites without it. There, a test that needs the leaf may fail only with the
message that says so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interpreter.leaves import ROWS, Leaf
from interpreter.runtimes.built_in import ROWS as LANGUAGES
from model_server import ModelServer, text, tool_call

ROOT = Path(__file__).parent.parent.parent
LEAF = re.compile(r"interpreter\.languages\.(\w+)")
LANGUAGE_PACKAGES = sorted(
    {
        f"interpreter.languages.{LEAF.match(row.implementation)[1]}"
        for row in LANGUAGES
        if LEAF.match(row.implementation)
    }
)
PROGRAM = """
import contextlib, io, json, sys, yaml
import docs_site
import interpreter
from interpreter import OpenInterpreter, leaves
from interpreter.frontends import cli
from interpreter.frontends.terminal import magics
from interpreter.frontends.terminal.terminal import Terminal

def printed(run):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run()
    return out.getvalue()

def error_of(reference):
    try:
        leaves.load(reference)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

report = {"file": interpreter.__file__, "help": printed(lambda: cli.main(["--help"]))}
asked = OpenInterpreter(auto_run=True)
asked.llm.model, asked.llm.api_base, asked.llm.api_key = "gpt-4o", sys.argv[1], "key"
report["magics"] = printed(lambda: magics.run(Terminal(plain=True), asked, "%help"))
report["languages"] = [each.name for each in asked.computer.languages]
report["computer"] = asked.computer.run("python", "print(computer.help())")[0]["content"]
report["answer"] = asked.chat("go", display=False)
with open(sys.argv[3]) as file:
    report["pages"] = str(docs_site.navigation(yaml.load(file, yaml.BaseLoader)["nav"]))
report["errors"] = [error_of(reference) for reference in json.loads(sys.argv[2])]
print(json.dumps(report, default=str))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, with the bytecode."""
    folder = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src" / "interpreter", folder / "interpreter", copy_function=shutil.copy2)
    return folder


@contextmanager
def without(source: Path, package: str) -> Iterator[None]:
    path = source.joinpath(*package.split("."))
    path = path if path.is_dir() else path.with_suffix(".py")
    hidden = source / "deleted"
    path.rename(hidden)
    try:
        yield
    finally:
        hidden.rename(path)


def report_without(source: Path, package: str, references: list[str]) -> dict[str, object]:
    with without(source, package):
        with ModelServer([tool_call("python", "print(6 * 7)"), text("42, as you see.")]) as server:
            navigation = str(ROOT / "mkdocs.yml")
            command = [sys.executable, "-c", PROGRAM, server.base_url, json.dumps(references), navigation]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT / "scripts")])}
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stderr
        report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        assert str(report["file"]).startswith(str(source))
        return report


def references_of(leaf: Leaf) -> list[str]:
    rows = [row.run for row in (*leaf.subcommands, *leaf.flags, *leaf.magics)]
    parts = [part.make for part in (*leaf.prompt, *leaf.tools, *leaf.observers)]
    return [*rows, *parts, *leaf.public, *(reference for host in leaf.hosts for reference in host[1:])] or [
        f"interpreter.{leaf.package}:anything"
    ]


@pytest.mark.parametrize("leaf", ROWS, ids=lambda leaf: leaf.name)
def test_the_rest_works_without_a_leaf(source: Path, leaf: Leaf) -> None:
    report = report_without(source, f"interpreter.{leaf.package}", references_of(leaf))
    assert not any(f"  --{flag.name} " in str(report["help"]) for flag in leaf.flags)
    assert not any(f"%{magic.name} " in str(report["magics"]) for magic in leaf.magics)
    assert "42" in str(report["answer"])
    assert "undo.md" in str(report["pages"])
    assert not any(f"'{page}'" in str(report["pages"]) for page in leaf.docs)
    hint = f"MissingLeafError: {leaf.about} is not part of this installation. Install Open Interpreter again to get it."
    assert set(report["errors"]) == {hint}  # type: ignore[call-overload]


@pytest.mark.parametrize("package", LANGUAGE_PACKAGES)
def test_the_rest_works_without_a_language(source: Path, package: str) -> None:
    report = report_without(source, package, [])
    gone = {row.name for row in LANGUAGES if row.implementation.startswith((f"{package}:", f"{package}."))}
    assert gone
    assert set(report["languages"]) == {row.name for row in LANGUAGES} - gone  # type: ignore[call-overload]
    assert "42" in str(report["answer"])


@pytest.mark.full
@pytest.mark.parametrize("leaf", ROWS, ids=lambda leaf: leaf.name)
def test_the_other_suites_pass_without_a_leaf(source: Path, leaf: Leaf) -> None:
    with without(source, f"interpreter.{leaf.package}"):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-p",
            "no:cacheprovider",
            "tests",
            "--ignore=tests/project",
        ]
        env = {**os.environ, "PYTHONPATH": str(source), "WITHOUT_LEAF": leaf.name}
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=3600)
    assert done.returncode == 0, done.stdout[-5000:]
