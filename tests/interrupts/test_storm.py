"""SIGINT at random moments in every phase: no long wait, no lost variable, no lost ending."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sampling import some

PROGRAM = Path(__file__).with_name("storm.py")
PHASES = "python shell javascript in_process dropped model chat approval undo export".split()
LONGEST = (
    10.0  # seconds, on any machine: a wait for something lost never ends from the first SIGINT until control is back
)


def storm(seed: int, interrupts: int, *phases: str, limit: int = 100) -> dict[str, Any]:
    """The results of storm.py."""
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(PROGRAM.parent.parent)])
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(seed), str(interrupts), *phases],
        env={**os.environ, "PYTHONPATH": path, "STORM_LIMIT": str(limit)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-8000:]
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def check(told: dict[str, Any], interrupts: int) -> None:
    assert told["pressed"] >= interrupts
    assert not told["lost"], told
    assert told["begun"] == told["ended"] > 0
    assert max(told["waits"].values()) < LONGEST, told


@pytest.mark.needs("node")
@pytest.mark.parametrize("phases", some(1, [PHASES[:5], PHASES[5:]]), ids=["blocks", "turns"])
def test_a_hundred_interrupts(phases: list[str]) -> None:
    check(storm(1, 50, *phases), 50)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.needs("node")
@pytest.mark.parametrize("phase", PHASES)
def test_ten_thousand_interrupts(phase: str) -> None:
    check(storm(int.from_bytes(os.urandom(4)), 1000, phase, limit=890), 1000)
