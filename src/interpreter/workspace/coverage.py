"""What file undo covers, and what it does not: known before a block runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """How much is copied at most; what is over a limit is not covered, and that is said."""

    file_bytes: int = 64 * MEGABYTE
    """A larger file is not covered."""
    total_bytes: int = 512 * MEGABYTE
    """With more than this at the start, file undo is off; files that come later and do not fit are not covered."""
    files: int = 50_000
    """With more than this at the start, file undo is off."""
    blocks: int = 1000
    """So many blocks can be taken back; older ones are forgotten."""

    @property
    def stored_bytes(self) -> int:
        """With more copies than this, the oldest blocks are forgotten."""
        return 2 * self.total_bytes

    @property
    def scanned(self) -> int:
        """So many entries are looked at when a block has made many: just that block should be undone."""
        return 10 * self.files


class NotCovered(NamedTuple):
    """Something that cannot be restored, and why."""

    path: str
    why: str
    bytes: int | None = None

    def __str__(self) -> str:
        name = os.fsencode(self.path).decode("utf-8", "replace")
        return f"{name} ({size_in_words(self.bytes)})" if self.bytes is not None else f"{name} ({self.why})"


@dataclass(frozen=True)
class Coverage:
    """What would be restored if the block that comes next is undone."""

    off: str | None = None
    """Why nothing is covered, if that is so."""
    off_is_news: bool = False
    files: int = 0
    bytes: int = 0
    """What is covered in all."""
    copied_files: int = 0
    copied_bytes: int = 0
    seconds: float = 0.0
    """What it cost this time."""
    not_covered: tuple[NotCovered, ...] = ()
    news: tuple[NotCovered, ...] = ()
    """Those of them that were not named before."""
    trouble: str | None = None
    """Why this may not survive a restart, if that is so."""

    @property
    def sentences(self) -> list[str]:
        """What a person should be told before the block runs; nothing new, no words."""
        words = []
        if self.off and self.off_is_news:
            words.append(f"File undo is off: {self.off}")
        if self.news:
            more = f" and {len(self.news) - 5} more" if len(self.news) > 5 else ""
            words.append("not covered: " + ", ".join(map(str, self.news[:5])) + more)
        if self.trouble:
            words.append(f"File undo will not outlive this session: {self.trouble}")
        return words

    def after(self, ahead: Coverage) -> Coverage:
        """The same, with what an earlier look has copied."""
        files, size = self.copied_files + ahead.copied_files, self.copied_bytes + ahead.copied_bytes
        return replace(self, copied_files=files, copied_bytes=size, seconds=self.seconds + ahead.seconds)

    @property
    def cost(self) -> str:
        """What was copied, in words."""
        size = size_in_words(self.copied_bytes)
        return f"{self.copied_files:,} files, {size} copied for undo in {self.seconds:.1f} s"


def refusal(workspace: Path) -> str | None:
    """Why there is no file undo in this folder, if that is so; limits aside."""
    home = Path(os.path.expanduser("~")).resolve()
    advice = "Name a smaller folder as the workspace."
    if workspace == Path(workspace.anchor):
        return f"the workspace is the whole disk. {advice}"
    if workspace == home:
        return f"the workspace is your home folder. {advice}"
    if workspace in home.parents:
        return f"the workspace has your home folder in it. {advice}"
    return None


def size_in_words(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
