"""A worker or a supervisor ends at the worst moment: it is told, and nobody waits for ever."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from interpreter.errors import NotRestorableError
from interpreter.runtimes.runtime import Runtime
from python_runtimes import PythonRuntime
from waiting import worker_of

pytestmark = pytest.mark.timeout(60)  # a wait that never ends is what could go wrong


@pytest.fixture
def fresh() -> Iterator[PythonRuntime]:
    python = PythonRuntime("bare")  # what happens here is the host's alone
    yield python
    python.terminate()


def kill_worker(runtime: Runtime) -> None:
    worker_of(runtime).kill()
    assert runtime.ended.wait(30)


def kill_supervisor(runtime: Runtime) -> None:
    assert isinstance(runtime._process, subprocess.Popen)
    runtime._process.kill()
    assert runtime.control.over.wait(30)


def just(moment: str, runtime: Runtime, name: str, ends: Callable[[Runtime], None], monkeypatch: Any) -> None:
    """Have it end before or after the next call of this method."""
    method = getattr(runtime, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        if moment == "before":
            ends(runtime)
        result = method(*args, **kwargs)
        if moment == "after":
            ends(runtime)
        return result

    monkeypatch.setattr(runtime, name, call)


def runtime_of(python: PythonRuntime) -> Runtime:
    assert python.runtime is not None
    return python.runtime


@pytest.mark.parametrize("ends", [kill_worker, kill_supervisor])
def test_between_the_look_for_a_worker_and_the_block(
    fresh: PythonRuntime, ends: Callable[[Runtime], None], monkeypatch: Any
) -> None:
    fresh.do("n = 1")
    fresh.variables()  # by then the snapshot is there
    just("after", runtime_of(fresh), "have_worker", ends, monkeypatch)
    ran = fresh.do("print('never')")
    kept = ends is kill_worker
    assert ran.ended == "died"
    # The worker hears of its supervisor's end a moment later: the block may have run by then.
    assert ran.stdout == "" or (not kept and ran.stdout == "never\n")
    assert ("Only this block is lost" in ran.stderr) == kept
    assert fresh.do("print('n' in globals())").stdout == f"{kept}\n"


def test_the_worker_had_ended_and_the_supervisor_ends_when_it_is_to_fork_another(
    fresh: PythonRuntime, monkeypatch: Any
) -> None:
    fresh.context.snapshots = 0
    fresh.do("n = 1")
    kill_worker(runtime_of(fresh))
    just("before", runtime_of(fresh), "spawn", kill_supervisor, monkeypatch)
    assert fresh.do("print('never')").ended == "died"
    assert fresh.do("print('fine')").stdout == "fine\n"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_in_a_return_to_an_earlier_state(fresh: PythonRuntime, moment: str, monkeypatch: Any) -> None:
    """Before the order, nobody obeys it; after it, it may have been obeyed, with a worker that is gone at once."""
    fresh.do("n = 1")
    state = fresh.state
    fresh.do("n = 2")
    just(moment, runtime_of(fresh), "spawn", kill_supervisor, monkeypatch)
    assert state is not None
    refused = pytest.raises(NotRestorableError, match="no longer available")
    with refused if moment == "before" else suppress(NotRestorableError):
        fresh.restore(state)
    assert not runtime_of(fresh).alive
    assert fresh.do("print('n' in globals())").stdout == "False\n"


def test_in_the_revival_of_a_worker(fresh: PythonRuntime, monkeypatch: Any) -> None:
    fresh.do("n = 1")
    fresh.variables()
    kill_worker(runtime_of(fresh))
    just("before", runtime_of(fresh), "spawn", kill_supervisor, monkeypatch)
    fresh.do("print('this one or the next')")
    assert fresh.do("print('fine')").stdout == "fine\n"


def test_before_a_trial(fresh: PythonRuntime) -> None:
    fresh.do("n = 1")
    runtime = runtime_of(fresh)
    kill_supervisor(runtime)
    read, write = os.pipe()
    assert not runtime.snapshots.suspend_worker(99, write)
    os.close(read)
    os.close(write)
    assert fresh.do("print('fine')").stdout == "fine\n"


def test_an_order_that_nobody_obeys_any_more_is_not_waited_for(fresh: PythonRuntime) -> None:
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


def test_code_that_speaks_as_the_supervisor_ends_its_session_and_no_more(fresh: PythonRuntime) -> None:
    ended = fresh.do(NONSENSE).ended
    if ended == "done":
        pytest.skip("a process may not reach into its parent here")
    assert ended == "died"
    assert fresh.do("print('next')").text.endswith("next\n")
