"""A worker or a supervisor dies at the worst moment: that is reported, and nothing waits forever."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from interpreter.errors import NotRestorableError
from interpreter.runtimes.runtime import Runtime
from python_runtimes import PythonRuntime
from waiting import worker_of

pytestmark = pytest.mark.timeout(60)  # the danger is a wait that never ends


@pytest.fixture
def fresh() -> Iterator[PythonRuntime]:
    python = PythonRuntime("bare")  # the engine makes no difference here
    yield python
    python.terminate()


def kill_worker(runtime: Runtime) -> None:
    worker_of(runtime).kill()
    assert runtime.ended.wait(30)


def kill_supervisor(runtime: Runtime) -> None:
    assert isinstance(runtime._process, subprocess.Popen)
    runtime._process.kill()
    assert runtime.control.over.wait(30)


def kill_around(moment: str, runtime: Runtime, name: str, kill: Callable[[Runtime], None], monkeypatch: Any) -> None:
    """Kill it before or after the next call of this method."""
    method = getattr(runtime, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        if moment == "before":
            kill(runtime)
        result = method(*args, **kwargs)
        if moment == "after":
            kill(runtime)
        return result

    monkeypatch.setattr(runtime, name, call)


def runtime_of(python: PythonRuntime) -> Runtime:
    assert python.runtime is not None
    return python.runtime


@pytest.mark.parametrize("kill", [kill_worker, kill_supervisor])
def test_a_death_right_before_the_block_is_reported(
    fresh: PythonRuntime, kill: Callable[[Runtime], None], monkeypatch: Any
) -> None:
    fresh.do("n = 1")
    fresh.variables()  # the snapshot exists by then
    kill_around("after", runtime_of(fresh), "have_worker", kill, monkeypatch)
    ran = fresh.do("print('never')")
    kept = kill is kill_worker
    assert ran.ended == "died"
    # The worker notices the death of its supervisor a moment later, so the block may have run by then.
    assert ran.stdout == "" or (not kept and ran.stdout == "never\n")
    assert ("Only this block is lost" in ran.stderr) == kept
    assert fresh.do("print('n' in globals())").stdout == f"{kept}\n"


def test_a_supervisor_that_dies_while_it_replaces_a_worker_is_replaced(fresh: PythonRuntime, monkeypatch: Any) -> None:
    fresh.context.snapshots = 0
    fresh.do("n = 1")
    kill_worker(runtime_of(fresh))
    kill_around("before", runtime_of(fresh), "spawn", kill_supervisor, monkeypatch)
    assert fresh.do("print('never')").ended == "died"
    assert fresh.do("print('fine')").stdout == "fine\n"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_supervisor_that_dies_during_undo_is_replaced(fresh: PythonRuntime, moment: str, monkeypatch: Any) -> None:
    """Killed after the command, it may have executed it with a worker that is gone at once."""
    fresh.do("n = 1")
    state = fresh.state
    fresh.do("n = 2")
    kill_around(moment, runtime_of(fresh), "spawn", kill_supervisor, monkeypatch)
    assert state is not None
    refused = pytest.raises(NotRestorableError, match="no longer available")
    with refused if moment == "before" else suppress(NotRestorableError):
        fresh.restore(state)
    assert not runtime_of(fresh).alive
    assert fresh.do("print('n' in globals())").stdout == "False\n"


def test_a_worker_is_not_alive_without_its_supervisor(fresh: PythonRuntime, monkeypatch: Any) -> None:
    """Also before its end is recorded, or the next worker would not get what was exported to this one."""
    fresh.context.exported["EXPORTED"] = "here"
    fresh.do("n = 1")
    runtime, recorded = runtime_of(fresh), threading.Event()
    record = runtime._worker_exited
    monkeypatch.setattr(runtime, "_worker_exited", lambda code: recorded.wait(30) and record(code))
    kill_supervisor(runtime)
    assert not runtime.alive
    threading.Timer(0.2, recorded.set).start()  # while the next block waits for the end of the reader
    assert fresh.do("import os; print('n' in globals(), os.environ['EXPORTED'])").stdout == "False here\n"


def test_a_supervisor_that_dies_while_it_revives_a_worker_is_replaced(fresh: PythonRuntime, monkeypatch: Any) -> None:
    fresh.do("n = 1")
    fresh.variables()
    kill_worker(runtime_of(fresh))
    kill_around("before", runtime_of(fresh), "spawn", kill_supervisor, monkeypatch)
    fresh.do("print('this one or the next')")
    assert fresh.do("print('fine')").stdout == "fine\n"


def test_a_preview_after_the_death_of_the_supervisor_is_refused(fresh: PythonRuntime) -> None:
    fresh.do("n = 1")
    runtime = runtime_of(fresh)
    kill_supervisor(runtime)
    read, write = os.pipe()
    assert not runtime.snapshots.suspend_worker(99, write)
    os.close(read)
    os.close(write)
    assert fresh.do("print('fine')").stdout == "fine\n"


def test_commands_to_a_dead_supervisor_do_not_hang(fresh: PythonRuntime) -> None:
    fresh.do("n = 1")
    runtime = runtime_of(fresh)
    kill_supervisor(runtime)
    runtime.control.command("signal 2")
    runtime.control.wait()


NONSENSE = """
import ctypes, os, socket, stat, time
libc, sent = ctypes.CDLL(None), 0
supervisor = os.pidfd_open(os.getppid())
for number in os.listdir(f"/proc/{os.getppid()}/fd"):
    fd = libc.syscall(438, supervisor, int(number), 0)  # pidfd_getfd
    if fd >= 0 and stat.S_ISSOCK(os.fstat(fd).st_mode):
        sent += socket.socket(fileno=fd).send(b"spawned nobody\\n")
time.sleep(1000 if sent else 0)
"""


def test_code_that_impersonates_the_supervisor_ends_only_its_session(fresh: PythonRuntime) -> None:
    ended = fresh.do(NONSENSE).ended
    if ended == "done":
        pytest.skip("a process may not reach into its parent here")
    assert ended == "died"
    assert fresh.do("print('next')").text.endswith("next\n")
