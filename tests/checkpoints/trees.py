"""The contents of a folder tree for comparison, and git."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

Shape = dict[bytes, tuple[Any, ...]]

GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def shape(root: Path | str) -> Shape:
    """Everything under a folder: kind, mode, content, time."""
    base = os.fsencode(root)
    entries: Shape = {b"": (stat.S_IMODE(os.lstat(base).st_mode),)}
    for folder, folders, files in os.walk(base):
        for name in folders + files:
            path = os.path.join(folder, name)
            entries[os.path.relpath(path, base)] = _describe(path)
    return entries


def _describe(path: bytes) -> tuple[Any, ...]:
    facts = os.lstat(path)
    if stat.S_ISLNK(facts.st_mode):
        return "link", os.readlink(path), facts.st_mtime_ns
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISDIR(facts.st_mode):
        return "folder", mode
    if stat.S_ISREG(facts.st_mode):
        with open(path, "rb") as file:
            return "file", mode, file.read(), facts.st_mtime_ns
    return stat.S_IFMT(facts.st_mode), mode


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return its output; errors are ignored."""
    command = ["git", "-c", "init.defaultBranch=main", "-c", "gc.auto=0", *words]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **GIT}, capture_output=True, text=True, check=False)
    return done.stdout


def clear(path: Path) -> None:
    """Remove a file or folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()
