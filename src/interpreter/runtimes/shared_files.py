"""Files in a session's folder, which its code can write to: no link is followed, nothing waits, nothing is endless."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MOST = 64 * 1024 * 1024  # bytes of a file that are read


def write(path: Path, data: bytes) -> None:
    """A new file, in the place of whatever has its name."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def read(path: Path) -> bytes:
    """What is in a plain file; FileNotFoundError for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise FileNotFoundError(str(path)) from error
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(str(path))
        return file.read(MOST)
