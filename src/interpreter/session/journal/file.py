"""The files of a journal: lines of JSON that one process at a time appends to, and large contents beside them."""

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jiter import from_json

from interpreter.config.homes import make_folder
from interpreter.errors import ConversationFileError, ConversationInUseError
from interpreter.messages import Message

NAME = "journal.jsonl"
BLOBS = "blobs"
LARGE = 8 * 1024
"""A text with so many characters is a blob, and not in the journal itself."""

JournalEntry = dict[str, Any]
Reference = dict[str, Any]


class JournalFile:
    """A journal that is open for writing and locked.

    What `append` has written survives the death of this process; after `fsync` it survives that of the machine.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.length = os.fstat(self._descriptor).st_size
        except BaseException as error:
            os.close(self._descriptor)
            if isinstance(error, BlockingIOError):
                words = "Another interpreter has this conversation open. Leave it there first, or take up another one."
                raise ConversationInUseError(words) from None
            raise

    def cut(self, length: int) -> None:
        """Remove what is behind `length`: a line torn by a crash."""
        if length < self.length:
            os.ftruncate(self._descriptor, length)
            self.length = length

    def append(self, entry: JournalEntry) -> None:
        """Write an entry, all of it or nothing; OSError if that is not possible."""
        data = memoryview(line(entry))
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


def line(entry: JournalEntry) -> bytes:
    """An entry as it is in the file."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        return json.dumps(entry, separators=(",", ":"), default=str).encode() + b"\n"


def entries(folder: Path, offset: int = 0) -> Iterator[tuple[JournalEntry | None, int]]:
    """Each entry of a journal, None for a line that cannot be read, with the place in the file behind it."""
    with open(folder / NAME, "rb") as file:
        file.seek(offset)
        for text in file:
            offset += len(text)
            try:
                entry = from_json(text) if text[-1:] == b"\n" else None
            except ValueError:
                try:
                    entry = json.loads(text)  # slower, but knows half a surrogate pair
                except ValueError:
                    entry = None
            yield entry if isinstance(entry, dict) and "event" in entry else None, offset


class Blobs:
    """The large contents of one session, stored once under the hash of their bytes."""

    def __init__(self, session: Path) -> None:
        self.folder = session / BLOBS

    def put(self, text: str) -> Reference:
        """Store a text; base64 is stored as the bytes it stands for, so that people can look at it."""
        data = _decode_base64(text)
        encoding = "base64" if data is not None else "utf-8"
        if data is None:
            data = text.encode("utf-8", "surrogatepass")
        name = hashlib.sha256(data).hexdigest()
        if not (self.folder / name).exists():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self.folder / name, data)
        return {"sha256": name, "encoding": encoding, "bytes": len(data)}

    def get(self, reference: Reference) -> str:
        """The text again, exactly as it was; OSError if it is not there."""
        data = (self.folder / str(reference["sha256"])).read_bytes()
        if reference["encoding"] == "base64":
            return base64.b64encode(data).decode("ascii")
        return data.decode("utf-8", "surrogatepass")

    # -- messages ------------------------------------------------------------------------------------------------

    def pack(self, message: Message) -> dict[str, Any]:
        """A message as the journal has it: a large content is a reference."""
        content = message.get("content")
        if not isinstance(content, str) or len(content) < LARGE:
            return dict(message)
        return {**{key: value for key, value in message.items() if key != "content"}, "blob": self.put(content)}

    def unpack(self, packed: dict[str, Any]) -> Message:
        """The message as it was."""
        if "blob" not in packed:
            return packed  # type: ignore[return-value]
        try:
            content = self.get(packed["blob"])
        except OSError:
            content = "[The journal's copy of this is missing.]"
        return {**{key: value for key, value in packed.items() if key != "blob"}, "content": content}  # type: ignore[typeddict-item]

    def grow(self, message: dict[str, Any], entry: JournalEntry) -> None:
        """Apply an entry `more` to the message that it continues."""
        if "keep" in entry:
            text = entry["text"] if "text" in entry else self.get(entry["blob"])
            message["content"] = message["content"][: entry["keep"]] + text
        message.update(entry.get("set", {}))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is whole, or as it was before, whenever the process dies."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _decode_base64(text: str) -> bytes | None:
    if len(text) % 4 or " " in text[:100]:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


# -- the folders of sessions -------------------------------------------------------------------------------------


def new_folder(root: Path) -> Path:
    """A folder with a name that no session has."""
    make_folder(root)
    while True:
        folder = root / secrets.token_hex(4)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder


def copy_session(session: Path, root: Path) -> Path:
    """A copy of a session as it is now; blobs are shared."""
    folder = new_folder(root)
    shutil.copyfile(session / NAME, folder / NAME)
    (folder / NAME).chmod(0o600)
    if (session / BLOBS).exists():
        shutil.copytree(session / BLOBS, folder / BLOBS, copy_function=_link_or_copy)
    return folder


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@contextlib.contextmanager
def writing(where: Path) -> Iterator[None]:
    """Turn what the system refuses into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise ConversationFileError(f"{where} cannot be written: {error.strerror}.") from error
