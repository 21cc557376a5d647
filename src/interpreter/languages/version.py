"""Which version of a program is installed."""

from __future__ import annotations

import functools
import re
import subprocess

NUMBER = re.compile(r"\d+(?:\.\d+)+")


@functools.cache
def program_version(program: str) -> str | None:
    """What the program says when asked; None if it is not there or says nothing."""
    try:
        answer = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = NUMBER.search(answer.stdout + answer.stderr)
    return found.group() if found else None
