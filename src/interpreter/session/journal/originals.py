"""Conversation files of Open Interpreter 0.4.3: a JSON list of messages, named by first words and date."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from interpreter.errors import ConversationFileError
from interpreter.messages import Message
from interpreter.session.journal.session import Facts

_DATE = "%B_%d_%Y_%H-%M-%S"


def listed(root: Path) -> Iterator[tuple[Path, Facts]]:
    """The files in a folder that are conversations by their name."""
    try:
        found = [entry for entry in os.scandir(root) if entry.name.endswith(".json") and entry.is_file()]
    except OSError:
        return
    for entry in found:
        words, _, date = entry.name.removesuffix(".json").rpartition("__")
        changed = entry.stat().st_mtime
        title = words.replace("_", " ").strip() or entry.name
        yield Path(entry.path), Facts(entry.name, title, created=_created(date, changed), updated=changed)


def read(path: Path) -> list[Message]:
    """The messages of such a file; ConversationFileError if it is none."""
    try:
        messages: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise ConversationFileError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError:
        messages = None
    if not isinstance(messages, list) or not all(isinstance(item, dict) and "role" in item for item in messages):
        raise ConversationFileError(f"{path} is not a conversation: it must hold a JSON list of messages.")
    return [_completed(item) for item in messages]


def write(path: Path, messages: Sequence[Message]) -> None:
    """Save a conversation in that format: the whole file, or the one before stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(messages, file, ensure_ascii=False, default=str)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _completed(message: dict[str, Any]) -> Message:
    return {"type": "message", "content": "", **message}  # type: ignore[typeddict-item]


def _created(date: str, otherwise: float) -> float:
    try:
        return datetime.strptime(date, _DATE).timestamp()
    except ValueError:
        return otherwise
