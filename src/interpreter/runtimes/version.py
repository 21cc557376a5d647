"""Which version of a program is installed."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from contextlib import nullcontext

from interpreter.runtimes.containment import Containment, Start

NUMBER = re.compile(r"\d+(?:\.\d+)+")


@functools.cache  # a sandbox is itself alone
def program_version(program: str, containment: Containment | None = None) -> str | None:
    """What the program says when asked, in a sandbox if it runs in one; None if it is not there or says nothing."""
    plain = Start([program, "--version"], dict(os.environ))
    try:
        with containment.wrap(plain) if containment else nullcontext(plain) as start:
            answer = subprocess.run(
                start.argv,
                env=start.env,
                pass_fds=start.fds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=10,
            )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = NUMBER.search(answer.stdout + answer.stderr)
    return found.group() if found else None
