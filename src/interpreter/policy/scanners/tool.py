"""A scanner that is a program of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from interpreter.policy.scanners.findings import Finding

Commands = Callable[[str, Path, str], list[list[str]]]
"""From the program, the file and its kind to command lines; the next is tried if one gives nothing readable."""


class Tool(NamedTuple):
    """How a scanner is started, and how its answer is read. A language names the scanners that understand it."""

    name: str
    commands: Commands
    read: Callable[[str], list[Finding]]
    """Findings from what it printed; ValueError, KeyError or TypeError if that is no report."""
    environment: Callable[[Path], dict[str, str]] = lambda folder: {}
    """Variables for it; the folder is one that goes away afterwards."""
    prepared: Callable[[str], str] = lambda code: code
    """The code as it gets it, with the same lines."""

    @property
    def program(self) -> str | None:
        """Where it is installed: beside the Python that runs us, or on the path."""
        here = os.path.dirname(sys.executable)
        return shutil.which(self.name, path=here) or shutil.which(self.name)
