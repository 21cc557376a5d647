"""What is large, stored once under the hash of its bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interpreter.messages import Message

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
