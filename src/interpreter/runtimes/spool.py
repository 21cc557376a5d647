"""The whole output of a block: in memory while it is short, in a file when it is long."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

IN_MEMORY = 256 * 1024
KEPT_BYTES = 2 * 1024**3  # all kept outputs together; the oldest go first


class Spool:
    """Text that only grows, held in bounded memory; a reader thread writes, any thread reads."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._where = folder  # asked when there is something to put there
        self._lock = threading.Lock()
        self._pieces: list[str] = []
        self._held = 0
        self._file: IO[str] | None = None
        self._path: Path | None = None
        self._kept = self._closed = False
        self.length = 0

    def write(self, text: str) -> None:
        with self._lock:
            if self._closed:
                return  # nobody can ask for it any more
            self.length += len(text)
            if self._file is None:
                self._pieces.append(text)
                self._held += len(text)
                if self._held > IN_MEMORY:
                    self._open_file()
            else:
                self._file.write(text)
                if self._kept:  # somebody knows the path and may be reading
                    self._file.flush()

    def read(self) -> str:
        """Everything so far."""
        with self._lock:
            if self._file is None or self._path is None:
                return "".join(self._pieces)
            if not self._closed:
                self._file.flush()
            return self._path.read_text("utf-8") if self._path.exists() else ""

    def keep(self) -> str:
        """Put everything so far into a file and give its path."""
        with self._lock:
            if self._file is None:
                self._open_file()
            assert self._file is not None
            self._kept = True
            if not self._closed:
                self._file.flush()
            return str(self._path)

    def close(self) -> None:
        """Let go of it; a file that nobody was told of goes with it."""
        with self._lock:
            self._closed = True
            if self._file is None or self._path is None:
                return
            self._file.close()
            if not self._kept:
                self._path.unlink(missing_ok=True)

    def _open_file(self) -> None:
        folder = self._where()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        drop_oldest(folder, KEPT_BYTES)
        descriptor, name = tempfile.mkstemp(".txt", "output-", folder)
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="")
        self._file.writelines(self._pieces)
        self._pieces = []


def drop_oldest(folder: Path, allowed: int) -> None:
    """Delete the oldest files of a folder until the rest fits."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("output-*"))
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= allowed:
            return
        path.unlink(missing_ok=True)
        total -= size


def outputs_folder() -> Path:
    """Where long outputs are kept."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("open-interpreter")) / "outputs"
