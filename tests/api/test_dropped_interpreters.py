"""An interpreter that the program no longer uses goes away with its processes, files and threads."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from interpreter import OpenInterpreter
from model_server import ModelServer, text, tool_call
from waiting import until


def run_blocks(interpreter: OpenInterpreter) -> None:
    for language, code in (("python", "x = 1"), ("shell", "y=2"), ("javascript", "z = 3")):
        if language != "javascript" or shutil.which("node"):
            interpreter.computer.run(language, code)


def call_a_tool(interpreter: OpenInterpreter) -> None:
    interpreter.computer.run("python", "computer.files.search('nothing', '.')")


def fail(interpreter: OpenInterpreter) -> None:
    interpreter.computer.run("python", "1 / 0")
    interpreter.computer.run("python", "import os; os._exit(3)")


def leave_a_stream(interpreter: OpenInterpreter) -> None:
    next(iter(interpreter.computer.run("python", "print(1); input()", stream=True)))


def undo(interpreter: OpenInterpreter) -> None:
    interpreter.computer.run("python", "x = 1")
    interpreter.undo()


def fork(interpreter: OpenInterpreter) -> None:
    interpreter.computer.run("python", "x = 1")
    interpreter.fork().computer.run("python", "x = 2")


def chat(interpreter: OpenInterpreter) -> None:
    with ModelServer(replies=[tool_call("python", "x = 1"), text("Done.")]) as server:
        interpreter.llm.api_base, interpreter.llm.api_key, interpreter.auto_run = server.base_url, "key", True
        interpreter.chat("Hi", display=False)


def use_a_sandbox(interpreter: OpenInterpreter) -> None:
    interpreter.sandbox = "workspace"
    interpreter.computer.run("python", "x = 1")


@pytest.fixture
def children() -> Callable[[], set[int]]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    return lambda: {child.pid for child in psutil.Process().children(recursive=True)} - before


@pytest.mark.parametrize(
    "use",
    [
        run_blocks,
        call_a_tool,
        fail,
        leave_a_stream,
        undo,
        fork,
        chat,
        pytest.param(use_a_sandbox, marks=pytest.mark.needs("bwrap")),
    ],
)
def test_a_dropped_interpreter_ends_its_processes(
    use: Callable[[OpenInterpreter], None], children: Callable[[], set[int]], tmp_path: Path
) -> None:
    interpreter: OpenInterpreter | None = OpenInterpreter(workspace=str(tmp_path))
    use(interpreter)
    dropped = weakref.ref(interpreter)
    assert children()
    del interpreter

    def is_gone() -> bool:
        gc.collect()
        return dropped() is None and not children()

    until(is_gone, "the end of the interpreter and its processes")


# In a new process, where no helper thread runs that an earlier test has started.
DROP_A_LANGUAGE = """
import psutil
from interpreter.runtimes.python import Python

language = Python()
list(language.run("x = 1"))
processes = psutil.Process().children(recursive=True)
del language
print(len(processes) > 0, len(psutil.wait_procs(processes, timeout=20)[1]))
"""


def test_a_dropped_language_ends_its_processes_in_a_program_that_never_used_an_interpreter() -> None:
    done = subprocess.run([sys.executable, "-c", DROP_A_LANGUAGE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_a_forked_process_does_not_end_the_runtimes_of_its_parent(tmp_path: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    interpreter.computer.run("python", "x = 1")
    pid = os.fork()
    if pid == 0:
        try:
            interpreter.computer.runtimes.runtime("python").__del__()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert "1" in str(interpreter.computer.run("python", "print(x)"))
    interpreter.computer.terminate()
