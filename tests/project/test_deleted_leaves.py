"""Each leaf can be deleted: the rest imports, explains itself and answers, and what needs it says how to get it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
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
import contextlib, io, json, sys
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
report["errors"] = [error_of(reference) for reference in json.loads(sys.argv[2])]
print(json.dumps(report, default=str))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, with the bytecode."""
    folder = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src" / "interpreter", folder / "interpreter", copy_function=shutil.copy2)
    return folder


def report_without(source: Path, package: str, references: list[str]) -> dict[str, object]:
    path = source.joinpath(*package.split("."))
    path = path if path.is_dir() else path.with_suffix(".py")
    hidden = source / "deleted"
    path.rename(hidden)
    try:
        with ModelServer([tool_call("python", "print(6 * 7)"), text("42, as you see.")]) as server:
            command = [sys.executable, "-c", PROGRAM, server.base_url, json.dumps(references)]
            env = {**os.environ, "PYTHONPATH": str(source)}
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stderr
        report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        assert str(report["file"]).startswith(str(source))
        return report
    finally:
        hidden.rename(path)


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
    hint = f"MissingLeafError: {leaf.about} is not part of this installation. Install Open Interpreter again to get it."
    assert set(report["errors"]) == {hint}  # type: ignore[call-overload]


@pytest.mark.parametrize("package", LANGUAGE_PACKAGES)
def test_the_rest_works_without_a_language(source: Path, package: str) -> None:
    report = report_without(source, package, [])
    gone = {row.name for row in LANGUAGES if row.implementation.startswith((f"{package}:", f"{package}."))}
    assert gone
    assert set(report["languages"]) == {row.name for row in LANGUAGES} - gone  # type: ignore[call-overload]
    assert "42" in str(report["answer"])
