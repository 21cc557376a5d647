"""A copy of a folder to try a program in, and what the program changed there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from interpreter.errors import ExportError

MOST_BYTES = 500_000_000
MOST_FILES = 10_000
_NOT_COPIED = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints"})

Stamps = dict[str, tuple[int, int]]


def files_in(folder: Path) -> Iterator[Path]:
    """The regular files below a folder, without version control, environments and caches."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_COPIED)
        for name in sorted(names):
            path = Path(base) / name
            if path.is_file():
                yield path


def copy_folder(source: Path, target: Path, leave_out: Iterable[str] = ()) -> None:
    """Copy the files, except for those to leave out; a folder that is too large is refused before the first one."""
    missing, total = set(leave_out), 0
    paths = [path for path in files_in(source) if str(path.relative_to(source)) not in missing]
    for number, path in enumerate(paths, 1):
        total += path.stat().st_size
        if number > MOST_FILES or total > MOST_BYTES:
            raise ExportError(
                f"{source} is too large to try the program in a copy of it (more than {MOST_FILES:,} files or "
                f"{MOST_BYTES // 1_000_000} MB): run the program in a folder of its own."
            )
    for path in paths:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def stamps(folder: Path) -> Stamps:
    """When each file was last written, and how long it is."""
    found = {}
    for path in files_in(folder):
        facts = path.stat()
        found[str(path.relative_to(folder))] = (facts.st_mtime_ns, facts.st_size)
    return found


def written_since(folder: Path, before: Stamps) -> list[str]:
    return sorted(name for name, stamp in stamps(folder).items() if before.get(name) != stamp)


def changed_after(folder: Path, moment: float) -> list[str]:
    """Files that were written after this moment."""
    return sorted(name for name, (when, _) in stamps(folder).items() if when >= moment * 1e9)
