"""The sessions there are: newest first, by the beginning of an id, or the last one of a folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interpreter.errors import ConversationNotFoundError
from interpreter.session.journal import file, originals
from interpreter.session.journal.session import Facts, usage

SUMMARY = "summary.json"


@dataclass
class Summary:
    """One row of the list; `is_original` for a conversation file of Open Interpreter 0.4.3."""

    path: Path
    facts: Facts
    is_original: bool = False

    @property
    def id(self) -> str:
        return self.facts.id

    @property
    def title(self) -> str:
        return self.facts.title

    @property
    def age(self) -> float:
        """Seconds since it was last written."""
        return max(0.0, time.time() - self.facts.updated)


def listed(root: str | Path) -> list[Summary]:
    """All sessions and the original's conversations in a folder, the newest first."""
    found = list(_sessions(Path(root)))
    imported = {row.facts.imported_from for row in found}
    found += [
        Summary(path, facts, is_original=True)
        for path, facts in originals.listed(Path(root))
        if str(path) not in imported
    ]
    return sorted(found, key=lambda row: row.facts.updated, reverse=True)


def find(root: str | Path, beginning: str) -> Summary:
    """The session whose id begins so; or a file of the original, by its name or its path."""
    if beginning.endswith(".json") and os.path.isfile(beginning):
        path = Path(beginning).resolve()
        return Summary(path, Facts(path.name), is_original=True)
    rows = listed(root)
    exact = [row for row in rows if row.id == beginning]
    close = exact or [row for row in rows if row.id.startswith(beginning)]
    if len(close) == 1:
        return close[0]
    if not close:
        words = f"There is no conversation {beginning}. `interpreter --conversations` lists them."
    else:
        words = f"{beginning} could be " + " or ".join(f"{row.id} ({row.title})" for row in close[:5])
        words += ": write a little more of it."
    raise ConversationNotFoundError(words)


def last_in(root: str | Path, folder: str) -> Summary:
    """The newest session that was last used in a folder."""
    for row in listed(root):
        if row.facts.folder == folder:
            return row
    raise ConversationNotFoundError(
        f"There is no conversation in {folder} yet. `interpreter --conversations` lists those of all folders."
    )


def write_summary(folder: Path, facts: Facts, length: int) -> None:
    """What the journal says up to `length`, so that a list need not read all of it."""
    data = json.dumps({"length": length, **asdict(facts)})
    unfinished = folder / f"{SUMMARY}.new"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:
        out.write(data)
    unfinished.rename(folder / SUMMARY)


def _sessions(root: Path) -> Iterator[Summary]:
    try:
        folders = [entry for entry in os.scandir(root) if entry.is_dir()]
    except OSError:
        return
    for folder in folders:
        path = Path(folder.path)
        try:
            facts = _facts(path)
        except OSError:
            continue  # somebody else's folder
        if facts.created:
            facts.id = folder.name
            yield Summary(path, facts)


def _facts(path: Path) -> Facts:
    """The summary, and what has been written behind it since: a crash, or a turn that goes on."""
    size = (path / file.NAME).stat().st_size
    known = _summary(path)
    length, facts = 0, Facts()
    if known is not None and known[0] <= size:
        length, facts = known
    if length < size:
        for entry, _ in file.entries(path / file.NAME, length):
            if entry is not None:
                facts.learn(entry)
    return facts


def _summary(path: Path) -> tuple[int, Facts] | None:
    try:
        data: dict[str, Any] = json.loads((path / SUMMARY).read_bytes())
        length, used = data.pop("length"), usage(data.pop("usage"))
        return length, Facts(**data, usage=used)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # made anew from the journal
