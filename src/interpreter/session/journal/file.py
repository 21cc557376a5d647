"""The file of a journal: lines of JSON that are only ever added to, by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jiter import from_json

from interpreter.errors import ConversationInUseError

NAME = "journal.jsonl"

Entry = dict[str, Any]


class JournalFile:
    """A journal that is open for writing and locked.

    What `append` has written survives the death of this process; after `fsync` it survives that of the machine.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._descriptor)
            self.length = os.fstat(self._descriptor).st_size
        except BaseException:
            os.close(self._descriptor)
            raise

    def cut(self, length: int) -> None:
        """Take off what is behind `length`: a line torn by a crash."""
        if length < self.length:
            os.ftruncate(self._descriptor, length)
            self.length = length

    def append(self, *entries: Entry) -> None:
        """Write entries, all of them or none; OSError if that is not possible."""
        data = memoryview(b"".join(map(line, entries)))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.length)
            raise
        self.length += written

    def fsync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let others write it."""
        os.close(self._descriptor)


def line(entry: Entry) -> bytes:
    """An entry as it stands in the file."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        return json.dumps(entry, separators=(",", ":"), default=str).encode() + b"\n"


def entries(path: Path, offset: int = 0) -> Iterator[tuple[Entry | None, int]]:
    """Each entry, None for a line that cannot be read, with the place in the file behind it."""
    with open(path, "rb") as file:
        file.seek(offset)
        for text in file:
            offset += len(text)
            try:
                entry = from_json(text) if text[-1:] == b"\n" else None
            except ValueError:
                entry = _parsed(text)
            yield entry if isinstance(entry, dict) and "event" in entry else None, offset


def _parsed(text: bytes) -> Any:
    """The slow way, which knows half a surrogate pair."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        words = "Another interpreter has this conversation open. Leave it there first, or take up another one."
        raise ConversationInUseError(words) from None
