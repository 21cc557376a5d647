"""The variables of a live session, and looking at one value."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from interpreter.computer_api import Computer
from interpreter.errors import BusyError, LanguageNotFound, UsageError
from interpreter.languages.in_process import InProcessPython
from interpreter.runtimes.state import (
    RichValue,
    TableWindow,
    Text,
    Variable,
)
from javascript_runtimes import JavaScriptRuntime
from javascript_runtimes import fresh as javascript  # noqa: F401
from python_runtimes import PythonRuntime, chunk_of, fresh, session  # noqa: F401
from shell_runtimes import ShellRuntime
from shell_runtimes import fresh as shell  # noqa: F401

SETUP = """
import pandas as pd, numpy as np
df = pd.DataFrame({"a": range(1000), "name": ["row %d" % i for i in range(1000)]})
array = np.zeros((3, 4))
number, text, mapping = 5, "hello" * 50, {"k1": 1, "k2": [1, 2]}
huge = 10 ** 10_000
def add(one, other=2):
    return one + other
class Thing:
    "has no repr of its own"
rows = [{"a": 1, "b": "x"}, {"a": 2.5, "c": None}]
_private = 1
"""


def by_name(variables: list[Variable]) -> dict[str, Variable]:
    return {variable.name: variable for variable in variables}


@pytest.fixture(scope="module")
def filled(session: PythonRuntime) -> PythonRuntime:  # noqa: F811
    """A session with variables."""
    assert session.do(SETUP).ended == "done"
    return session


@pytest.mark.full
def test_columns_have_sensible_digits_and_dates_without_midnight(fresh: PythonRuntime) -> None:  # noqa: F811
    frame = "{'x': [0.5, 1234567.8912, None], 'tiny': [1e-9, 2.5, 3.0], 'whole': [1.0, 2.0, 30.0]}"
    days = "pd.to_datetime(['2024-01-02', '2024-02-03', None])"
    times = "pd.to_datetime(['2024-01-02 00:00', '2024-02-03 10:30', None])"
    fresh.do(f"import pandas as pd\nmixed = pd.DataFrame({frame}).assign(day={days}, time={times})")
    page = fresh.look("mixed")
    assert isinstance(page, TableWindow)
    assert page.cells == [
        ["0.50", "1234567.89", ""],
        ["1e-09", "2.5", "3"],
        ["1", "2", "30"],
        ["2024-01-02", "2024-02-03", ""],
        ["2024-01-02 00:00:00", "2024-02-03 10:30:00", ""],
    ]
    assert page.numeric == [True, True, True, False, False]


class TestPython:
    def test_each_variable_has_type_shape_size_and_preview(self, filled: PythonRuntime) -> None:
        found = by_name(filled.variables())
        assert list(found) == "df array number text mapping huge add Thing rows".split()
        assert found["df"] == Variable("df", "DataFrame", "a, name", "1000 × 2", found["df"].size)
        assert found["array"] == Variable("array", "ndarray", "float64 [0, 0, 0, 0, 0, 0, ...]", "3 × 4", 96)
        assert (found["number"].preview, found["mapping"].shape) == ("5", "2")
        assert (found["text"].shape, len(found["text"].preview) <= 100) == ("250", True)
        assert found["huge"].preview == "<33220 bits>"
        assert (found["add"].type, found["add"].preview) == ("function", "add(one, other=2)")
        assert found["Thing"].type == "class"

    def test_tables_are_read_window_by_window(self, filled: PythonRuntime) -> None:
        page = filled.look("df", (998, 1010), (1, 5))
        assert page == TableWindow(
            "DataFrame", 1000, 2, ["998", "999"], ["name"], [False], [["row 998", "row 999"]], 1000
        )
        assert isinstance(filled.look("array"), TableWindow)
        records = filled.look("rows")
        assert isinstance(records, TableWindow)
        assert (records.header, records.cells[0]) == (["a", "b", "c"], ["1", "2.5"])

    def test_other_values_are_text(self, filled: PythonRuntime) -> None:
        assert filled.look("mapping['k2'][1]") == Text("int", "2")
        assert filled.look("mapping") == Text("dict", "{'k1': 1, 'k2': [1, 2]}")
        source = filled.look("add")
        assert isinstance(source, Text) and "return one + other" in source.text

    @pytest.mark.parametrize(
        ("name", "why"), [("nothing", "not defined"), ("add(1)", "takes a name"), ("mapping['z']", "KeyError")]
    )
    def test_unknown_names_are_an_error(self, filled: PythonRuntime, name: str, why: str) -> None:
        with pytest.raises(UsageError, match=why):
            filled.look(name)

    def test_listing_variables_prints_nothing(self, filled: PythonRuntime) -> None:
        filled.do("class Loud:\n    def __repr__(self):\n        print('LOUD'); return 'loud'\nloud = Loud()")
        assert by_name(filled.variables())["loud"].preview == "loud"
        assert filled.do("print('after')").text == "after\n"


def test_figures_are_shown_as_images(fresh: PythonRuntime) -> None:  # noqa: F811
    fresh.do("import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\nline = axes.plot([1, 2])")
    value = fresh.look("figure")
    assert isinstance(value, RichValue)
    assert value.data["image/png"].startswith("iVBO")


def test_an_endless_repr_does_not_affect_other_variables(fresh: PythonRuntime) -> None:  # noqa: F811
    fresh.do(
        "import time\nclass Slow:\n    def __repr__(self):\n        while True: time.sleep(0.01)\nbefore, slow, after = 1, Slow(), 2"
    )
    found = by_name(fresh.variables())
    assert (found["before"].preview, found["slow"].preview) == ("1", "<repr() takes too long>")
    assert "after" in found
    assert fresh.do("before").text == "1\n"


def test_variables_cannot_be_listed_while_a_block_runs(fresh: PythonRuntime) -> None:  # noqa: F811
    answers: list[object] = []
    for chunk in map(chunk_of, fresh.run("x = 1\nprint('go', flush=True)\ninput()")):
        if chunk.get("content") == "go\n":
            with pytest.raises(BusyError):
                fresh.variables()
            answers.append(fresh.complete("x", 1).matches)
    assert answers == [()]
    assert by_name(fresh.variables())["x"].preview == "1"


def test_cutting_an_endless_repr_short_keeps_background_programs(fresh: PythonRuntime) -> None:  # noqa: F811
    fresh.do("import subprocess\nchild = subprocess.Popen(['sleep', '60'])")
    fresh.do("import time\nclass Slow:\n    def __repr__(self):\n        while True: time.sleep(0.01)\nslow = Slow()")
    fresh.variables()
    assert fresh.do("print(child.poll())\nchild.kill()").stdout == "None\n"


def test_shell_variables_that_blocks_set_are_listed(shell: ShellRuntime) -> None:  # noqa: F811
    assert shell.variables() == []
    shell.do("export PLACE='a b'\nitems=(1 2 'c d')\ncount=3\nlines=$'one\\ntwo'\nquoted='it'\\''s $5'")
    found = by_name(shell.variables())
    assert set(found) == {"PLACE", "items", "count", "lines", "quoted"}
    assert (found["PLACE"].preview, found["PLACE"].shape) == ("a b", "3")
    assert (found["items"].type, found["items"].shape) == ("array", "3")
    assert shell.look("lines") == Text("string", "one\ntwo")
    assert shell.look("$quoted") == Text("string", "it's $5")
    shell.do("exit 3")
    assert "count" in by_name(shell.variables())
    with pytest.raises(UsageError):
        shell.look("nothing")


@pytest.mark.needs("node")
def test_javascript_variables_that_blocks_declared_are_listed(javascript: JavaScriptRuntime) -> None:  # noqa: F811
    javascript.do(
        "let list = [1, 2, 3]; const thing = {a: 1, get b() { process.exit(7) }};"
        "class Shape {}; function f(x) { return x }; var map = new Map([[1, 2]]);"
        "const trap = new Proxy({}, {get() { process.exit(8) }, ownKeys() { process.exit(9) }});"
        "const rows = [{a: 1, b: 'x'}, {a: 2, b: 'y'}]; let unset;"
    )
    found = by_name(javascript.variables())
    assert set(found) == {"list", "thing", "Shape", "f", "map", "trap", "rows", "unset"}
    assert (found["list"].shape, found["list"].preview) == ("3", "[ 1, 2, 3 ]")
    assert (found["Shape"].type, found["f"].type, found["map"].type) == ("class", "function", "Map")
    assert "[Getter]" in found["thing"].preview
    assert javascript.look("thing.a") == Text("number", "1")
    table = javascript.look("rows", (1, 2))
    assert table == TableWindow("Array", 2, 2, ["1"], ["a", "b"], [True, False], [["2"], ["y"]], 2)
    with pytest.raises(UsageError):
        javascript.look("process.exit()")
    assert javascript.do("list.length").text == "3\n"


def test_variables_of_in_process_python_are_listed() -> None:
    language = InProcessPython(namespace={"mine": [1, 2], "__name__": "x"})
    assert [variable.name for variable in language.variables()] == ["mine"]
    assert language.look("mine[0]") == Text("int", "1")
    assert language.complete("mine", 4).matches == [("mine", "list")]
    inside: list[object] = []
    for chunk in language.run("print(1)\nmine.append(3)"):
        if chunk.get("content") == "1\n":
            inside.append(language.complete("mine", 4).matches)
            with pytest.raises(BusyError):
                language.variables()
    assert inside == [()]


@pytest.fixture
def computer() -> Iterator[Computer]:
    computer = Computer()
    yield computer
    computer.terminate()


def test_the_computer_lists_variables_of_all_languages(computer: Computer) -> None:
    assert computer.variables() == {}
    assert computer.variables("python") == {"Python": []}
    assert computer.complete("python", "x").matches == ()
    computer.run("python", "x = 1")
    computer.run("shell", "y=2")
    assert {name: [each.name for each in rows] for name, rows in computer.variables().items()} == {
        "Python": ["x"],
        "Shell": ["y"],
    }
    assert computer.look("py", "x") == Text("int", "1")
    with pytest.raises(LanguageNotFound):
        computer.variables("cobol")


def test_completions_for_several_threads_do_not_mix(computer: Computer) -> None:
    computer.run("python", "alpha, beta = 1, 2")
    wrong: list[object] = []

    def ask(word: str, whole: str) -> None:
        for _ in range(20):
            found = computer.complete("python", word).matches
            if [text for text, _ in found][:1] not in ([whole], []):
                wrong.append(found)

    threads = [threading.Thread(target=ask, args=pair) for pair in (("alp", "alpha"), ("bet", "beta"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
