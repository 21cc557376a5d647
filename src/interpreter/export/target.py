"""Where an export goes: a name from the conversation, and never silently over something else."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from interpreter.errors import ExportError
from interpreter.session.journal.entries import Entry, Said
from interpreter.sigint import Hold

_NAME_LENGTH = 40
_TITLE_LENGTH = 80


def title_of(entries: Sequence[Entry]) -> str:
    """What the conversation is about: the first line that the user said."""
    said = (entry.text for entry in entries if isinstance(entry, Said) and entry.role == "user")
    line = next((line.strip() for text in said for line in text.splitlines() if line.strip()), "Conversation")
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1].rstrip() + "…"


def file_name(title: str) -> str:
    """A title as a name that every file system takes."""
    words = re.findall(r"[^\W_]+", title.lower())
    name = ""
    for word in words:
        if name and len(name) + 1 + len(word) > _NAME_LENGTH:
            break
        name = f"{name}-{word}" if name else word[:_NAME_LENGTH]
    return name or "conversation"


def choose_path(asked: str, folder: str, title: str, suffix: str, force: bool = False) -> Path:
    """Where to write; a name of our own choosing gets a number if it is taken, a given one is refused."""
    base = Path(folder)
    path = base / Path(asked).expanduser() if asked else base / (file_name(title) + suffix)
    if asked and (path.is_dir() or asked.endswith(("/", os.sep))):
        path, asked = path / (file_name(title) + suffix), ""
    if asked and not path.suffix:
        path = path.with_suffix(suffix)
    if force or not taken(path):
        return path
    if asked:
        raise ExportError(f"{path} exists already: choose another name, or add --force to replace it.")
    numbered = (path.with_name(f"{path.stem}-{number}{suffix}") for number in itertools.count(2))
    return next(free for free in numbered if not taken(free))


def taken(path: Path) -> bool:
    return os.path.lexists(path) or (path.suffix == ".md" and os.path.lexists(pictures_folder(path)))


def pictures_folder(path: Path) -> Path:
    """Where the pictures of a document go that cannot hold them."""
    return path.with_name(f"{path.stem}_files")


def write(path: Path, text: str, force: bool = False, pictures: Mapping[str, bytes] | None = None) -> None:
    """Write the document whole or not at all, and its pictures beside it."""
    try:
        with Hold():
            path.parent.mkdir(parents=True, exist_ok=True)
            if pictures:
                pictures_folder(path).mkdir(exist_ok=True)
            for name, data in (pictures or {}).items():
                (pictures_folder(path) / name).write_bytes(data)
            _replace(path, text) if force else _create(path, text)
    except OSError as error:
        raise ExportError(f"Could not write {path}: {error.strerror}.") from error


def _create(path: Path, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError as error:
        raise ExportError(f"{path} exists already: add --force to replace it.") from error


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
