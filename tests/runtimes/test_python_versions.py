"""The driver runs on every Python from 3.8 on, with and without IPython."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.runtimes.state import Text
from python_runtimes import PythonRuntime

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
LOCATIONS = ("~/.pyenv/versions/{}.*/bin/python", "/usr/bin/python{}", "/usr/local/bin/python{}")


def find_python(version: str) -> str | None:
    if sys.version.startswith(version + "."):
        return sys.executable
    for location in LOCATIONS:
        found = glob.glob(os.path.expanduser(location.format(version)))
        if found:
            return found[0]
    return None


PYTHONS = {version: find_python(version) for version in VERSIONS}


@pytest.fixture(scope="module", params=VERSIONS)
def session(request: pytest.FixtureRequest) -> Iterator[PythonRuntime]:
    python = PYTHONS[request.param]
    if python is None:
        pytest.skip(f"there is no Python {request.param} on this machine")
    session = PythonRuntime(python=python)
    session.context.exported["PYTHONPATH"] = None
    version = session.do("import sys; print('%d.%d' % sys.version_info[:2])")
    assert version.stdout == f"{request.param}\n", version.stderr
    yield session
    session.terminate()


def test_state_results_and_errors(session: PythonRuntime) -> None:
    session.do('def f(x):\n\n    "doc"\n\n    return x * 2')
    assert session.do("print(f.__doc__)\nf(21)").stdout == "doc\n42\n"
    ran = session.do("def g():\n    1 / 0\ng()")
    assert "ZeroDivisionError" in ran.stderr
    assert "1 / 0" in ran.stderr
    assert "_interpreter_driver" not in ran.stderr
    assert "SyntaxError" in session.do("x = = 1").stderr
    assert session.do("import sys; sys.exit(4)").exit_code == 4
    assert session.do("import inspect\nprint(inspect.getsource(f))").ended == "done"


def test_await(session: PythonRuntime) -> None:
    assert session.do("import asyncio\nawait asyncio.sleep(0, 'awaited')").stdout == "'awaited'\n"
    assert session.do("asyncio.run(asyncio.sleep(0, 'ran'))").stdout == "'ran'\n"


def test_commands_and_magics(session: PythonRuntime) -> None:
    code = "name = 'you'\n!echo hello {name}\nlines = !printf 'a\\nb'\nprint(len(lines))\n%pwd"
    assert session.do(code).stdout == f"hello you\n2\n'{session.context.cwd}'\n"
    assert session.do("%time sum([1, 2])").ended == "done"
    ran = session.do("x = '''\n!echo no\n'''\nif True:\n    !echo it's \"fine\" \\\n       'here'\nprint(x)")
    assert "!echo no" in ran.stdout


def test_output_arrives_in_order(session: PythonRuntime) -> None:
    session.do("import os, sys")
    ran = session.do("print('a')\nos.system('echo b')\nprint('c', file=sys.stderr)\nprint('d 🎉 \\udc80')")
    assert ran.text.startswith("a\nb\nc\nd 🎉")
    assert ran.stderr == "c\n"
    assert len(session.do("for i in range(20000): print(i)").stdout.split()) == 20000


def test_rich_values_are_shown(session: PythonRuntime) -> None:
    code = "class H:\n    def _repr_html_(self): return '<b>'\ndisplay(H())\ndisplay(5)"
    ran = session.do(code)
    assert ran.of_type("code")[0]["content"] == "<b>"
    assert ran.stdout.endswith("5\n")


def test_input_is_answered(session: PythonRuntime) -> None:
    session.context.on_input = lambda prompt, password: prompt + "yes"
    assert session.do("import getpass\nprint(input('a '), getpass.getpass('b '))").stdout == "a yes b yes\n"
    session.context.on_input = None
    assert "EOFError" in session.do("input()").stderr


def test_interrupts_end_the_block(session: PythonRuntime) -> None:
    for code in ("while True: pass", "import asyncio; await asyncio.sleep(1000)", "!sleep 1000"):
        chunks = []
        running = session.run(f"kept = 3\nprint('ready')\n{code}")
        for chunk in running:
            chunks.append(chunk)
            if chunk.get("content") == "ready\n":
                threading.Thread(target=session.stop).start()
        assert chunk.get("ended") == "interrupted", chunks
        assert session.do("print(kept)").text == "3\n"


def test_forked_processes_work(session: PythonRuntime) -> None:
    code = """
import multiprocessing
def double(x):
    return 2 * x
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(double, [4]))
"""
    assert session.do(code).stdout == "[8]\n"
    code = "import os\npid = os.fork()\nif not pid: print('child')\nelse: os.waitpid(pid, 0); print('parent')"
    assert session.do(code).stdout == "child\nparent\n"


LINES = """x = 1

for i in range(2000):
    y = i
    z = y
@staticmethod
def f(): pass
await asyncio.sleep(0)
"""


def test_active_lines_are_reported(session: PythonRuntime) -> None:
    session.do("import asyncio, sys")
    ran = session.do(LINES)
    assert ran.ended == "done", ran.stderr
    assert [line for line in ran.lines if line in (1, 3, 6, 8)][:2] == [1, 3]
    assert ran.lines[-1] == 8
    assert len(ran.lines) < 500
    into_the_loop = 5 in ran.lines
    assert into_the_loop == (session.do("hasattr(sys, 'monitoring')").stdout == "True\n")


def test_a_crash_is_reported(session: PythonRuntime) -> None:
    assert session.do("import os\nos._exit(5)").exit_code == 5
    assert session.do("print('new')").text == "new\n"


class TestOtherEnvironments:
    @pytest.fixture
    def environment(self, tmp_path: Path) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
        return tmp_path / "venv"

    def test_an_environment_without_ipython_has_the_bare_engine(self, environment: Path) -> None:
        session = PythonRuntime(python=str(environment))
        session.context.exported["PYTHONPATH"] = None
        try:
            ran = session.do("import sys\nprint(sys.prefix)\nimport IPython")
            assert ran.stdout == f"{environment}\n"
            assert "ModuleNotFoundError" in ran.stderr
            assert session.runtime is not None
            assert session.runtime.ready is not None
            assert session.runtime.ready["engine"] == "bare"
            assert session.do("await __import__('asyncio').sleep(0, 6)").stdout == "6\n"
        finally:
            session.terminate()


def test_variables_and_completions_work(session: PythonRuntime) -> None:
    session.do("numbers = {'one': 1}\ndef double(x):\n    return 2 * x")
    found = {variable.name: variable for variable in session.variables()}
    assert (found["numbers"].type, found["numbers"].preview) == ("dict", "{'one': 1}")
    assert found["double"].preview == "double(x)"
    assert session.look("numbers['one']") == Text("int", "1")
    assert [text for text, _ in session.complete("numb", 4).matches] == ["numbers"]
    assert session.complete("numbers['", 9).matches == [("one", "key")]
