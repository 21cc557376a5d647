"""The last bytes of a terminal's output, in a file that only its owner can read; it never grows."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from pathlib import Path

SIZE = 64 * 1024
_COUNT = struct.Struct("<Q")  # how many bytes were written in all


class Ring:
    """Written by the recorder, byte by byte round and round, without a system call."""

    def __init__(self) -> None:
        self.path = _new_file()
        with open(self.path, "r+b") as file:
            file.truncate(_COUNT.size + SIZE)
            self._memory = mmap.mmap(file.fileno(), _COUNT.size + SIZE)
        self._written = 0

    def add(self, data: bytes) -> None:
        self._written += len(data)
        data = data[-SIZE:]
        at = (self._written - len(data)) % SIZE
        first = data[: SIZE - at]
        start = _COUNT.size + at
        self._memory[start : start + len(first)] = first
        rest = data[len(first) :]
        self._memory[_COUNT.size : _COUNT.size + len(rest)] = rest
        _COUNT.pack_into(self._memory, 0, self._written)

    def remove(self) -> None:
        self._memory.close()
        Path(self.path).unlink(missing_ok=True)


def read_ring(path: str) -> bytes:
    """What was written last, oldest byte first; nothing if the file is not there, not ours, or none of these."""
    try:
        if os.stat(path).st_uid != os.getuid():
            return b""
        data = Path(path).read_bytes()
    except OSError:
        return b""
    if len(data) != _COUNT.size + SIZE:
        return b""
    (written,) = _COUNT.unpack_from(data)
    ring = data[_COUNT.size :]
    at = written % SIZE
    return ring[:written] if written < SIZE else ring[at:] + ring[:at]


def _new_file() -> str:
    """In memory where the system has a place for that; readable by nobody else."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = runtime if runtime and os.access(runtime, os.W_OK) else None
    descriptor, path = tempfile.mkstemp(prefix="wtf-", dir=folder)  # with mode 0600
    os.close(descriptor)
    return path
