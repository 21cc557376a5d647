"""A worker that dies is reported and replaced."""

from __future__ import annotations

import pytest

from python_runtimes import PythonRuntime, fresh, session

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
def test_a_crash_loses_only_the_block(session: PythonRuntime, code: str, exit_code: int) -> None:
    session.do("kept = [1]")
    ran = session.do(f"print('last words')\nkept.append(2)\n{code}")
    assert ran.stdout == "last words\n"
    assert (ran.ended, ran.exit_code) == ("died", exit_code)
    assert ran.stderr.count("\n") == 1
    assert "Only this block is lost" in ran.stderr
    assert session.do("print(kept)").text == "[1]\n"


def test_a_crash_in_the_first_block_loses_only_that_block(fresh: PythonRuntime) -> None:
    assert "Only this block is lost" in fresh.do("kept = 1\nimport os; os._exit(1)").stderr
    assert fresh.do("print('kept' in globals())").text == "False\n"


def test_repeated_crashes_lose_only_their_blocks(fresh: PythonRuntime) -> None:
    fresh.do("kept = 0")
    for number in range(4):
        assert fresh.do("kept = -1\nimport os; os.kill(os.getpid(), 9)").ended == "died"
        assert fresh.do("print(kept); kept += 1").text == f"{number}\n"


def test_code_stuck_in_c_loses_only_the_block(fresh: PythonRuntime) -> None:
    fresh.do("kept = 1\nimport ctypes, signal")
    fresh.context.timeout = 1
    stuck = "signal.pthread_sigmask(signal.SIG_BLOCK, [2])\nkept = 2\nctypes.CDLL(None).sleep(1000)"
    assert fresh.do(stuck).ended == "timed_out"
    fresh.context.timeout = None
    assert fresh.do("print(kept)").text == "1\n"


def test_running_out_of_memory_loses_only_the_block(fresh: PythonRuntime) -> None:
    """The kernel's out-of-memory killer would send SIGKILL; with our own limit it is a crash in C."""
    fresh.do("kept = 1")
    code = (
        "import ctypes, resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))\n"
        "libc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
        "ctypes.memset(libc.malloc(ctypes.c_size_t(1 << 31)), 1, 1)"
    )
    assert fresh.do(code).ended == "died"
    assert fresh.do("print(kept); big = bytearray(1 << 30)").text == "1\n"


def test_exceeding_a_memory_limit_raises_memory_error(fresh: PythonRuntime) -> None:
    code = """
import resource
kept = 8
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
block = bytearray(1 << 31)
"""
    ran = fresh.do(code)
    assert "MemoryError" in ran.stderr
    assert fresh.do("print(kept)").text == "8\n"


def test_output_of_child_processes_survives_a_crash(session: PythonRuntime) -> None:
    ran = session.do("import os\nos.system('echo child')\nos.kill(os.getpid(), 9)")
    assert ran.stdout == "child\n"
    assert ran.ended == "died"


def test_closed_file_descriptors_do_not_break_later_blocks(session: PythonRuntime) -> None:
    assert session.do("import os\nos.close(1); os.close(2)").ended == "done"
    assert session.do("print('back')").stdout == "back\n"
    session.do("import os\nnull = os.open('/dev/null', os.O_WRONLY)\nos.dup2(null, 1)\nprint('nowhere')")
    assert session.do("print('back')").stdout == "back\n"
    assert session.do("os.closerange(3, 256)").ended == "died"
    assert session.do("print('back')").stdout == "back\n"
