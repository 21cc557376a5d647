"""The conformance checks, on every language that runs here."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from interpreter.languages.conformance import CHECKS, Samples, conform
from interpreter.languages.custom import custom_language
from interpreter.languages.fish import Fish
from interpreter.languages.html import HTML, React
from interpreter.languages.in_process import InProcessPython
from interpreter.languages.java import Java
from interpreter.languages.javascript import JavaScript
from interpreter.languages.javascript.typescript import TypeScript
from interpreter.languages.r import R
from interpreter.languages.ruby import Ruby
from interpreter.languages.sql import SQL
from interpreter.messages import Chunk
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.python.language import Python
from interpreter.runtimes.shell.language import Shell
from runtimes import language_samples as samples
from runtimes.language_samples import JAVASCRIPT, PYTHON, SHELL

# In-process: a crash would end the tests, and the folder and the environment belong to the caller.
IN_PROCESS = replace(PYTHON, die=None, env=None, go=None, where=None)
LANGUAGES: dict[str, tuple[Any, Samples, list[str]]] = {
    "python": (Python, PYTHON, []),
    "bare python": (Python, PYTHON, []),
    "warm python": (Python, PYTHON, []),
    "in-process python": (partial(InProcessPython, namespace={"__name__": "block"}), IN_PROCESS, []),
    "bash": (Shell, SHELL, ["bash"]),
    "zsh": (Shell, SHELL, ["zsh"]),
    "javascript": (JavaScript, JAVASCRIPT, ["node"]),
    "sql": (SQL, samples.SQL, []),
    "one-shot program": (custom_language(samples.ONE_SHOT), samples.PROGRAM, []),
    "deno": (custom_language(samples.DENO), samples.ONE_SHOT_TYPESCRIPT, ["deno"]),
    "bun": (custom_language(samples.BUN), samples.ONE_SHOT_TYPESCRIPT, ["bun"]),
    "jupyter kernel": (custom_language(samples.KERNEL), samples.IPYKERNEL, []),
    "IRkernel": (custom_language(samples.IR), samples.IRKERNEL, []),
    "fish": (Fish, samples.FISH, ["fish"]),
    "typescript": (TypeScript, samples.TYPESCRIPT, ["node"]),
    "java": (Java, samples.JAVA, ["jshell"]),
    "r": (R, samples.R, ["Rscript"]),
    "ruby": (Ruby, samples.RUBY, ["ruby"]),
    "html": (HTML, samples.HTML, []),
    "react": (React, samples.REACT, ["npm"]),
}


# Other runtimes of a language: only `make test-full` runs all checks on them.
ALTERNATIVES = ("warm python", "in-process python", "zsh", "jupyter kernel", "java")
# npm has to install something first; it starts slowly; each block starts a browser; seldom installed (`npm install -g deno bun`).
ONLY_FULL = ("react", "IRkernel", "html", "deno", "bun")
CORE = ("output", "exit_codes", "state", "interrupt_while_busy")


def install_react() -> None:
    react = React()
    done = list(react.run("npm install react react-dom esbuild"))
    react.terminate()
    if done[-1]["ended"] != "done":
        pytest.skip("npm can't install React")


def failures(name: str, checks: Collection[str]) -> dict[str, str]:
    language, given, programs = LANGUAGES[name]
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if language is TypeScript and TypeScript().version() is None:
        pytest.skip("Node.js is older than 22.13, and npm has not installed esbuild")
    if language is HTML and HTML().browser() is None:
        pytest.skip("no browser is installed")
    if language is React:
        install_react()
    if name == "IRkernel" and language().version() is None:
        pytest.skip("IRkernel is not installed: apt-get install r-cran-irkernel")
    engine = {"INTERPRETER_PYTHON_ENGINE": "bare"} if name == "bare python" else {}
    shell = shutil.which(programs[0]) if language is Shell else None
    preload = ("matplotlib.pyplot", "pandas") if name == "warm python" else ()
    results = conform(language, given, checks, shell=shell, exported=engine, preload=preload)
    return {check: result for check, result in results.items() if result not in ("passed", "not claimed")}


@pytest.mark.parametrize("name", [name for name in LANGUAGES if name not in ONLY_FULL])
def test_a_language_conforms(name: str) -> None:
    assert failures(name, CORE if name in ALTERNATIVES else CHECKS) == {}


@pytest.mark.full
@pytest.mark.parametrize("name", [*ALTERNATIVES, *ONLY_FULL])
def test_an_alternative_or_slow_language_conforms(name: str) -> None:
    assert failures(name, CHECKS) == {}


# -- the checks find problems --------------------------------------------------------------------------------------


class Parrot(BaseLanguage):
    name = "Parrot"

    def run(self, code: str) -> Iterator[Chunk]:
        yield {"type": "console", "format": "output", "content": code + "\n"}
        yield {"type": "console", "format": "active_line", "content": None, "ended": "done", "exit_code": 0}


def test_the_checks_find_problems_of_an_added_language() -> None:
    results = conform(Parrot, Samples(say="Grüße, 世界 🌍", fail="no", keep="x", recall="42", figure="plot"))
    assert results["output"] == results["state"] == "passed"
    assert results["exit_codes"].startswith("It should end as an error, with exit code 1.")
    assert results["figures"].startswith("It should show one image.")
    assert results["death"] == "not claimed"
