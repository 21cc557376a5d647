"""A worker or a supervisor ends at the worst moment: it is told, and nobody waits for ever."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interpreter.runtimes.python.dry_run import Aside
from interpreter.runtimes.runtime import Session
from python_sessions import PythonSession
from waiting import worker_of

pytestmark = pytest.mark.timeout(60)  # a wait that never ends is what could go wrong


@pytest.fixture
def fresh() -> Iterator[PythonSession]:
    python = PythonSession("bare")  # what happens here is the host's alone
    yield python
    python.terminate()


def kill_worker(session: Session) -> None:
    worker_of(session).kill()
    assert session.ended.wait(30)


def kill_supervisor(session: Session) -> None:
    assert isinstance(session._process, subprocess.Popen)
    session._process.kill()
    assert session.control.over.wait(30)


def just(moment: str, session: Session, name: str, ends: Callable[[Session], None], monkeypatch: Any) -> None:
    """Have it end before or after the next call of this method."""
    method = getattr(session, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        if moment == "before":
            ends(session)
        result = method(*args, **kwargs)
        if moment == "after":
            ends(session)
        return result

    monkeypatch.setattr(session, name, call)


def session_of(python: PythonSession) -> Session:
    assert python.session is not None
    return python.session


@pytest.mark.parametrize("ends", [kill_worker, kill_supervisor])
def test_between_the_look_for_a_worker_and_the_block(
    fresh: PythonSession, ends: Callable[[Session], None], monkeypatch: Any
) -> None:
    fresh.do("n = 1")
    fresh.variables()  # by then the snapshot is there
    just("after", session_of(fresh), "have_worker", ends, monkeypatch)
    ran = fresh.do("print('never')")
    kept = ends is kill_worker
    assert ran.ended == "died"
    # The worker hears of its supervisor's end a moment later: the block may have run by then.
    assert ran.stdout == "" or (not kept and ran.stdout == "never\n")
    assert ("Only this block is lost" in ran.stderr) == kept
    assert fresh.do("print('n' in globals())").stdout == f"{kept}\n"


def test_the_worker_had_ended_and_the_supervisor_ends_when_it_is_to_fork_another(
    fresh: PythonSession, monkeypatch: Any
) -> None:
    fresh.context.snapshots = 0
    fresh.do("n = 1")
    kill_worker(session_of(fresh))
    just("before", session_of(fresh), "spawn", kill_supervisor, monkeypatch)
    assert fresh.do("print('never')").ended == "died"
    assert fresh.do("print('fine')").stdout == "fine\n"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_in_a_return_to_an_earlier_state(fresh: PythonSession, moment: str, monkeypatch: Any) -> None:
    """Before the order, nobody obeys it; after it, it may have been obeyed, with a worker that is gone at once."""
    fresh.do("n = 1")
    state = fresh.state
    fresh.do("n = 2")
    just(moment, session_of(fresh), "spawn", kill_supervisor, monkeypatch)
    assert state is not None
    with pytest.raises(Exception, match="not kept any more"):
        fresh.restore(state)
    assert not session_of(fresh).alive
    assert fresh.do("print('n' in globals())").stdout == "False\n"


def test_in_the_revival_of_a_worker(fresh: PythonSession, monkeypatch: Any) -> None:
    fresh.do("n = 1")
    fresh.variables()
    kill_worker(session_of(fresh))
    just("before", session_of(fresh), "spawn", kill_supervisor, monkeypatch)
    fresh.do("print('this one or the next')")
    assert fresh.do("print('fine')").stdout == "fine\n"


def test_before_a_trial(fresh: PythonSession) -> None:
    fresh.do("n = 1")
    session = session_of(fresh)
    aside = Aside(session)
    kill_supervisor(session)
    read, write = os.pipe()
    assert not aside.replace(99, write)
    os.close(read)
    os.close(write)
    assert fresh.do("print('fine')").stdout == "fine\n"


def test_an_order_that_nobody_obeys_any_more_is_not_waited_for(fresh: PythonSession) -> None:
    fresh.do("n = 1")
    session = session_of(fresh)
    kill_supervisor(session)
    session.control.command("signal 2")
    session.control.wait()


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


def test_code_that_speaks_as_the_supervisor_ends_its_session_and_no_more(fresh: PythonSession) -> None:
    ended = fresh.do(NONSENSE).ended
    if ended == "done":
        pytest.skip("a process may not reach into its parent here")
    assert ended == "died"
    assert fresh.do("print('next')").text.endswith("next\n")
