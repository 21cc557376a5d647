"""Tests that need their own Python process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

_ALONE = "TEST_RUNS_ALONE"


def alone(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test that traces in a fresh process: CPython 3.11 hangs in a trace function after thousands of tests."""

    @functools.wraps(test)
    def outer(*args: Any, **fixtures: Any) -> None:
        if _ALONE in os.environ:
            test(*args, **fixtures)
            return
        name = os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].removesuffix(" (call)")
        file = test.__code__.co_filename  # type: ignore[attr-defined]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", f"{file}::{name}"]
        done = subprocess.run(command, env={**os.environ, _ALONE: "1"}, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout

    return outer
