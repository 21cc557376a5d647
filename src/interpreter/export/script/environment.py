"""What is installed for the Python that the session runs, asked of that Python itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from interpreter.errors import ExportError

_ASK = """
import json, sys
from importlib import metadata
modules, versions = {}, {}
for one in metadata.distributions():
    name = one.metadata["Name"]
    if not name:
        continue
    versions.setdefault(name, one.version)
    tops = (one.read_text("top_level.txt") or "").split()
    if not tops:
        paths = [path.parts for path in one.files or []]
        tops = {parts[0] for parts in paths if len(parts) > 1 and parts[-1].endswith(".py")}
        tops |= {parts[0][:-3] for parts in paths if len(parts) == 1 and parts[0].endswith(".py")}
    for top in tops:
        modules.setdefault(top, []).append(name)
print(json.dumps({"python": list(sys.version_info[:2]), "modules": modules, "versions": versions}))
"""
_PATIENCE = 120.0


@dataclass(frozen=True)
class Installed:
    """A Python with its packages."""

    python: tuple[int, int]
    modules: Mapping[str, list[str]] = field(default_factory=dict)
    """By what they are imported as, the packages that bring them."""
    versions: Mapping[str, str] = field(default_factory=dict)


def installed_for(python: str, environment: Mapping[str, str] | None = None) -> Installed:
    """Ask a Python program what it has."""
    try:
        done = subprocess.run(
            [python, "-c", _ASK], capture_output=True, text=True, timeout=_PATIENCE, env=environment, check=True
        )
        told = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ExportError(f"{python} could not be asked which packages it has: {error}") from error
    major, minor = told["python"]
    return Installed((major, minor), told["modules"], told["versions"])
