"""The file of a journal: lines of JSON that are only ever added to, by one process at a time."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jiter import from_json

from interpreter.errors import ConversationFileError, ConversationInUseError
from interpreter.messages import Message

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


LARGE = 8 * 1024
"""Characters from which on a text is stored here and not in the journal."""

Reference = dict[str, Any]


class Blobs:
    """The folder of large things of one session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, text: str) -> Reference:
        """Store a text; what is base64 is stored as the bytes it stands for, so that people can look at it."""
        data = _decoded(text)
        encoding = "base64" if data is not None else "utf-8"
        if data is None:
            data = text.encode("utf-8", "surrogatepass")
        return {"sha256": self._store(data), "encoding": encoding, "bytes": len(data)}

    def put_file(self, path: str) -> Reference | None:
        """Store a copy of a file, None if it is gone."""
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as file:
                while piece := file.read(1024 * 1024):
                    digest.update(piece)
                size = file.tell()
        except OSError:
            return None
        name = digest.hexdigest()
        self._place(name, lambda unfinished: shutil.copyfile(path, unfinished))
        return {"sha256": name, "encoding": "utf-8", "bytes": size}

    def get(self, reference: Reference) -> str:
        """The text again, exactly as it was; OSError if it is not there."""
        data = (self.folder / str(reference["sha256"])).read_bytes()
        if reference["encoding"] == "base64":
            return base64.b64encode(data).decode("ascii")
        return data.decode("utf-8", "surrogatepass")

    def _store(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self._place(name, lambda unfinished: _write(unfinished, data))
        return name

    def _place(self, name: str, write: Callable[[Path], object]) -> None:
        """Have a file written under its final name: whole or not at all, whenever the process dies."""
        path, unfinished = self.folder / name, self.folder / f"{name}.{os.getpid()}"
        if path.exists():
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            write(unfinished)
            unfinished.rename(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

    # -- messages ------------------------------------------------------------------------------------------------

    def packed(self, message: Message) -> dict[str, Any]:
        """A message as the journal has it: a large content is a reference."""
        content = message.get("content")
        if not isinstance(content, str) or len(content) < LARGE:
            return dict(message)
        return {**{key: value for key, value in message.items() if key != "content"}, "blob": self.put(content)}

    def unpacked(self, packed: dict[str, Any]) -> Message:
        """The message as it was."""
        if "blob" not in packed:
            return packed  # type: ignore[return-value]
        try:
            content = self.get(packed["blob"])
        except OSError:
            content = "[The journal's copy of this is missing.]"
        return {**{key: value for key, value in packed.items() if key != "blob"}, "content": content}  # type: ignore[typeddict-item]


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)


def _decoded(text: str) -> bytes | None:
    if len(text) % 4 or " " in text[:100]:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


BLOBS = "blobs"


def new_folder(root: Path) -> Path:
    """A folder with a name that no session has."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        folder = root / secrets.token_hex(4)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder


def copied(session: Path, root: Path) -> Path:
    """A copy of a session as it is now; large things are shared."""
    folder = new_folder(root)
    shutil.copyfile(session / NAME, folder / NAME)
    (folder / NAME).chmod(0o600)
    if (session / BLOBS).exists():
        shutil.copytree(session / BLOBS, folder / BLOBS, copy_function=_link)
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@contextmanager
def writing(where: Path) -> Iterator[None]:
    """What the system refuses is an error of ours."""
    try:
        yield
    except OSError as error:
        raise ConversationFileError(f"{where} cannot be written: {error.strerror}.") from error
