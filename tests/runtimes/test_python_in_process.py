"""Python in the caller's process: it shares the caller's objects, and leaves its streams and folder alone."""

from __future__ import annotations

import asyncio
import builtins
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from interpreter.languages.in_process import InProcessPython
from interpreter.runtimes.launch import RuntimeContext
from python_runtimes import Ran, chunk_of


class Computer:
    def __init__(self) -> None:
        self.context = RuntimeContext()


class InProcess(InProcessPython):
    def __init__(self, **names: Any) -> None:
        super().__init__(Computer(), names)

    def do(self, code: str) -> Ran:
        return Ran([chunk_of(step) for step in self.run(code)])


@pytest.fixture
def python() -> InProcess:
    return InProcess()


def test_blocks_share_the_callers_objects() -> None:
    mine: list[int] = [1]
    python = InProcess(mine=mine)
    assert python.do("mine.append(2)\nmine").stdout == "[1, 2]\n"
    assert mine == [1, 2]
    python.do("def f(x):\n\n    return x * 2\nthere = f(4)")
    assert python.namespace["there"] == 8


def test_the_default_namespace_is_the_main_module() -> None:
    python = InProcessPython()
    list(python.run("left_by_a_block = 5"))
    assert sys.modules["__main__"].__dict__.pop("left_by_a_block") == 5


def test_chunks_are_the_same_as_in_a_runtime(python: InProcess) -> None:
    ran = python.do("import sys\nprint('a')\nprint('b', file=sys.stderr)\n'c'")
    assert [chunk["content"] for chunk in ran.chunks] == [1, 2, "a\n", 3, "b\n", 4, "'c'\n", None]
    assert (ran.stderr, ran.ended, ran.exit_code) == ("b\n", "done", 0)
    ran = python.do("1/0\nprint('not reached')")
    assert "ZeroDivisionError" in ran.stderr
    assert "runtimes/python" not in ran.stderr
    assert (ran.stdout, ran.ended, ran.exit_code) == ("", "error", 1)
    assert python.do("import sys; sys.exit(3)").exit_code == 3
    assert "SyntaxError" in python.do("x = (").stderr


def test_chunks_come_statement_by_statement(python: InProcess) -> None:
    running = python.run("print('first')\nsecond = True")
    seen = [next(running), next(running)]
    assert seen[1]["content"] == "first\n"
    assert "second" not in python.namespace
    running.close()
    assert "second" not in python.namespace


def test_commands_magics_and_await(python: InProcess) -> None:
    assert python.do("!echo hello").stdout == "hello\n"
    assert python.do("import asyncio\nawait asyncio.sleep(0, 5)").stdout == "5\n"
    assert "ime" in python.do("%time 1").stdout


def test_await_inside_a_running_loop_is_an_error(python: InProcess) -> None:
    async def host() -> Ran:
        return python.do("import asyncio\nprint('works')\nawait asyncio.sleep(0)")

    ran = asyncio.run(host())
    assert "already running" in ran.stderr
    assert asyncio.run(asyncio.sleep(0, "the caller's loops still work")) == "the caller's loops still work"


def test_rich_values(python: InProcess) -> None:
    ran = python.do("class Rich:\n    def _repr_html_(self): return '<b>'\ndisplay(Rich())\nprint('end')")
    assert ran.of_type("code")[0]["content"] == "<b>"


def test_figures_of_a_block_are_shown_and_the_callers_are_kept(python: InProcess) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    mine = plt.figure()
    mine.add_subplot()
    try:
        ran = python.do("import matplotlib.pyplot as plt\nplt.figure()\nplt.plot([1, 2]);")
        assert len(ran.of_type("image")) == 1
        assert plt.get_fignums() == [mine.number]  # type: ignore[attr-defined]
    finally:
        plt.close("all")


def test_only_the_calling_thread_is_captured(python: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    inside, printed = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(60)
        print("from elsewhere")
        printed.set()

    thread = threading.Thread(target=other)
    thread.start()
    python.namespace.update(inside=inside, printed=printed)
    ran = python.do("print('from the block')\ninside.set()\nprinted.wait(60)\nprint('still')")
    thread.join()
    assert ran.stdout == "from the block\nstill\n"
    assert capsys.readouterr().out == "from elsewhere\n"


def test_the_caller_keeps_its_streams_between_statements(python: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr, sys.stdin, builtins.input
    for _ in python.run("print(1)\nprint(2)"):
        assert (sys.stdout, sys.stderr, sys.stdin, builtins.input) == before
        print("caller")
    assert set(capsys.readouterr().out.split()) == {"caller"}


def test_output_of_parallel_threads_is_separate() -> None:
    ran: dict[int, Ran] = {}
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        python = InProcess(barrier=barrier, number=number)
        ran[number] = python.do("for i in range(50):\n    print(number)\nbarrier.wait(60);\nprint(number)")

    before = sys.stdout
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert set(ran[number].stdout.split()) == {str(number)}
    assert sys.stdout is before


def test_the_callers_working_directory_is_unchanged(python: InProcess, tmp_path: Path) -> None:
    home = os.getcwd()
    (tmp_path / "below").mkdir()
    for _ in python.run(f"import os\nos.chdir({str(tmp_path)!r})\nopen('made', 'w').close()\nos.chdir('below')"):
        assert os.getcwd() == home
    assert (tmp_path / "made").exists()
    assert python.context.cwd == str(tmp_path / "below")
    assert python.do("print(os.getcwd())").stdout == f"{tmp_path / 'below'}\n"
    assert os.getcwd() == home


def test_blocks_follow_the_callers_working_directory(python: InProcess, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert python.do("import os\nprint(os.getcwd())").stdout == f"{tmp_path}\n"


def test_input_is_answered(python: InProcess) -> None:
    assert "EOFError" in python.do("input('?')").stderr
    python.context.on_input = lambda prompt, password: prompt + " answer"
    ran = python.do("print(input('question'))")
    assert ran.stdout == "question answer\n"
    assert ran.of_type("input_request")[0]["content"] == "question"


def test_stop_from_another_thread(python: InProcess) -> None:
    python.namespace["stop"] = python.stop
    code = "import threading, time\nthreading.Timer(0.05, stop).start()\n{}\nprint('not reached')"
    for loop in ("while True: pass", "time.sleep(1000)"):
        ran = python.do(code.format(loop))
        assert ran.ended == "interrupted"
        assert "not reached" not in ran.stdout
    assert python.do("print('next')").stdout == "next\n"


def test_stop_ends_a_block_in_another_thread(python: InProcess) -> None:
    started = threading.Event()
    python.namespace["started"] = started
    ran: list[Ran] = []
    thread = threading.Thread(target=lambda: ran.append(python.do("started.set()\nwhile True: pass")))
    thread.start()
    assert started.wait(60)
    python.stop()
    thread.join(60)
    assert ran[0].ended == "interrupted"


def test_stop_between_statements(python: InProcess) -> None:
    ran = Ran()
    for chunk in python.run("print(1)\nprint(2)"):
        ran.chunks.append(dict(chunk))
        if chunk.get("content") == "1\n":
            python.stop()
    assert ran.stdout == "1\n"
    assert ran.ended == "interrupted"


def test_ctrl_c_is_passed_on_to_the_caller(python: InProcess) -> None:
    running = python.run("import signal\nsignal.raise_signal(signal.SIGINT)\nprint('not reached')")
    ran = Ran()
    with pytest.raises(KeyboardInterrupt):
        ran.chunks.extend(map(dict, running))
    assert ran.ended == "interrupted"
    assert ran.stdout == ""


def test_ipython_is_not_imported() -> None:
    code = "import sys\nfrom interpreter.languages.in_process import InProcessPython\n"
    code += "list(InProcessPython(namespace={}).run('print(1)'))\nprint('IPython' in sys.modules)"
    import subprocess

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
