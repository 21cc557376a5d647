"""Adds to a file: all of it, or nothing."""

from __future__ import annotations

import os
from pathlib import Path


def append(path: Path, data: bytes) -> int:
    """Where in the file it begins; OSError if there is no room, and then the file is as it was."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        start = os.fstat(descriptor).st_size
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            os.ftruncate(descriptor, start)
            raise
    finally:
        os.close(descriptor)
    return start
