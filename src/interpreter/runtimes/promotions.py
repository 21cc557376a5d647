"""How a snapshot takes the worker's place: for good, on trial, or in a session of its own.

The supervisor runs this file along with `kept_snapshots.py`; like that one it needs nothing but Python 3.8.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interpreter.runtimes.supervisor import Supervisor


def obey(session: Supervisor, command: str, argument: str) -> None:
    """Carry out one of the commands promote, try, settle and split."""
    if command == "promote":
        promote(session, argument, session.take_fds(4))
    elif command == "try":
        entrance = session.take_fds(1)
        session.aside, session.pid, session.late = session.pid, None, ""
        promote(session, argument, session.take_fds(4) + entrance)
        if session.pid is None:
            session.aside, session.pid = None, session.aside
    elif command == "settle":
        word, *place = argument.split()
        settle(session, word, *map(int, place))
    elif command == "split":
        split(session, argument, session.take_fds(5))


def promote(session: Supervisor, state: str, fds: list[int]) -> None:
    pid = None
    if session.snapshots.has(state):
        session.end_worker()
        pid = session.snapshots.wake(state, fds)
    for fd in fds:
        os.close(fd)
    if pid is None:
        session.say("missing %s" % state)
        return
    session.pid = pid
    session.lead(pid)
    session.say("spawned %d" % pid)
    for other in session.descendants():
        session.say("left %d %s" % (other, session.name_of(other)))
    session.say("promoted %s" % state)


def settle(session: Supervisor, word: str, place: int = 0) -> None:
    """The trial is over: one of the two workers goes, and with the new one all that is where it was."""
    if word == "keep":
        session.aside, session.pid = session.pid, session.aside
    session.end_worker()
    while place and (there := [pid for pid in session.descendants() if mounts_of(pid) == place]):
        for pid in there:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # gone already, or no longer ours (a set-uid program)
        session.reap()
    worker, session.aside = session.aside, None
    session.pid = worker
    if worker:
        session.lead(worker)
    elif session.late:
        session.say(session.late)
    session.say("settled")


def split(session: Supervisor, state: str, fds: list[int]) -> None:
    done = session.snapshots.has(state) and session.snapshots.split(state, fds)
    for fd in fds:
        os.close(fd)
    session.say("%s %s" % ("split" if done else "missing", state))


def mounts_of(pid: int) -> int | None:
    """The number of the mount namespace that a process is in."""
    try:
        return os.stat("/proc/%d/ns/mnt" % pid).st_ino
    except OSError:
        return None
