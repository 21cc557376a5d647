"""Which Python a session runs: the one asked for, else the active virtual environment's, else our own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from interpreter.errors import SessionStartError


def which_python(asked: str | None, env: Mapping[str, str]) -> str:
    """The program to run; `asked` may be a program, a path, or the folder of a virtual environment."""
    if asked:
        return asked_for(asked, env)
    active = env.get("VIRTUAL_ENV")
    if active and (found := python_in(Path(active))):
        return found
    return sys.executable


def asked_for(asked: str, env: Mapping[str, str]) -> str:
    path = Path(asked).expanduser()
    if path.is_dir():
        found = python_in(path)
    else:
        found = shutil.which(str(path), path=env.get("PATH"))
    if found is None:
        raise SessionStartError("Python", f"no Python at {asked!r}; see the setting `computer.python`")
    return os.path.abspath(found)


def has_package(python: str, name: str) -> bool:
    """Whether a Python has this package, as far as its folders tell."""
    prefix = Path(python).absolute().parent.parent
    places = [*prefix.glob("lib/python3*/site-packages"), prefix / "Lib" / "site-packages"]
    return any((place / name).is_dir() for place in places)


def python_in(environment: Path) -> str | None:
    """The Python of a virtual environment."""
    for name in ("bin/python", "bin/python3", "Scripts/python.exe"):
        if os.access(environment / name, os.X_OK):
            return str(environment / name)
    return None
