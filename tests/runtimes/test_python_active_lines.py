"""The active line is reported, without changing or tracing the code."""

from __future__ import annotations

from python_runtimes import PythonRuntime, session

__all__ = ["session"]

CODE = """

x = 1

@staticmethod
def f():
    return 2

for i in range(3):
    y = i
z = [
    1,
]
x
"""


def test_each_statement_is_reported(session: PythonRuntime) -> None:
    ran = session.do(CODE)
    assert ran.ended == "done", ran.stderr
    assert [line for line in ran.lines if line in (3, 5, 9, 11, 14)] == [3, 5, 9, 11, 14]


def test_the_line_comes_before_its_output(session: PythonRuntime) -> None:
    ran = session.do("print('a')\nprint('b')\n1/0")
    contents = [chunk["content"] for chunk in ran.chunks if chunk.get("stream") != "stderr"]
    assert contents == [1, "a\n", 2, "b\n", 3, None]


def test_lines_of_blocks_with_await_are_reported(session: PythonRuntime) -> None:
    ran = session.do("import asyncio\nawait asyncio.sleep(0)\nx = 1\nasync def f():\n    pass\nawait f()")
    assert ran.lines == [1, 2, 3, 4, 6]


def test_lines_of_commands(session: PythonRuntime) -> None:
    assert session.do("x = 1\n!true\n%pwd").lines == [1, 2, 3]


def test_loops_report_few_lines(session: PythonRuntime) -> None:
    ran = session.do("for i in range(100_000):\n    x = i\n    y = i\nprint('end')")
    assert len(ran.lines) < 500
    assert ran.lines[0] == 1
    assert ran.lines[-1] == 4


def test_active_lines_can_be_turned_off(session: PythonRuntime) -> None:
    session.context.active_lines = False
    try:
        assert session.do("x = 1\ny = 2").lines == []
    finally:
        session.context.active_lines = True


def test_the_code_is_not_traced(session: PythonRuntime) -> None:
    assert session.do("import sys\nprint(sys.gettrace(), sys.getprofile())").stdout == "None None\n"
