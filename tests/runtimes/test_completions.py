"""Completions in live sessions."""

from __future__ import annotations

import pytest

from interpreter.runtimes import live
from javascript_runtimes import JavaScriptRuntime
from javascript_runtimes import fresh as javascript  # noqa: F401
from python_runtimes import PythonRuntime, session  # noqa: F401
from sampling import some
from shell_runtimes import ShellRuntime, bash  # noqa: F401

SETUP = """
import pandas as pd, os
df = pd.DataFrame({"height": [1], "width": [2]})
mapping = {"small": 1, "large": 2}
touched = []
class Thing:
    def method(self): pass
    @property
    def risky(self):
        touched.append(1)
        return self
thing = Thing()
"""


@pytest.fixture(autouse=True)
def _no_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completions arrive even on a busy machine."""
    monkeypatch.setattr(live, "COMPLETE_TIMEOUT", 60.0)


@pytest.fixture(autouse=True, scope="module")
def _setup(session: PythonRuntime) -> None:  # noqa: F811
    assert session.do(SETUP).ended == "done"


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("mapp", ["mapping"]),
        ("x = mapp", ["mapping"]),
        ("impo", ["import"]),
        ("os.path.exi", ["exists"]),
        ("df.hea", ["head"]),
        ("df.hei", ["height"]),
        ("df.height.med", ["median"]),
        ("thing.me", ["method"]),
        ("thing.risky.", []),
        ("mapping['s", ["small"]),
        ('df["w', ["width"]),
        ("nothing.", []),
        ("'text", []),
        ("", None),
    ],
)
def test_python_completions(session: PythonRuntime, code: str, offered: list[str] | None) -> None:  # noqa: F811
    found = session.complete(code, len(code))
    texts = [text for text, _ in found.matches]
    if offered is None:
        assert {"df", "mapping", "thing"} <= set(texts)
    else:
        assert texts == offered
        assert not offered or code[found.start :] == offered[0][: len(code) - found.start]


def test_completing_reads_no_properties(session: PythonRuntime) -> None:  # noqa: F811
    session.complete("thing.risky.me", 14)
    session.complete("thing.", 6)
    assert session.do("touched").text == "[]\n"


def test_completions_work_in_the_middle_of_a_line(session: PythonRuntime) -> None:  # noqa: F811
    found = session.complete("print(mapp, 1)", 10)
    assert (found.start, list(found.matches)) == (6, [("mapping", "dict")])


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("code", "offered"),
    some(2, [("lis", "list"), ("list.pu", "push"), ("Math.ab", "abs"), ("thing.al", "alpha"), ("requ", "require")]),
)
def test_javascript_completions(javascript: JavaScriptRuntime, code: str, offered: str) -> None:  # noqa: F811
    javascript.do("const list = [1]; const thing = {alpha: 1}")
    assert offered in [text for text, _ in javascript.complete(code, len(code)).matches]


def test_shell_variables_are_completed(bash: ShellRuntime) -> None:  # noqa: F811
    bash.do("place=here; plenty=1")
    found = bash.complete("echo ${pl", 9)
    assert (found.start, [text for text, _ in found.matches]) == (7, ["place", "plenty"])
    assert bash.complete("echo pl", 7).matches == ()


def test_completing_does_not_start_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    python = PythonRuntime()
    assert python.complete("im", 2).matches == ()
    assert python.runtime is None
