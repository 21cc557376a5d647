"""Small contents, one behind the other in one file: to make a file for each would cost more than all the rest."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

from interpreter.workspace.appending import append

NAME = "pack"
_HEAD = struct.Struct(">32sI")  # the hash of what follows, and how long it is


class Pack:
    """A file that is only added to; what a crash tore is cut off when it is read again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sizes: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._length = 0
        if path.exists() and path.stat().st_size:
            self._read()

    def __contains__(self, content: object) -> bool:
        return content in self._places

    def put(self, content: str, data: bytes) -> None:
        """Add a content under its hash; OSError if there is no room, and then nothing is added."""
        start = append(self.path, _HEAD.pack(bytes.fromhex(content), len(data)) + data)
        self._learn(content, start + _HEAD.size, len(data))

    def get(self, content: str) -> bytes:
        """The bytes again, as far as they are there."""
        with open(self.path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), self.sizes[content], self._places[content])

    def drop(self, keep: set[str]) -> None:
        """Forget all contents but these; the file is written anew if that is worth it."""
        for content in self._places.keys() - keep:
            del self._places[content], self.sizes[content]
        if sum(self.sizes.values()) * 2 < self._length:
            self._rewrite()

    def _rewrite(self) -> None:
        passing = self.path.with_name(f"{NAME}.new")
        passing.unlink(missing_ok=True)
        new = Pack(passing)
        for content in self._places:
            new.put(content, self.get(content))
        if self._places:
            passing.rename(self.path)
        else:
            self.path.unlink(missing_ok=True)
        self.sizes, self._places, self._length = new.sizes, new._places, new._length

    def _read(self) -> None:
        with open(self.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            while self._length + _HEAD.size <= len(data):
                digest, size = _HEAD.unpack_from(data, self._length)
                start = self._length + _HEAD.size
                if start + size > len(data) or not any(digest):  # torn, or never written before the machine went down
                    break
                self._learn(digest.hex(), start, size)
            whole = len(data)
        if self._length < whole:
            os.truncate(self.path, self._length)

    def _learn(self, content: str, start: int, size: int) -> None:
        self.sizes[content], self._places[content], self._length = size, start, start + size
