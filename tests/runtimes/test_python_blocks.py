"""What Python blocks can contain, and what is kept between blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from python_runtimes import PythonRuntime, fresh, session

__all__ = ["fresh", "session"]


def test_variables_stay(session: PythonRuntime) -> None:
    session.do("kept = [1, 2]")
    assert session.do("kept.append(3)\nprint(kept)").stdout == "[1, 2, 3]\n"


def test_functions_with_blank_lines_docstrings_and_comments(session: PythonRuntime) -> None:
    session.do(
        '''
def greet(name):
    """Say hello."""

    # a comment

    text = "hello " + name

    return text


class Dog:
    """A dog."""

    def bark(self):

        return "woof"
'''
    )
    ran = session.do("print(greet('you'), greet.__doc__, Dog.__doc__, Dog().bark())")
    assert ran.stdout == "hello you Say hello. A dog. woof\n"


def test_the_source_of_functions_is_found(session: PythonRuntime) -> None:
    session.do("def f(x):\n    # why\n    return x")
    ran = session.do("import inspect\nprint(inspect.getsource(f))")
    assert "# why" in ran.stdout


def test_main_is_the_users_module(session: PythonRuntime) -> None:
    code = """
import dataclasses, pickle, sys
@dataclasses.dataclass
class Point:
    x: int = 1
assert __name__ == "__main__"
assert sys.modules["__main__"].Point is Point
print(pickle.loads(pickle.dumps(Point(5))))
"""
    assert session.do(code).stdout == "Point(x=5)\n"


def test_the_last_expression_is_shown(session: PythonRuntime) -> None:
    assert session.do("x = 20\nx + 1").stdout == "21\n"
    assert session.do("x + 2;").stdout == ""
    assert session.do("None").stdout == ""
    assert session.do("'a\\nb'").stdout == "'a\\nb'\n"


def test_underscore_is_the_last_result(session: PythonRuntime) -> None:
    session.do("6 * 7")
    assert session.do("print(_)").stdout == "42\n"


def test_future_imports_persist(session: PythonRuntime) -> None:
    session.do("from __future__ import annotations")
    ran = session.do("def f(x: NoSuchName): pass\nprint(f.__annotations__)")
    assert ran.stdout == "{'x': 'NoSuchName'}\n"


def test_top_level_await(session: PythonRuntime) -> None:
    code = """
import asyncio
async def twice(x):
    await asyncio.sleep(0)
    return 2 * x
y = await twice(4)
print(y)
await twice(y)
"""
    assert session.do(code).stdout == "8\n16\n"
    assert session.do("async with asyncio.Lock() as lock:\n    print('locked')").stdout == "locked\n"


def test_tasks_continue_in_later_blocks(session: PythonRuntime) -> None:
    code = """
import asyncio
event = asyncio.Event()
async def waiter():
    await event.wait()
    return "woken"
task = asyncio.create_task(waiter())
await asyncio.sleep(0)
"""
    session.do(code)
    assert session.do("event.set()\nprint(await task)").stdout == "woken\n"


def test_asyncio_run_works_in_a_block(session: PythonRuntime) -> None:
    code = "import asyncio\nasync def f(): return 'ran'\nprint(asyncio.run(f()))"
    assert session.do(code).stdout == "ran\n"
    assert session.do("await asyncio.sleep(0, 'and again')").stdout == "'and again'\n"


def test_shell_commands_run(session: PythonRuntime) -> None:
    assert session.do("!echo one; echo two").stdout == "one\ntwo\n"
    assert session.do("found = !printf 'a\\nb'\nprint(list(found))").stdout == "['a', 'b']\n"
    assert session.do("word = 'hey'\n!echo {word} $word {word.upper()}").stdout == "hey hey HEY\n"
    assert session.do("!exit 3\nprint(_exit_code)").stdout == "3\n"
    assert session.do("if True:\n    !echo inside").stdout == "inside\n"


def test_text_that_looks_like_a_command_is_unchanged(session: PythonRuntime) -> None:
    code = '''
text = """
!not a command
%nor this
"""
rest = (7
  % 4)
print(text, rest)
'''
    assert session.do(code).stdout == "\n!not a command\n%nor this\n 3\n"


def test_magics(session: PythonRuntime, tmp_path: Path) -> None:
    assert session.do(f"%cd {tmp_path}").ended == "done"
    assert session.do("%pwd").stdout == f"'{tmp_path}'\n"
    assert "ime" in session.do("%time sum(range(10))").stdout
    assert "loop" in session.do("%timeit -n 10 -r 1 1" if session.engine == "ipython" else "%timeit 1").stdout
    assert session.do("%env COLOUR=red").ended == "done"
    assert session.do("import os\nos.environ['COLOUR']").stdout == "'red'\n"
    assert session.do("%matplotlib inline\n%config InlineBackend.figure_format = 'retina'").ended == "done"
    assert session.do("%%bash\necho from bash").stdout == "from bash\n"
    ran = session.do("%%time\nfor i in range(2):\n    print(i)")
    assert ran.stdout.startswith("0\n1\n")
    assert "ime" in ran.stdout


def test_unknown_magics_are_an_error(session: PythonRuntime) -> None:
    ran = session.do("%nosuchmagic 3")
    assert "%nosuchmagic" in ran.stderr
    assert ran.ended == "error"


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("exit()", 0), ("quit()", 0), ("import sys; sys.exit(3)", 3), ("raise SystemExit('because')", 1)],
)
def test_exit_ends_the_block_and_not_the_session(session: PythonRuntime, code: str, exit_code: int) -> None:
    session.do("kept = 'still here'")
    ran = session.do(f"{code}\nprint('not reached')")
    assert ran.exit_code == exit_code
    assert ran.ended == ("error" if exit_code else "done")
    assert "not reached" not in ran.text
    assert "Traceback" not in ran.text
    assert ("because" in ran.stderr) == ("because" in code)
    assert session.do("print(kept)").stdout == "still here\n"


def test_an_error_ends_the_block(session: PythonRuntime) -> None:
    ran = session.do("print('before')\ndef f():\n    1 / 0\nf()\nprint('after')")
    assert ran.stdout == "before\n"
    assert (ran.ended, ran.exit_code) == ("error", 1)
    assert "ZeroDivisionError: division by zero" in ran.stderr
    assert "Traceback" in ran.stderr
    assert "1 / 0" in ran.stderr
    assert "f()" in ran.stderr


@pytest.mark.parametrize(
    "code",
    [
        "1 / 0",
        "input('?')",
        "raise KeyboardInterrupt",
        "import asyncio\nawait asyncio.wait_for(asyncio.sleep(9), 0.01)",
        "%time 1 / 0",
        "display(1, nonsense)",
        "def f():\n    raise ValueError(1) from KeyError(2)\nf()",
    ],
)
def test_tracebacks_hide_our_own_frames(session: PythonRuntime, code: str) -> None:
    stderr = session.do(code).stderr
    assert stderr
    assert "_interpreter_driver" not in stderr
    assert "runtimes/python" not in stderr
    assert "supervisor" not in stderr
    assert "IPython/" not in stderr


def test_a_syntax_error_is_shown_as_written(session: PythonRuntime) -> None:
    ran = session.do("x = (1,\ny = 2")
    assert "SyntaxError" in ran.stderr
    assert "x = (1," in ran.stderr
    assert ran.ended == "error"
    assert "SyntaxError" in session.do("return 5").stderr


def test_any_exception_can_be_raised(session: PythonRuntime) -> None:
    assert "StopIteration" in session.do("next(iter([]))").stderr
    assert "GeneratorExit" in session.do("raise GeneratorExit").stderr
    assert "RecursionError" in session.do("def f(): f()\nf()").stderr
    ran = session.do("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd")
    assert "Odd" in ran.stderr
    assert ran.ended == "error"
    assert session.do("1").stdout == "1\n"


def test_exception_groups(session: PythonRuntime) -> None:
    ran = session.do("raise ExceptionGroup('both', [ValueError(1), KeyError(2)])")
    assert "ValueError" in ran.stderr
    assert "KeyError" in ran.stderr


def test_the_working_directory_is_shared_both_ways(session: PythonRuntime, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    session.context.cwd = str(tmp_path)
    assert session.do("import os\nprint(os.getcwd())").stdout == f"{tmp_path}\n"
    session.do("os.chdir('below')")
    assert session.context.cwd == str(tmp_path / "below")


def test_blocks_run_without_their_deleted_working_directory(session: PythonRuntime, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    session.context.cwd = str(gone)
    session.do("pass")
    gone.rmdir()
    assert session.do("print('still running')").stdout == "still running\n"
    session.context.cwd = str(gone)
    session.known_cwd = None
    ran = session.do("print('here')")
    assert ran.stdout == "here\n"
    assert str(gone) in ran.stderr
    session.context.cwd = str(tmp_path)


def test_exported_variables_arrive(session: PythonRuntime) -> None:
    session.context.exported["FROM_SHELL"] = "yes"
    assert session.do("import os\nprint(os.environ['FROM_SHELL'])").stdout == "yes\n"
    session.context.exported["FROM_SHELL"] = None
    assert session.do("print(os.environ.get('FROM_SHELL'))").stdout == "None\n"


def test_the_users_files_are_importable_and_cannot_break_the_driver(fresh: PythonRuntime, tmp_path: Path) -> None:
    names = ("json", "traceback", "linecache", "ast", "asyncio", "subprocess", "base64", "tokenize", "signal")
    for name in names:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the wrong file')")
    (tmp_path / "mine.py").write_text("value = 7")
    fresh.context.cwd = str(tmp_path)
    assert fresh.do("import mine\nmine.value").stdout == "7\n"
    assert fresh.do("!echo ran").stdout == "ran\n"
    ran = fresh.do("1 / 0")
    assert "ZeroDivisionError" in ran.stderr
    assert "the wrong file" not in ran.stderr
    assert fresh.do("async def f(): return 5\nawait f()").stdout == "5\n"


def test_our_own_files_are_not_importable(session: PythonRuntime) -> None:
    ran = session.do("import sys\nprint([p for p in sys.path if p.endswith(('runtimes', 'python/driver'))])")
    assert ran.stdout == "[]\n"


def test_the_process_has_one_thread_and_leaves_no_files(session: PythonRuntime, home: Path) -> None:
    code = "import os\nprint(len(os.listdir('/proc/self/task')))"
    assert session.do(code).stdout == "1\n"
    assert not (home / ".ipython").exists()


def test_empty_blocks(session: PythonRuntime) -> None:
    for code in ("", "\n\n", "# nothing", "   "):
        ran = session.do(code)
        assert (ran.text, ran.ended, ran.exit_code) == ("", "done", 0)


def test_signal_handlers_last_only_for_their_block(session: PythonRuntime) -> None:
    session.do("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert session.do("print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)").stdout == "False\n"
