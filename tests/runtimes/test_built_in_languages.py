"""The built-in languages: each has a row and a folder, and no other file has a list of languages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.runtimes import (
    BUILT_IN,
    BaseLanguage,
    built_in_languages,
    resolve,
)
from interpreter.runtimes.launch import RuntimeContext

PACKAGE = Path(__file__).parent.parent.parent / "src" / "interpreter"
# Files that may name several languages, and why.
EXEMPT = {
    "app/own_blocks.py": "the signs `>>>` and `!` belong to the prompt's own syntax",
    "frontends/flags.py": "the shells that completions can be printed for",
}


def test_python_shell_and_javascript_are_listed_first() -> None:
    assert [language.name for language in built_in_languages()][:3] == ["Python", "Shell", "JavaScript"]


def test_listing_and_describing_languages_imports_none_of_them() -> None:
    code = (
        "import sys; from interpreter import OpenInterpreter; computer = OpenInterpreter().computer;"
        "names = [each.name for each in computer.languages];"
        "computer.registry.describe('r').file_extension;"
        "print(len(names), [each for each in sys.modules if each.startswith(('interpreter.languages', 'interpreter.runtimes.python'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "13 []\n", done.stderr


@pytest.mark.parametrize("row", built_in_languages())
def test_each_row_leads_to_a_class_that_says_the_same(row: type[BaseLanguage]) -> None:
    implementation = row.variant(RuntimeContext())
    assert issubclass(implementation, row)
    for name in {*vars(BaseLanguage), *vars(row)} - {"restorable", "implementation"}:
        if not name.startswith("_") and not callable(value := getattr(row, name)) and not isinstance(value, property):
            assert getattr(implementation, name) == value, name
    keeps_nothing = not row.keeps_variables  # then there is nothing to restore
    assert implementation.restorable == row.restorable or keeps_nothing


@pytest.mark.parametrize("language", built_in_languages())
def test_references_in_a_language_class_resolve(language: type) -> None:
    given = [getattr(language, name) for name in ("analysis", "scan_parts", "cell_setup", "script")]
    references = [each for each in (*given, *language.scanners) if each is not None]
    assert all(resolve(reference) is not None for reference in references)


@pytest.mark.parametrize(
    ("name", "canonical", "extension"),
    [
        ("Python", "python", "py"),
        ("ipython", "python", "py"),
        (" ZSH ", "shell", "sh"),
        ("nodejs", "javascript", "js"),
        ("react", "react", "jsx"),
        ("Ruby", "ruby", "rb"),
        ("R", "r", "R"),
        ("Java", "java", "java"),
        ("Klingon", "klingon", None),
        ("", "", None),
    ],
)
def test_names_and_aliases_are_resolved(name: str, canonical: str, extension: str | None) -> None:
    assert BUILT_IN.canonical(name) == canonical
    assert BUILT_IN.describe(name).file_extension == extension


# -- no list of languages elsewhere ------------------------------------------------------------------------------


def languages_in(nodes: Iterator[ast.AST]) -> set[str]:
    """The languages named by string constants among these nodes."""
    names = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {found for name in names if (found := language_called(name)) is not None}


@cache
def language_called(name: str) -> str | None:
    found = BUILT_IN.find(name)
    return found.name if found is not None and found in built_in_languages() else None


def language_lists(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """The places where code has a collection of languages, or distinguishes several of them."""
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                yield node.lineno, languages_in(iter(parts))
            case ast.Dict(keys=keys, values=values):
                yield node.lineno, languages_in(key for key in keys if key is not None)
                yield node.lineno, languages_in(iter(values))
            case ast.FunctionDef() | ast.Lambda() | ast.Module():
                yield getattr(node, "lineno", 1), languages_in(_compared(node))


def _compared(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes that a function compares values with, by operators or by `match`."""
    for node in _own(function):
        if isinstance(node, ast.Compare):
            yield from (part for each in (node.left, *node.comparators) for part in ast.walk(each))
        elif isinstance(node, ast.MatchValue):
            yield node.value


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def problems(source: str) -> list[tuple[int, set[str]]]:
    return [(line, names) for line, names in language_lists(ast.parse(source)) if len(names) > 1]


def test_no_other_file_has_a_list_of_languages() -> None:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        if place.startswith(("runtimes/", "languages/")):
            continue
        if breaches := problems(file.read_text(encoding="utf-8")):
            found[place] = breaches
    assert set(found) == set(EXEMPT), {place: rows for place, rows in found.items() if place not in EXEMPT}


@pytest.mark.parametrize(
    "source",
    [
        "SUFFIXES = {'python': '.py', 'bash': '.sh'}",
        "SHOWN = ('js', 'py')",
        "def f(name):\n    if name == 'Python':\n        return 1\n    return name == 'Shell'",
        "def f(name):\n    match name:\n        case 'shell' | 'javascript':\n            return 1",
        "LEXERS = {'a': 'bash', 'b': 'python'}",
    ],
)
def test_lists_of_languages_are_detected(source: str) -> None:
    assert problems(source)


@pytest.mark.parametrize("source", ["SHELLS = ('bash', 'zsh')", "run('python'); run('shell')", "f = x == 'python'"])
def test_one_language_is_not_a_list(source: str) -> None:
    assert not problems(source)


@pytest.mark.parametrize("language", built_in_languages())
def test_languages_report_their_version_or_how_to_install_them(language: type[BaseLanguage]) -> None:
    runtime = OpenInterpreter().computer.runtimes.runtime(language.name)
    installed = runtime.installed()
    if installed is None:
        assert language.install, f"%languages can't say how to get {language.name}"
    else:
        assert re.search(r"\d+\.\d+", installed) or installed.startswith("SQLite"), installed
