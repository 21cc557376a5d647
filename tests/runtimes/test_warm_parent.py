"""Python sessions forked from a warm parent: they have its modules and share nothing else."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from interpreter.runtimes.launch import RuntimeContext, WarmParent, warm_parent
from interpreter.runtimes.python.language import Python

MAX_OWN_MEMORY = 6300  # kB, of a session's worker and supervisor
PRELOAD = ("numpy", "colorsys")  # and no other module of these tests imports colorsys


class Session:
    def __init__(self, folder: Path, preload: tuple[str, ...] = PRELOAD, **exported: str) -> None:
        self.context = RuntimeContext(cwd=str(folder), preload=preload, exported=dict(exported))
        self.python = Python(self)

    def run(self, code: str) -> str:
        chunks = list(self.python.run(code))
        return "".join(str(chunk["content"]) for chunk in chunks if chunk.get("format") == "output")

    @property
    def parent(self) -> WarmParent:
        found = warm_parent(self.python.launch())
        assert found is not None
        return found


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[list[Session]]:
    made: list[Session] = []
    yield made
    for session in made:
        session.python.terminate()


def test_sessions_have_the_modules_and_their_own_environment(tmp_path: Path, sessions: list[Session]) -> None:
    sessions += [Session(tmp_path, SECRET="first", TZ="Asia/Tokyo"), Session(Path("/"))]
    first, second = sessions
    assert first.run("import sys; print('colorsys' in sys.modules, sys.argv)") == "True ['']\n"
    look = "import os, time; print(os.getcwd(), os.environ.get('SECRET'), time.strftime('%Z'), _dh)"
    assert first.run(look) == f"{tmp_path} first JST [{str(tmp_path)!r}]\n"
    assert second.run(look).startswith("/ None ") and "JST" not in second.run(look)
    of_parent = Path(f"/proc/{os.getpid()}/task").exists() and "print('SECRET' in open('/proc/self/environ').read())"
    assert not of_parent or second.run(of_parent) == "False\n"


def test_sessions_draw_different_random_numbers(tmp_path: Path, sessions: list[Session]) -> None:
    sessions += [Session(tmp_path), Session(tmp_path)]
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    drawn = [session.run(code).split() for session in sessions]
    assert drawn[0][0] != drawn[1][0] and drawn[0][1] != drawn[1][1]


def test_blocks_of_the_parent_leave_no_trace_in_a_session(tmp_path: Path, sessions: list[Session]) -> None:
    sessions += [Session(tmp_path), Session(tmp_path, ())]
    look = "print(sorted(globals()), In, Out, [_, __, ___, _i, _ii, _iii], get_ipython().execution_count)"
    warm, cold = (session.run(look) for session in sessions)
    assert "execution_count" in warm and warm == cold
    warm, cold = (session.run("print(_i, _ii, Out)") for session in sessions)
    assert warm == cold


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_session_shares_most_of_its_memory_with_the_parent(tmp_path: Path, sessions: list[Session]) -> None:
    sessions += [Session(tmp_path), Session(tmp_path)]
    for session in sessions:
        session.context.snapshots = 0  # which would share memory with the worker
        for code in ("x = 1", "x += 1; x", "x += 1; x"):
            session.run(code)
    worker, supervisor = map(int, sessions[1].run("import os; print(os.getpid(), os.getppid())").split())
    own = 0
    for pid in (worker, supervisor):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        own += int(rollup.split("Private_Dirty:")[1].split()[0])
    assert own < MAX_OWN_MEMORY, own


def test_variables_can_be_undone_and_split_and_survive_a_crash(tmp_path: Path, sessions: list[Session]) -> None:
    sessions += [Session(tmp_path), Session(tmp_path)]
    session, other = sessions
    session.run("x = 1")
    state = session.python.state
    session.run("x = 2")
    assert state is not None
    session.python.restore(state)
    assert session.run("print(x)") == "1\n"
    assert "Only this block is lost" in session.run("import os; os._exit(1)")
    assert session.run("print(x)") == "1\n"
    other.python, restored = session.python.split(other)
    assert restored.lost == [] and other.run("x += 10; print(x)") == "11\n" and session.run("print(x)") == "1\n"


def test_a_session_survives_the_parent_and_the_next_one_gets_a_new_parent(
    tmp_path: Path, sessions: list[Session]
) -> None:
    sessions += [Session(tmp_path), Session(tmp_path)]
    first, second = sessions
    first.run("x = 1")
    parent = first.parent
    parent._process.kill()
    parent._process.wait()
    assert first.run("print(x)") == "1\n"
    assert second.run("import sys; print('colorsys' in sys.modules)") == "True\n"
    assert second.parent is not parent


def test_modules_that_cannot_be_imported_are_named(tmp_path: Path, sessions: list[Session]) -> None:
    sessions.append(Session(tmp_path, ("colorsys", "no_such_module")))
    sessions[0].run("1")
    output = sessions[0].run("print(2)")
    assert "can't be imported: no_such_module (ModuleNotFoundError" in output and output.endswith("2\n")
    assert sessions[0].run("print(3)") == "3\n"


def test_a_session_starts_even_if_a_module_crashes_the_parent(
    tmp_path: Path, sessions: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crashing.py").write_text("import os, sys; sys.stderr.write('no GPU'); sys.stderr.flush(); os._exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sessions.append(Session(tmp_path, ("crashing",)))
    output = sessions[0].run("x = 1")
    assert "modules of `computer.preload` ended: no GPU" in output, output
    assert sessions[0].run("print(1)") == "1\n"  # without the parent


def test_modules_that_start_threads_are_reported(
    tmp_path: Path, sessions: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sessions.append(Session(tmp_path, ("threaded",)))
    assert "started 1 threads" in sessions[0].run("1")
    assert sessions[0].run("print(1)") == "1\n"


def test_sessions_with_other_imports_or_a_sandbox_start_without_the_parent(
    tmp_path: Path, sessions: list[Session]
) -> None:
    sessions.append(Session(tmp_path, PYTHONPATH=str(tmp_path)))  # its imports may differ
    assert warm_parent(sessions[0].python.launch()) is None
    assert sessions[0].run("import sys; print('colorsys' in sys.modules)") == "False\n"
    plain = Session(tmp_path).python.launch()
    in_a_sandbox = replace(plain, containment=object())  # type: ignore[arg-type]
    assert warm_parent(in_a_sandbox) is None
    assert warm_parent(replace(plain, preload=())) is None


HOST = """
import signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from runtimes.test_warm_parent import Session
session = Session(Path("/"), ("colorsys",))
session.run("import os")
print(session.parent._process.pid, session.run("print(os.getpid())"), flush=True)
signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_parent_and_its_sessions_end_with_the_host() -> None:
    code = HOST.format(tests=str(Path(__file__).parents[1]))
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    pids = [int(word) for word in host.stdout.readline().split()]
    watched = [os.pidfd_open(pid) for pid in pids]
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    for fd in watched:
        assert select.select([fd], [], [], 60)[0]
        os.close(fd)
