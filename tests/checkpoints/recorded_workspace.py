"""A workspace with a record of its files, and blocks that are Python functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from interpreter.workspace import (
    Changes,
    Coverage,
    FileRecord,
    SnapshotLimits,
)


class RecordedWorkspace:
    """A workspace, its record, and blocks that are Python functions."""

    def __init__(self, folder: Path, limits: SnapshotLimits | None = None) -> None:
        self.root, self.store, self.limits = folder / "work", folder / "store", limits
        self.root.mkdir()
        self.record = self.opened()
        self.coverage: Coverage | None = None
        self._blocks = 0

    def opened(self) -> FileRecord:
        """Open the record as another process would."""
        return FileRecord(self.root, self.store, self.limits)

    def write(self, path: str, data: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def block(self, act: Callable[[], object]) -> Changes:
        """Run a block; blocks are numbered from 1."""
        self._blocks += 1
        self.coverage = self.record.before(self._blocks)
        act()
        return self.record.after(self._blocks)
