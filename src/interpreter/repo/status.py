"""The branch on the status line, with a star while something is not committed. No program runs for it."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from interpreter.errors import InterpreterError
from interpreter.host.files import Folder
from interpreter.repo.git import Repository

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

_MAX_INDEX_BYTES = 2_000_000  # about 20,000 files; of a larger repository only the branch is shown
_LONGEST = 0.03  # seconds
_MAX_READ_BYTES = 2_000_000  # of a file whose times have changed


def branch(interpreter: OpenInterpreter) -> str:
    """Return the branch, with `*` if files differ from those that are committed."""
    with suppress(InterpreterError, OSError, ValueError, struct.error):
        repository = Repository(interpreter.workspace)
        return f"{repository.branch}{'*' if is_dirty(repository) else ''}"
    return ""


def is_dirty(repository: Repository) -> bool:
    """Check whether a tracked file was changed or staged; False if that would take long to find out."""
    with Folder(repository.folder) as place:
        data = place.read_bytes("index", _MAX_INDEX_BYTES + 1)
    version, count = struct.unpack(">II", data[4:12])
    if len(data) > _MAX_INDEX_BYTES or data[:4] != b"DIRC" or version not in (2, 3):
        return False
    at, end_time = 12, time.monotonic() + _LONGEST
    with Folder(repository.root) as files:
        for _ in range(count):
            seconds, nanoseconds = struct.unpack(">II", data[at + 8 : at + 16])
            size, flags = struct.unpack(">I20xH", data[at + 36 : at + 62])
            start = at + (64 if version == 3 and flags & 0x4000 else 62)
            name = data[start : data.index(b"\0", start)]
            is_watched = not flags & 0x8000 and data[at + 26] >> 4 != 0xE  # no submodule
            facts = seconds, nanoseconds, size
            if is_watched and _differs(files, os.fsdecode(name), facts, data[at + 40 : at + 60]):
                return True
            at += (start - at + len(name) + 8) // 8 * 8
            if time.monotonic() > end_time:
                return False
    return _has_staged(data, at)


def _differs(files: Folder, name: str, known: tuple[int, int, int], object_name: bytes) -> bool:
    try:
        facts = files.stat(name)
    except OSError:
        return True
    if (*divmod(facts.st_mtime_ns, 10**9), facts.st_size & 0xFFFFFFFF) == known or stat.S_ISDIR(facts.st_mode):
        return False
    if facts.st_size > _MAX_READ_BYTES:
        return True
    content = os.fsencode(files.readlink(name)) if stat.S_ISLNK(facts.st_mode) else files.read_bytes(name)
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest() != object_name


def _has_staged(data: bytes, at: int) -> bool:
    """Check whether the index was changed since its tree was written, which a commit does."""
    while at + 8 < len(data) - 20:
        size = struct.unpack(">I", data[at + 4 : at + 8])[0]
        if data[at : at + 4] == b"TREE":
            return data[at + 8 : at + 11] == b"\0-1"
        at += 8 + size
    return False
