"""Snapshots: the state of a Python session before any of its last blocks can be restored, and later states again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpreter import OpenInterpreter
from interpreter.computer_api import Computer
from interpreter.errors import BusyError, NotRestorableError
from interpreter.languages.in_process import InProcessPython
from python_runtimes import PythonRuntime, Ran, fresh, session
from waiting import until, until_ended, worker_of

__all__ = ["fresh", "session"]

# Code that creates a variable, and code that changes it in place.
VARIABLES = {
    "number": ("v = 3", "v = -1"),
    "text": ("v = 'früh'", "v += ' spät'"),
    "list": ("v = [1, [2, 3]]", "v[1].append(4)"),
    "dict": ("v = {'a': {1, 2}}", "v['a'].add(3); v['b'] = None"),
    "bytearray": ("v = bytearray(1000)", "v[:] = b'x' * 1000"),
    "array": ("import numpy; v = numpy.arange(100_000)", "v *= 2"),
    "frame": ("import pandas; v = pandas.DataFrame({'a': [1, 2]})", "v.loc[0, 'a'] = 9"),
    "object": (
        "class P:\n    n = 1\n    def __repr__(self): return f'P {self.n} {vars(self)}'\nv = P()",
        "v.x = 1; P.n = 2",
    ),
    "generator": ("g = iter(range(9)); next(g); v = 0", "v = next(g) + next(g)"),
    "closure": (
        "def counter():\n    n = 0\n    def count():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return count\nc = counter(); v = c()",
        "c(); c(); v = c.__closure__[0].cell_contents",
    ),
    "random": ("import random; random.seed(7); v = random.getstate()", "random.random(); v = random.getstate()"),
    "deleted": ("v = 1; w = 2", "del w; v = 'w' in globals()"),
    "module": ("import json; json.mine = 1; v = json.mine", "json.mine = v = 2"),
    "environment": ("import os; os.environ['V'] = v = '1'", "os.environ['V'] = v = '2'"),
    "folder": ("import os; os.chdir('/'); v = os.getcwd()", "os.chdir('/tmp'); v = os.getcwd()"),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_variables_can_be_undone_and_redone(session: PythonRuntime, name: str) -> None:
    make, change = VARIABLES[name]
    session.do(make)
    before, then = session.do("print(v)").text, session.present
    session.do(change)
    after, later = session.do("print(v)").text, session.present
    assert before != after
    session.restore(then)
    assert session.do("print(v)").text == before
    session.restore(later)
    assert session.do("print(v)").text == after
    session.restore(then)
    assert session.do(change).ended == "done"
    assert session.do("print(v)").text == after


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.one_of(st.integers(0, 99), st.sampled_from(["back", "crash"])), min_size=3, max_size=9))
def test_random_undo_and_crashes_restore_the_right_state(session: PythonRuntime, steps: list[int | str]) -> None:
    """Blocks, crashes and random restores: the variables are always those of the current state."""
    session.do("log = []")
    known = {session.present: "[]"}
    for count, step in enumerate(steps):
        if step == "back":
            point = sorted(known)[(count * 7) % len(known)]
            session.restore(point)
        elif step == "crash":
            assert session.do("log.append('gone'); import os; os._exit(1)").ended == "died"
        else:
            session.do(f"log.append({step})")
            known[session.present] = known_log(session)
        assert known_log(session) == known.get(session.present, known_log(session))
        known[session.present] = known_log(session)


def known_log(session: PythonRuntime) -> str:
    """The variable, read without running a block."""
    return str(next(variable.preview for variable in session.variables() if variable.name == "log"))


@pytest.mark.full
@pytest.mark.parametrize("engine", ["bare", pytest.param("ipython", marks=pytest.mark.full)])
def test_500_megabytes_changed_in_place_are_restored(engine: str) -> None:
    if psutil.virtual_memory().available < 3e9:
        pytest.skip("needs 3 GB of free memory")
    fresh = PythonRuntime(engine)
    fresh.do("import numpy, hashlib\na = numpy.random.default_rng(1).integers(0, 255, 500_000_000, dtype='uint8')")
    digest = fresh.do("print(hashlib.blake2b(a).hexdigest())").text
    state = fresh.present
    fresh.do("a += 1")
    assert fresh.do("print(hashlib.blake2b(a).hexdigest())").text != digest
    fresh.restore(state)
    assert fresh.do("print(hashlib.blake2b(a).hexdigest())").text == digest
    fresh.terminate()


def test_await_works_after_undo(session: PythonRuntime) -> None:
    session.do(
        "import asyncio\nasync def later(n):\n    await asyncio.sleep(0.01)\n    return n\nprint(await later(1))"
    )
    session.do("task = asyncio.get_event_loop_policy().get_event_loop().create_task(later(2))")
    state = session.present
    assert session.do("print(await task)").text == "2\n"
    session.restore(state)
    assert session.do("print(await task, await later(3))").text == "2 3\n"


def test_the_oldest_snapshots_are_dropped_first(fresh: PythonRuntime) -> None:
    fresh.context.snapshots = 3
    states = []
    for n in range(6):
        states.append(fresh.present)
        fresh.do(f"n = {n}")
    fresh.restore(states[3])
    assert fresh.do("print(n)").text == "2\n"
    with pytest.raises(NotRestorableError, match="no longer available"):
        fresh.restore(states[0])
    assert fresh.do("print(n)").text == "2\n"


def test_no_snapshots_are_kept_if_they_are_off(fresh: PythonRuntime) -> None:
    fresh.context.snapshots = 0
    fresh.do("n = 1")
    assert fresh.state is None
    assert fresh.points() == []
    with pytest.raises(NotRestorableError, match="undo_snapshots"):
        fresh.restore(1)
    assert "Its variables are lost" in fresh.do("import os; os._exit(1)").stderr
    assert fresh.do("print('n' in globals())").text == "False\n"


def test_lost_threads_sockets_and_processes_are_listed(no_strays: None, fresh: PythonRuntime) -> None:
    fresh.do(
        "import socket, subprocess, threading\n"
        "server = socket.create_server(('127.0.0.1', 0)); port = server.getsockname()[1]\n"
        "child = subprocess.Popen(['sleep', '1000'], stdin=subprocess.PIPE)\n"
        "over = threading.Event(); threading.Thread(target=over.wait, name='watcher', daemon=True).start()\n"
    )
    fresh.do("threading.Thread(target=over.wait, name='tqdm_monitor', daemon=True).start()")
    port = fresh.do("print(port)").text.strip()
    state = fresh.present
    fresh.do("n = 1")
    lost = str(fresh.restore(state))
    assert "the thread watcher" in lost and "tqdm_monitor" not in lost  # a library started that one
    assert f"the socket at 127.0.0.1:{port}" in lost
    assert "a pipe" in lost
    assert "sleep (" in lost
    assert fresh.do("print(over.is_set(), 'n' in globals())").text == "False False\n"
    assert "sleep (" in fresh.do("import os; os._exit(1)").stderr


def test_terminate_ends_all_snapshots(no_strays: None) -> None:
    python = PythonRuntime()
    for n in range(5):
        python.do(f"n = {n}")
    python.restore(python.points()[2])
    assert python.runtime is not None and python.runtime._process is not None
    supervisor = psutil.Process(python.runtime._process.pid)
    processes = supervisor.children(recursive=True)
    assert len(processes) >= 5
    python.terminate()
    until_ended(processes)


def test_snapshots_end_with_a_killed_supervisor(no_strays: None) -> None:
    python = PythonRuntime()
    for n in range(3):
        python.do(f"n = {n}")
    assert python.runtime is not None and python.runtime._process is not None
    supervisor = psutil.Process(python.runtime._process.pid)
    processes = supervisor.children(recursive=True)
    supervisor.kill()
    until_ended(processes)
    python.do("print(1)")  # it may be the first to notice
    assert python.do("print(2)").text == "2\n"
    python.terminate()


def test_a_running_block_ends_with_a_killed_supervisor(no_strays: None) -> None:
    python, ran, processes = PythonRuntime(), Ran(), list[psutil.Process]()
    for chunk in python.run(
        "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nprint('ready')\nwhile True: pass"
    ):
        ran.chunks.append(dict(chunk))
        if ran.stdout and not processes and python.runtime is not None and python.runtime._process is not None:
            supervisor = psutil.Process(python.runtime._process.pid)
            processes += supervisor.children(recursive=True)
            supervisor.kill()
    assert ran.ended == "died" and len(processes) >= 2
    until_ended(processes)
    assert python.do("print(2)").text == "2\n"
    python.terminate()


def test_the_kernel_kills_old_snapshots_first_when_memory_runs_out(fresh: PythonRuntime) -> None:
    scores = "print(open('/proc/{pid}/oom_score_adj').read())"
    fresh.do("n = 1")
    fresh.do("n = 2")
    worker = worker_of(fresh.runtime)
    older = min(worker.children(), key=lambda each: (each.create_time(), each.pid))
    assert fresh.do(scores.replace("{pid}", str(older.pid))).text == "1000\n\n"
    own = fresh.do(scores.replace("{pid}", "self")).text
    assert own != "1000\n\n"
    fresh.restore(fresh.points()[0])
    assert fresh.do(scores.replace("{pid}", "self")).text == own


def test_many_blocks_leave_only_a_few_processes(fresh: PythonRuntime) -> None:
    fresh.context.snapshots = 5
    for n in range(60):
        fresh.do(f"n = {n}")
        if n % 20 == 19:
            fresh.restore(fresh.points()[-2])
            assert fresh.runtime is not None and fresh.runtime._process is not None
            family = psutil.Process(fresh.runtime._process.pid)
            until(lambda: len(family.children(recursive=True)) <= 10, "old snapshots to end")  # noqa: B023


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_two_thousand_blocks_leak_nothing(fresh: PythonRuntime) -> None:
    """Memory, file descriptors and the number of processes stay constant."""
    sizes, counts = [], []
    for n in range(2000):
        fresh.do(f"n = {n}")
        if n % 50 == 17:
            fresh.restore(fresh.points()[-2])
        if n % 200 == 99:
            assert fresh.do("import os; os._exit(1)").ended == "died"
            assert fresh.do("print(n)").text == f"{n}\n"
        if n % 400 == 399:
            assert fresh.runtime is not None and fresh.runtime._process is not None
            family = psutil.Process(fresh.runtime._process.pid)
            worker = worker_of(fresh.runtime)
            sizes.append((family.memory_info().rss, worker.memory_info().rss))
            counts.append((len(family.children(recursive=True)), family.num_fds(), worker.num_fds()))
    print(sizes, counts)
    assert max(count for count, _, _ in counts) <= 35  # a few may be about to end
    assert max(fds for _, _, fds in counts) <= min(fds for _, _, fds in counts) + 3
    assert all(last < first * 1.3 for first, last in zip(sizes[0], sizes[-1], strict=True))


UNSHARE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.mark.needs("unshare")
def test_snapshots_work_in_a_pid_namespace(tmp_path: Path) -> None:
    """There the supervisor is process 1, and the process IDs differ from those outside."""
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not allow PID namespaces")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {" ".join(UNSHARE)} {sys.executable} "$@"\n')
    python.chmod(0o755)
    session = PythonRuntime(python=str(python))
    assert session.do("import os; n = 1; print(os.getppid())").text == "1\n"
    state = session.present
    session.do("n = 2")
    session.restore(state)
    assert session.do("print(n); os._exit(1)").ended == "died"
    assert session.do("print(n)").text == "1\n"
    session.terminate()


def test_a_running_block_cannot_be_undone(fresh: PythonRuntime) -> None:
    fresh.do("n = 1")
    state = fresh.points()[0]
    chunks = fresh.run("import time\nprint(1)\ntime.sleep(1000)")
    next(chunk for chunk in chunks if chunk.get("format") == "output")
    with pytest.raises(BusyError):
        fresh.restore(state)
    chunks.close()  # type: ignore[attr-defined]
    fresh.restore(state)
    assert fresh.do("print('n' in globals())").text == "False\n"


def test_in_process_python_cannot_be_restored() -> None:
    python = InProcessPython(namespace={})
    assert python.state is None
    with pytest.raises(NotRestorableError, match="in-process"):
        python.restore(1)


@pytest.fixture
def computer() -> Iterator[Computer]:
    computer = OpenInterpreter().computer
    yield computer
    computer.terminate()


def text(computer: Computer, language: str, code: str) -> str:
    return "".join(message["content"] for message in computer.run(language, code) if message["type"] == "console")


def test_undo_restores_directory_and_exports(computer: Computer) -> None:
    computer.run("shell", "cd /; export SHARED=early")
    computer.run("python", "n = 1")
    mark = computer.mark()
    computer.run("shell", "cd /tmp; export SHARED=late NEW=1")
    computer.run("python", "n = 2")
    later = computer.mark()
    assert set(computer.go_back(mark)) == {"Python", "Shell"}
    assert text(computer, "shell", "echo $PWD $SHARED $NEW") == "/ early\n"
    shown = text(computer, "python", "import os; print(n, os.getcwd(), os.environ['SHARED'], os.environ.get('NEW'))")
    assert shown == "1 / early None\n"
    computer.go_back(later)
    shown = text(computer, "python", "import os; print(n, os.getcwd(), os.environ['SHARED'], os.environ.get('NEW'))")
    assert shown == "2 /tmp late 1\n"
    assert text(computer, "shell", "echo $PWD $SHARED $NEW") == "/tmp late 1\n"


def test_restoring_one_language_restores_its_directory(computer: Computer) -> None:
    computer.run("python", "import os; os.chdir('/')")
    state = computer.runtimes.state("python")
    assert state is not None
    computer.run("python", "os.chdir('/tmp')")
    assert text(computer, "shell", "pwd") == "/tmp\n"
    computer.runtimes.runtime("python").restore(state)
    assert text(computer, "shell", "pwd") == "/\n"


def test_the_initial_state_is_known_before_the_first_block(computer: Computer) -> None:
    state = computer.runtimes.state("python")
    assert state is not None
    computer.run("python", "n = 1")
    assert computer.runtimes.runtime("python").points() == [state]
    computer.runtimes.runtime("python").restore(state)
    assert text(computer, "python", "print('n' in globals())") == "False\n"
    assert {"Python", "Shell"} <= set(computer.mark().states)


@pytest.mark.needs("node")
def test_javascript_cannot_be_restored(computer: Computer) -> None:
    computer.run("javascript", "let n = 1")
    assert computer.runtimes.state("javascript") is None
    with pytest.raises(NotRestorableError, match="Run its blocks again"):
        computer.runtimes.runtime("javascript").restore(1)


def test_a_crash_between_blocks_loses_nothing(fresh: PythonRuntime) -> None:
    fresh.do("n = [1]")
    fresh.do("n.append(2)")
    assert fresh.runtime is not None
    fresh.variables()  # the snapshot exists by then
    worker_of(fresh.runtime).kill()
    assert fresh.runtime.ended.wait(60)
    ran = fresh.do("print(n)")
    assert ran.stdout == "[1, 2]\n"
    assert "killed by SIGKILL" in ran.stderr and "since the last block" in ran.stderr


def test_changes_by_threads_since_the_last_block_are_kept(fresh: PythonRuntime, tmp_path: Path) -> None:
    begin, ended = tmp_path / "begin", tmp_path / "ended"
    os.mkfifo(begin)
    os.mkfifo(ended)
    fresh.do(
        "import os, threading\nfound = []\ndef work():\n"
        f"    open({str(begin)!r}).read(); found.append(1); open({str(ended)!r}, 'w').close(); threading.Event().wait()\n"
        "threading.Thread(target=work, daemon=True).start()"
    )
    begin.write_text("now")
    ended.read_text()
    assert fresh.do("os._exit(1)").ended == "died"
    assert fresh.do("print(found)").text == "[1]\n"
