"""Adds to a file: all of it, or nothing."""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import stat
import struct
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple

from interpreter.errors import UndoError
from interpreter.workspace.tree import Key, key_of


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


PACK = "pack"
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
        passing = self.path.with_name(f"{PACK}.new")
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


_FICLONE = 0x40049409  # Linux: share the blocks of another file until one of the two is written
_PIECE = 1024 * 1024
_SMALL = 64 * 1024
_LOOKING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in its place must not hold us


class Taken(NamedTuple):
    """A content that is stored now: its hash, what `stat` said while it was read, and how many bytes are new."""

    content: str
    key: Key
    stored: int


class Images:
    """The folder of stored contents; only its owner can read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bytes = 0
        """How large all contents are together."""

    @cached_property
    def _known(self) -> dict[str, int]:
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.scandir(self.folder) as listing:
            sizes = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in listing}
        sizes.pop(PACK, None)
        known = sizes | self._pack.sizes
        self.bytes = sum(known.values())
        return known

    @cached_property
    def _pack(self) -> Pack:
        return Pack(self.folder / PACK)

    @property
    def contents(self) -> set[str]:
        """The hashes of all that is stored."""
        return set(self._known)

    def move(self, folder: Path) -> None:
        """They are in another folder now."""
        self.folder = folder
        self._pack.path = folder / PACK

    def __contains__(self, content: object) -> bool:
        return content in self._known

    def read(self, content: str) -> bytes:
        return self._pack.get(content) if content in self._pack else self._path(content).read_bytes()

    def take(self, path: str) -> Taken:
        """Store the content of a file as it is now; OSError if it cannot be read or there is no room."""
        descriptor = os.open(path, _LOOKING)
        try:
            key: Key = key_of(os.fstat(descriptor))
            for _ in range(3):
                if not stat.S_ISREG(key[0]):
                    raise FileNotFoundError(path)
                content, stored = self._take(descriptor, key[1])
                before, key = key, key_of(os.fstat(descriptor))
                if before == key:
                    break
        finally:
            os.close(descriptor)
        # A file that is written all the time: what we have is what it held at some moment.
        return Taken(content, before, stored)

    def put(self, data: bytes) -> str:
        """Store some bytes."""
        content = hashlib.sha256(data).hexdigest()
        if content in self._known:
            return content
        if len(data) <= _SMALL:
            self._make_sure()
            self._pack.put(content, data)
            self._learn(content, len(data))
        else:
            with self._unfinished() as (name, file):
                _write(file, data)
            self._place(name, content, len(data))
        return content

    def size(self, content: str) -> int:
        """How large a content is; 0 if it is not stored."""
        return self._known.get(content, 0)

    def write_to(self, content: str, target: BinaryIO) -> None:
        """Write a content into an empty file, and make sure that it is the right one."""
        if content in self._pack:
            data = self._pack.get(content)
            _write(target, data)
            if hashlib.sha256(data).hexdigest() != content:
                raise UndoError(f"The stored copy {content} in {self._pack.path} is damaged.")
            return
        with open(self._path(content), "rb") as source:
            if clone(source, target):
                return
            if copy(source, target) != content:
                raise UndoError(f"The stored copy {self._path(content)} is damaged.")

    def drop(self, keep: set[str]) -> None:
        """Forget all contents but these."""
        for content in self._known.keys() - keep:
            if content not in self._pack:
                self._path(content).unlink(missing_ok=True)
            self.bytes -= self._known.pop(content)
        self._pack.drop(keep)

    def _path(self, content: str) -> Path:
        return self.folder / content

    def _take(self, descriptor: int, size: int) -> tuple[str, int]:
        if size <= _PIECE:
            data = os.pread(descriptor, size + 1, 0)
            if len(data) == size:
                known = len(self._known)
                content = self.put(data)
                return content, size if len(self._known) > known else 0
        with open(descriptor, "rb", buffering=0, closefd=False) as file, self._unfinished() as (name, target):
            file.seek(0)
            content = _hash(target) if clone(file, target) else copy(file, target)
            size = os.fstat(target.fileno()).st_size
        if content in self._known:
            (self.folder / name).unlink()
            return content, 0
        self._place(name, content, size)
        return content, size

    def _unfinished(self) -> _Unfinished:
        self._make_sure()
        return _Unfinished(self.folder)

    def _make_sure(self) -> None:
        """Have a folder: there is none yet, or somebody has cleared it away."""
        if not self.folder.is_dir():
            for name in ("_known", "_pack"):
                self.__dict__.pop(name, None)
            self._known  # noqa: B018 - makes the folder

    def _place(self, name: str, content: str, size: int) -> None:
        """Whole under its final name or not there at all, whenever the process dies."""
        os.rename(self.folder / name, self.folder / content)
        self._learn(content, size)

    def _learn(self, content: str, size: int) -> None:
        self._known[content] = size
        self.bytes += size


class _Unfinished:
    """A new file under a passing name; gone again if it cannot be written."""

    def __init__(self, folder: Path) -> None:
        self._name = f"unfinished.{secrets.token_hex(8)}"
        self._path = folder / self._name

    def __enter__(self) -> tuple[str, BinaryIO]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = open(descriptor, "w+b", buffering=0)
        return self._name, self._file

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._file.close()
        if error is not None:
            self._path.unlink(missing_ok=True)


def clone(source: BinaryIO, target: BinaryIO) -> bool:
    """Let the target share the source's blocks, where the file system can."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True


def copy(source: BinaryIO, target: BinaryIO) -> str:
    """Copy, and give the hash of what was copied."""
    digest = hashlib.sha256()
    for piece in _pieces(source):
        digest.update(piece)
        _write(target, piece)
    return digest.hexdigest()


def _write(target: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[target.write(view) :]


def _hash(file: BinaryIO) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    for piece in _pieces(file):
        digest.update(piece)
    return digest.hexdigest()


def hash_of(path: str) -> str:
    """The hash of a file as it is now, which stores nothing."""
    with open(os.open(path, _LOOKING), "rb", buffering=0) as file:
        return _hash(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
