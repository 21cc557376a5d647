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

PROGRAM = Path(__file__).with_name("random_interrupts.py")
PHASES = "python shell javascript in_process dropped model chat approval undo export".split()
# Seconds from the first SIGINT until control is back, even on a slow machine. A lost interrupt would never return.
MAX_WAIT = 10.0


def run_program(seed: int, interrupts: int, *phases: str, limit: int = 100) -> dict[str, Any]:
    """Run random_interrupts.py and return its results."""
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(PROGRAM.parent.parent)])
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(seed), str(interrupts), *phases],
        env={**os.environ, "PYTHONPATH": path, "TIME_LIMIT": str(limit)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-8000:]
    results: dict[str, Any] = json.loads(ran.stdout)
    return results


def check(results: dict[str, Any], interrupts: int) -> None:
    assert results["pressed"] >= interrupts
    assert not results["lost"], results
    assert results["begun"] == results["ended"] > 0
    assert max(results["waits"].values()) < MAX_WAIT, results


@pytest.mark.needs("node")
@pytest.mark.parametrize("phases", some(1, [PHASES[:5], PHASES[5:]]), ids=["blocks", "turns"])
def test_random_interrupts_lose_nothing(phases: list[str]) -> None:
    check(run_program(1, 50, *phases), 50)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.needs("node")
@pytest.mark.parametrize("phase", PHASES)
def test_a_thousand_random_interrupts_lose_nothing_in_a_phase(phase: str) -> None:
    check(run_program(int.from_bytes(os.urandom(4)), 1000, phase, limit=890), 1000)
