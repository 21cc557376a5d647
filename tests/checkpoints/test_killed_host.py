"""The host is killed at any moment: nothing keeps running, and the resumed session can undo everything."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from checkpoints.scripted_session import ScriptedSession, step
from checkpoints.test_random_file_changes import populate
from checkpoints.trees import Shape, shape
from conftest import _marked
from interpreter.session.journal import listed

pytestmark = [pytest.mark.usefixtures("no_strays"), pytest.mark.timeout(1800)]


def kill_after(folder: Path, seed: int, seconds: float) -> None:
    """Start a random session, kill its host after a while, and wait until all its processes have ended."""
    mark = uuid.uuid4().hex
    program = [sys.executable, str(Path(__file__).with_name("random_session.py")), str(folder), str(seed)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env={**os.environ, "KILLED_MARK": mark}) as host:
        assert host.stdout is not None and host.stdout.readline() == b"ready\n"
        early, _, _ = select.select([host.stdout], [], [], seconds)
        assert not early, "the host ended on its own"
        host.kill()
    _, alive = psutil.wait_procs(_marked("KILLED_MARK", mark), timeout=30)
    assert not alive


def check(folder: Path, before: Shape) -> None:
    """Resume the session, undo everything, and continue."""
    session = ScriptedSession(folder)
    try:
        (row,) = listed(session.sessions)
        session.interpreter.journal.resume(row.id)
        timeline = session.interpreter.timeline
        # The repository may be partly deleted.
        undone = timeline.go(timeline.plan(0), repositories=["repo/.git"])
        assert shape(session.root) == before and session.interpreter.messages == []
        assert undone.files is None or not undone.files.kept
        timeline.go(timeline.plan(timeline.present))
        timeline.go(timeline.plan(0))
        assert shape(session.root) == before
        session.turn("go on", step(1))
        session.interpreter.undo()
        assert session.state == ([], "one\ntwo\n", None) and shape(session.root) == before
    finally:
        session.close()


@pytest.mark.parametrize("count", [3, pytest.param(60, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_a_session_killed_at_random_moments_can_be_undone(tmp_path: Path, count: int) -> None:
    moments = random.Random(count)
    for number in range(count):
        folder = tmp_path.resolve() / str(number)
        (folder / "work").mkdir(parents=True)
        populate(folder / "work")
        before = shape(folder / "work")
        kill_after(folder, number, moments.uniform(0, 1.5))
        check(folder, before)
