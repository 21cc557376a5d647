"""When memory is short, the oldest snapshots are dropped first, and a block that uses it up loses only itself."""

from __future__ import annotations

import os
import select
import socket
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from interpreter.runtimes import snapshot_store
from python_runtimes import PythonRuntime
from waiting import until

GROUPS = Path("/sys/fs/cgroup")
LIMIT = 300 << 20
SIZE = 20 << 20


def limited_group() -> Path:
    """A control group (v1 or v2) with limited memory; OSError if we may not create one."""
    old = (GROUPS / "memory").is_dir()
    if not old:
        (GROUPS / "cgroup.subtree_control").write_text("+memory")
    group = (GROUPS / "memory" if old else GROUPS) / f"interpreter-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    limit = group / ("memory.limit_in_bytes" if old else "memory.max")
    if not limit.exists():
        group.rmdir()
        raise OSError("memory is not limited here")
    limit.write_text(str(LIMIT))
    return group


@pytest.fixture
def session(tmp_path: Path) -> Iterator[PythonRuntime]:
    """Python in a control group with little memory."""
    try:
        group = limited_group()
    except OSError as error:
        pytest.skip(f"can't create a control group here: {error}")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho 0 > {group}/cgroup.procs\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    session = PythonRuntime("bare", str(python))
    yield session
    session.terminate()
    until(lambda: not (group / "cgroup.procs").read_text(), "the end of all processes")
    group.rmdir()


def test_the_oldest_snapshots_are_dropped_first(session: PythonRuntime) -> None:
    session.do(f"import os; pid = os.getpid(); data = bytearray({SIZE})")
    states = []
    for n in range(25):
        ran = session.do(f"data[:] = bytes([{n}]) * len(data)")
        assert ran.ended == "done", ran.stderr
        states.append(session.present)
    assert session.do("print(os.getpid() == pid)").text == "True\n"  # the worker was not killed
    kept = [state in (*session.points(), session.present) for state in states]
    assert 2 <= sum(kept) < 15  # all of them would be 20 snapshots with 400 MB
    assert kept == sorted(kept)  # the newest ones
    for state in (states[kept.index(True)], states[-2]):
        session.restore(state)
        assert session.do("print(data[0], data[-1])").text == f"{states.index(state)} {states.index(state)}\n"


def test_a_block_that_uses_up_all_memory_loses_only_itself(session: PythonRuntime) -> None:
    session.do(f"n = 1; data = bytearray(b'x') * {SIZE}")
    session.do("n = 2")
    ran = session.do(f"n = 3; data += b'x' * {2 * LIMIT}")
    assert ran.ended == "died"
    assert "Only this block is lost" in ran.stderr
    assert session.do("print(n, len(data), data[-1:])").text == f"2 {SIZE} bytearray(b'x')\n"
    assert session.do("n += 1; print(n)").text == "3\n"


@pytest.fixture
def unlimited() -> Iterator[PythonRuntime]:
    """Python without a memory limit."""
    if psutil.virtual_memory().available < psutil.virtual_memory().total / 3:
        pytest.skip("memory is really short")
    session = PythonRuntime("bare")
    yield session
    session.terminate()


def test_snapshots_are_kept_without_a_memory_limit(unlimited: PythonRuntime) -> None:
    for n in range(6):
        unlimited.do(f"n = {n}")
    assert len(unlimited.points()) == 6


@pytest.mark.parametrize(("available", "kept"), [(50, 4), (20, 2)])
def test_memory_pressure_drops_snapshots_only_if_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, available: int, kept: int
) -> None:
    """The pressure may come from another control group that reached its limit on a machine with plenty of memory."""
    supervisor: Any = SimpleNamespace(poll=select.poll(), say=lambda said: None, origin=None)
    snapshots = snapshot_store.SnapshotStore(supervisor)
    memory = b"MemTotal: 100 kB\nMemFree: 0 kB\nMemAvailable: %d kB\n" % available
    monkeypatch.setattr(snapshot_store, "content", lambda path: memory)
    pressure, other_end = os.pipe()
    snapshots.groups, snapshots.pressure = [], pressure
    lines = [socket.socketpair() for _ in range(4)]
    for state, (ours, _) in enumerate(lines):
        snapshots.expect(ours.detach(), str(state), "9")
    snapshots.listen([pressure])
    assert len(snapshots.kept) == kept
    snapshots.close()
    os.close(other_end)
    for _, theirs in lines:
        theirs.close()
