"""Where the record of files is kept: with the session's journal, or as long as there is none, in a passing folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.safety import FileRecord

FOLDER = "files"
_PASSING = "interpreter-undo-"


class Store:
    """Gives the record of files of one interpreter, which follows its journal and its workspace."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._record: FileRecord | None = None
        self._folder: Path | None = None
        self._root: str | None = None
        self._ending: weakref.finalize[..., Store] | None = None

    def record(self) -> FileRecord | None:
        """The record, opened or moved as need be; None where file undo is switched off."""
        if not self._interpreter.undo_files:
            return None
        root = os.path.realpath(str(self._interpreter.workspace))
        folder = self._wanted(root)
        if self._record is None or folder != self._folder or root != self._root:
            self._open(root, folder)
        return self._record

    def close(self) -> None:
        """The session ends: keep what undo needs, and no more."""
        if self._ending is not None:
            self._ending()
        self._record = self._folder = self._root = self._ending = None

    def _wanted(self, root: str) -> Path:
        path = self._interpreter.journal.path
        if path is not None:
            return path / FOLDER / hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
        if self._folder is not None and _PASSING in self._folder.name and self._root == root:
            return self._folder
        sweep()
        return Path(tempfile.mkdtemp(prefix=f"{_PASSING}{os.getpid()}-"))

    def _open(self, root: str, folder: Path) -> None:
        from interpreter.safety import FileRecord, Limits

        if self._record is not None and self._folder is not None and root == self._root and not folder.exists():
            self._take_along(self._folder, folder)
        elif self._ending is not None:
            self._ending()
        interpreter = self._interpreter
        limits = Limits(interpreter.undo_max_file_bytes, interpreter.undo_max_bytes, interpreter.undo_max_files)
        exclude = (Path(interpreter.get_oi_dir()), interpreter.journal.root)
        record = FileRecord(root, folder, limits, exclude)
        self._record, self._folder, self._root = record, folder, root
        if self._ending is not None:
            self._ending.detach()
        self._ending = weakref.finalize(self, _end, record, folder)

    def _take_along(self, old: Path, new: Path) -> None:
        """What was recorded before there was a journal moves to it; a branch gets a copy."""
        new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _PASSING in old.name:
            shutil.move(old, new)
        else:
            shutil.copytree(old, new, symlinks=True)


def _end(record: FileRecord, folder: Path) -> None:
    if _PASSING in folder.name:
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.exists():
        record.trim()


def sweep() -> None:
    """Remove the passing folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PASSING}*"):
        pid = folder.name.removeprefix(_PASSING).partition("-")[0]
        if pid.isdigit() and not _is_running(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(pid: int) -> bool:
    if os.name == "nt":
        return True  # signal 0 is no question there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True
