"""The real program in a child process, with its own home folder and profiles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from model_server import ModelServer
from terminal.person import PROGRAM

Done = subprocess.CompletedProcess[str]


def interpreter(*arguments: str, server: ModelServer | None = None, stdin: str = "") -> Done:
    """Run the program to its end, without a terminal."""
    where = ["--api_base", server.base_url, "--api_key", "key"] if server else []
    program = [sys.executable, "-c", PROGRAM, *where, *arguments]
    return subprocess.run(program, input=stdin, capture_output=True, text=True, timeout=100)


def folder(home: Path) -> Path:
    """Make and return the folder of the user's profiles."""
    place = home / ".config" / "open-interpreter" / "profiles"
    place.mkdir(parents=True, exist_ok=True)
    return place


def config(*arguments: str) -> dict[str, tuple[str, str]]:
    """Read the output of `--debug-config`: each setting with its value and origin."""
    done = interpreter(*arguments, "--debug-config")
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ", 1) for line in done.stdout.splitlines() if "  " in line]
    settings = {}
    for name, rest in rows:
        value, _, origin = rest.strip().rpartition("  ")
        settings[name] = (value.strip(), origin)
    return settings
