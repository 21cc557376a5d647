"""A worker that dies is reported and replaced."""

from __future__ import annotations

import pytest

from python_sessions import PythonSession, fresh, session

__all__ = ["fresh", "session"]


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("import os; os._exit(3)", 3),
        ("import os; os._exit(0)", 0),
        ("import ctypes; ctypes.string_at(0)", -11),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.abort()", -6),
        ("!kill -9 $PPID", -9),
    ],
)
def test_a_death_is_reported_and_the_next_block_runs(session: PythonSession, code: str, exit_code: int) -> None:
    session.do("lost = 1")
    ran = session.do(f"print('last words')\n{code}")
    assert ran.stdout == "last words\n"
    assert (ran.ended, ran.exit_code) == ("died", exit_code)
    assert "lost" in ran.stderr
    ran = session.do("print('lost' in globals())")
    assert ran.text == "False\n"


def test_out_of_memory_is_an_error_where_there_is_a_limit(fresh: PythonSession) -> None:
    code = """
import resource
kept = 8
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
block = bytearray(1 << 31)
"""
    ran = fresh.do(code)
    assert "MemoryError" in ran.stderr
    assert fresh.do("print(kept)").text == "8\n"


def test_a_death_while_children_write(session: PythonSession) -> None:
    ran = session.do("import os\nos.system('echo child')\nos.kill(os.getpid(), 9)")
    assert ran.stdout == "child\n"
    assert ran.ended == "died"


def test_the_descriptors_of_the_host_are_not_lost(session: PythonSession) -> None:
    assert session.do("import os\nos.close(1); os.close(2)").ended == "done"
    assert session.do("print('back')").stdout == "back\n"
    session.do("import os\nnull = os.open('/dev/null', os.O_WRONLY)\nos.dup2(null, 1)\nprint('nowhere')")
    assert session.do("print('back')").stdout == "back\n"
    assert session.do("os.closerange(3, 256)").ended == "died"
    assert session.do("print('back')").stdout == "back\n"
