"""The subject of a measurement, ours or the original: a Python with the package, and how a probe runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

ROOT = Path(__file__).parent.parent
PROBES = Path(__file__).parent / "probes"


class ProbeFailure(Exception):
    """A probe could not measure; the message is short enough for the table."""


@dataclass(frozen=True)
class Subject:
    """A Python with the package; the same probes run in both, because the interface is the same."""

    name: str
    python: Path

    @property
    def program(self) -> Path:
        return self.python.parent / "interpreter"

    @property
    def is_original(self) -> bool:
        return self.name != "ours"


def once(measure: Callable[P, R]) -> Callable[P, R]:
    """Measure only once for the same arguments; a failure is remembered too."""
    known: dict[Any, R | ProbeFailure] = {}

    @wraps(measure)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        if args not in known:
            try:
                known[args] = measure(*args, **kwargs)
            except ProbeFailure as failure:
                known[args] = failure
        result = known[args]
        if isinstance(result, ProbeFailure):
            raise result
        return result

    return remembered


OURS = Subject("ours", Path(sys.executable))


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """Make an empty folder, removed at the end."""
    return tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)


def environment(home: str) -> dict[str, str]:
    """Return a clean environment with this home folder."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return kept | {"HOME": home, "DISABLE_TELEMETRY": "true", "TERM": "xterm-256color", "SHELL": "/bin/bash"}


def probe(python: Path, name: str, timeout: float = 120, **arguments: Any) -> dict[str, Any]:
    """Run a probe; it prints its result as JSON on its last line."""
    command = [str(python), str(PROBES / f"{name}.py"), json.dumps(arguments)]
    with new_folder() as home, new_folder() as passing, new_folder() as folder:
        env = environment(home) | {"TMPDIR": passing}  # includes files of a killed probe
        if python == OURS.python and "PYTHONPATH" in os.environ:
            env["PYTHONPATH"] = os.environ["PYTHONPATH"]  # a source tree other than the installed one
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=timeout,
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise ProbeFailure(f"> {timeout:.0f} s") from None
    if done.returncode:
        raise ProbeFailure((done.stderr.strip().splitlines() or ["no word"])[-1][:60])
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def cpu(command: list[str], runs: int = 5) -> float:
    """CPU seconds of a program; the minimum of several runs, because noise only adds."""
    return min(_cpu_once(command) for _ in range(runs))


def _cpu_once(command: list[str]) -> float:
    with tempfile.TemporaryFile() as errors, new_folder() as home:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment(home)
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise ProbeFailure((lines or ["no word"])[-1][:60])
    return used.ru_utime + used.ru_stime
