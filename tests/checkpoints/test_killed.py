"""The host is killed at any moment: nothing is left running, and the next start can take everything back."""

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

from checkpoints.test_any_program import populate
from checkpoints.traveller import Traveller, step
from checkpoints.trees import Shape, shape
from conftest import _marked
from interpreter.session.journal import listed

pytestmark = [pytest.mark.usefixtures("no_strays"), pytest.mark.timeout(1800)]


def killed_after(folder: Path, seed: int, seconds: float) -> None:
    """Start a restless session, let it run for a while, kill its host, and wait until all that it had started is gone."""
    mark = uuid.uuid4().hex
    program = [sys.executable, str(Path(__file__).with_name("restless.py")), str(folder), str(seed)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, env={**os.environ, "KILLED_MARK": mark}) as host:
        assert host.stdout is not None and host.stdout.readline() == b"ready\n"
        early, _, _ = select.select([host.stdout], [], [], seconds)
        assert not early, "it ended by itself"
        host.kill()
    _, alive = psutil.wait_procs(_marked("KILLED_MARK", mark), timeout=30)
    assert not alive


def check(folder: Path, before: Shape) -> None:
    """Take the session up, take everything back, and go on."""
    traveller = Traveller(folder)
    try:
        (row,) = listed(traveller.sessions)
        traveller.interpreter.journal.resume(row.id)
        timeline = traveller.interpreter.timeline
        # A deletion of the repository may have been cut off anywhere.
        undone = timeline.go(timeline.plan(0), repositories=["repo/.git"])
        assert shape(traveller.root) == before and traveller.interpreter.messages == []
        assert undone.files is None or not undone.files.kept
        timeline.go(timeline.plan(timeline.present))
        timeline.go(timeline.plan(0))
        assert shape(traveller.root) == before
        traveller.turn("go on", step(1))
        traveller.interpreter.undo()
        assert traveller.state == ([], "one\ntwo\n", None) and shape(traveller.root) == before
    finally:
        traveller.close()


@pytest.mark.parametrize("count", [3, pytest.param(60, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_killed_at_random_moments(tmp_path: Path, count: int) -> None:
    moments = random.Random(count)
    for number in range(count):
        folder = tmp_path.resolve() / str(number)
        (folder / "work").mkdir(parents=True)
        populate(folder / "work")
        before = shape(folder / "work")
        killed_after(folder, number, moments.uniform(0, 1.5))
        check(folder, before)
