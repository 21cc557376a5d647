"""An interpreter in its own workspace for previews, with a check for leftovers."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.preview.overlay import PREFIX

TEMPORARY_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir())


def why_no_views() -> str | None:
    """Why this machine can't make copy-on-write views, or None if it can."""
    flags = ["--mount"] if os.getuid() == 0 else ["--user", "--mount"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode:
        return "this machine allows no mount namespaces"
    known = Path("/proc/filesystems").read_text(encoding="utf-8")
    return None if "overlay" in known else "this kernel has no overlay file system"


needs_views = pytest.mark.skipif(why_no_views() is not None, reason=str(why_no_views()))


def layers(pid: int | None = None) -> set[str]:
    """List the temporary folders that hold a process's views."""
    start = f"{PREFIX}{pid or os.getpid()}-"
    return {name for folder in set(TEMPORARY_FOLDERS) for name in os.listdir(folder) if name.startswith(start)}


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
    """Make an interpreter that must leave no process, mount or layer behind."""
    before = layers()
    made = OpenInterpreter(workspace=str(workspace))
    yield made
    made.computer.terminate()
    assert layers() <= before
    assert PREFIX not in Path("/proc/mounts").read_text(encoding="utf-8")


def output(chunks: list[Any]) -> str:
    """Join the console output."""
    return "".join(chunk["content"] for chunk in chunks if chunk.get("format") == "output")


def ran(interpreter: OpenInterpreter, language: str, code: str) -> str:
    """Run a block without a preview, and return its output."""
    return output(list(interpreter.computer.run(language, code, stream=True)))
