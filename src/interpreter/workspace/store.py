"""File contents, each stored once under the hash of its bytes, and never as a hard link to a live file."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import secrets
import shutil
import struct
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from interpreter.errors import UndoError
from interpreter.host.files import write_all
from interpreter.workspace.tree import Item, Key, key_of

CONTENTS = "images"  # the subfolder with the contents, in a record's folder
PACK = "pack"
_PACK_HEAD = struct.Struct(">32sI")  # the hash of the content that follows, and its length
_PACKED_SIZE = 64 * 1024  # contents up to this size go into the pack
_CHUNK = 1024 * 1024
_FICLONE = 0x40049409  # Linux: share the blocks of another file until one of the two is written


class ContentStore:
    """A folder of stored contents that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _sizes(self) -> dict[str, int]:
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.scandir(self.folder) as listing:
            sizes = {entry.name: entry.stat(follow_symlinks=False).st_size for entry in listing}
        sizes.pop(PACK, None)
        return sizes | {content: size for content, (_, size) in self._pack.places.items()}

    @cached_property
    def _pack(self) -> _Pack:
        return _Pack(self.folder / PACK)

    @property
    def hashes(self) -> set[str]:
        return set(self._sizes)

    @property
    def stored_bytes(self) -> int:
        return sum(self._sizes.values())

    def follow(self, folder: Path) -> None:
        """Continue in another folder, to which the contents have been moved."""
        self.folder = folder
        self._pack.path = folder / PACK

    def holds(self, item: Item) -> bool:
        return item.content in self._sizes if item.kind == "file" else item.restorable

    def size(self, content: str) -> int:
        return self._sizes.get(content, 0)

    def read(self, content: str) -> bytes:
        return self._pack.get(content) if content in self._pack.places else (self.folder / content).read_bytes()

    def take(self, file: BinaryIO) -> tuple[str, Key, int]:
        """Store the content of an open file as it is now. Raises OSError if it can't be read or there is no room.

        Returns its hash, its `stat` result while it was read, and how many bytes are new.
        """
        key: Key = key_of(os.fstat(file.fileno()))
        for _ in range(3):
            content, stored = self._take(file, key[1])
            before, key = key, key_of(os.fstat(file.fileno()))
            if before == key:
                break
        # If the file is being written all the time, this is its content at some moment.
        return content, before, stored

    def write_to(self, content: str, target: BinaryIO) -> None:
        """Write a content into an empty file, and check that it is the right one."""
        is_packed = content in self._pack.places
        place = f"{content} in {self._pack.path}" if is_packed else os.path.join(self.folder, content)
        with io.BytesIO(self._pack.get(content)) if is_packed else open(place, "rb") as source:
            if (is_packed or not clone(source, target)) and copy(source, target) != content:
                raise UndoError(f"The stored copy {place} is damaged.")

    def drop(self, keep: set[str]) -> None:
        for content in self._sizes.keys() - keep:
            if content not in self._pack.places:
                (self.folder / content).unlink(missing_ok=True)
            del self._sizes[content]
        self._pack.drop(keep)

    def _take(self, file: BinaryIO, size: int) -> tuple[str, int]:
        data = os.pread(file.fileno(), size + 1, 0) if size <= _CHUNK else b""
        content, is_whole = hashlib.sha256(data).hexdigest(), len(data) == size
        if is_whole and content in self._sizes:
            return content, 0
        if not self.folder.is_dir():  # nothing is stored yet, or another program removed it
            for name in ("_sizes", "_pack"):
                self.__dict__.pop(name, None)
            self._sizes  # noqa: B018 - makes the folder
        if is_whole and size <= _PACKED_SIZE:
            self._pack.put(content, data)
        else:
            path = self.folder / f"unfinished.{secrets.token_hex(8)}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(descriptor, "w+b", buffering=0) as target:
                    if is_whole:
                        write_all(descriptor, data)
                    else:
                        file.seek(0)
                        content = hash_of(target) if clone(file, target) else copy(file, target)
                        size = os.fstat(descriptor).st_size
                if content in self._sizes:
                    path.unlink()
                    return content, 0
                os.rename(path, self.folder / content)  # complete or absent, whenever the process dies
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        self._sizes[content] = size
        return content, size


class _Pack:
    """Small contents, one after the other in one file, because a file for each would cost more than all the rest.

    The file is only appended to. An entry that a crash cut short is removed when the file is read again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, tuple[int, int]] = {}  # the position and length of each content in the file
        self._length = 0
        if not path.exists() or not path.stat().st_size:
            return
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            while self._length + _PACK_HEAD.size <= len(data):
                digest, size = _PACK_HEAD.unpack_from(data, self._length)
                start = self._length + _PACK_HEAD.size
                if start + size > len(data) or not any(digest):  # cut short, or lost when the machine crashed
                    break
                self.places[digest.hex()], self._length = (start, size), start + size
            whole = len(data)
        if self._length < whole:
            os.truncate(path, self._length)

    def put(self, content: str, data: bytes) -> None:
        """Add a content under its hash. Raises OSError, and adds nothing, if there is no room."""
        start = append(self.path, _PACK_HEAD.pack(bytes.fromhex(content), len(data)) + data) + _PACK_HEAD.size
        self.places[content], self._length = (start, len(data)), start + len(data)

    def get(self, content: str) -> bytes:
        """Return the stored bytes; fewer if the file is damaged."""
        start, size = self.places[content]
        with open(self.path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, start)

    def drop(self, keep: set[str]) -> None:
        """Remove all contents but these; the file is rewritten if that saves half of it."""
        self.places = {content: place for content, place in self.places.items() if content in keep}
        if sum(size for _, size in self.places.values()) * 2 >= self._length:
            return
        path = self.path.with_name(f"{PACK}.new")
        path.unlink(missing_ok=True)
        new = _Pack(path)
        for content in self.places:
            new.put(content, self.get(content))
        if self.places:
            path.rename(self.path)
        else:
            self.path.unlink(missing_ok=True)
        self.places, self._length = new.places, new._length


def append(path: Path, data: bytes) -> int:
    """Append all of the data or nothing, and return where it begins. Raises OSError if there is no room."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        start = os.fstat(descriptor).st_size
        try:
            write_all(descriptor, data)
        except OSError:
            os.ftruncate(descriptor, start)
            raise
    finally:
        os.close(descriptor)
    return start


def clone(source: BinaryIO, target: BinaryIO) -> bool:
    """Let the target share the source's disk blocks. False if the file system can't."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True


def copy(source: BinaryIO, target: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        write_all(target.fileno(), chunk)
    return digest.hexdigest()


def hash_of(file: BinaryIO) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def copy_store(old: Path, new: Path, keep: bool) -> None:
    """Copy a record's folder, or move it unless `keep`. The new one is complete or does not exist."""
    new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if old.exists():
        temporary = new.with_name(f"{new.name}.new")
        shutil.rmtree(temporary, ignore_errors=True)
        if keep:
            shutil.copytree(old, temporary, symlinks=True, copy_function=_link_or_copy)
        else:
            shutil.move(old, temporary)
        temporary.rename(new)


def _link_or_copy(source: str, target: str) -> None:
    """Link large contents, which are never written again, so two stores can share them; copy the rest."""
    folder, name = os.path.split(source)
    if os.path.basename(folder) == CONTENTS and name != PACK:
        with suppress(OSError):  # on another file system
            os.link(source, target)
            return
    shutil.copyfile(source, target)
    os.chmod(target, 0o600)
