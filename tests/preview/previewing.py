"""An interpreter in a workspace of its own, whose blocks can be tried out; and what must not be left behind."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.runtimes.dry_run import PREFIX

PLACES = ("/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir())


def cannot() -> str | None:
    """Why no view can be had on this machine, if so."""
    flags = ["--mount"] if os.getuid() == 0 else ["--user", "--mount"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode:
        return "this machine allows no mount namespaces"
    known = Path("/proc/filesystems").read_text(encoding="utf-8")
    return None if "overlay" in known else "this kernel has no overlay file system"


needs_views = pytest.mark.skipif(cannot() is not None, reason=str(cannot()))


def layers(pid: int | None = None) -> set[str]:
    """The folders of a process's views, among all temporary files."""
    start = f"{PREFIX}{pid or os.getpid()}-"
    return {name for place in set(PLACES) for name in os.listdir(place) if name.startswith(start)}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("one\ntwo\n")
    (folder / "folder").mkdir()
    (folder / "folder" / "inside").write_text("inside\n")
    return folder


@pytest.fixture
def interpreter(workspace: Path, no_strays: None) -> Iterator[OpenInterpreter]:
    """Nothing of it is left: no process, no mount, no layer."""
    before = layers()
    made = OpenInterpreter(workspace=str(workspace))
    yield made
    made.computer.terminate()
    assert layers() <= before
    assert PREFIX not in Path("/proc/mounts").read_text(encoding="utf-8")


def output(chunks: list[Any]) -> str:
    """What went to the console."""
    return "".join(chunk["content"] for chunk in chunks if chunk.get("format") == "output")


def ran(interpreter: OpenInterpreter, language: str, code: str) -> str:
    """Run a block for real; what it printed."""
    return output(list(interpreter.computer.run(language, code, stream=True)))
