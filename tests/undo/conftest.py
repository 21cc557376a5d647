"""A workspace with a record of its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.safety import Limits
from undo.workbench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path.resolve())


@pytest.fixture
def limited(tmp_path: Path) -> Bench:
    """Three kilobytes a file, ten in all, twenty files."""
    return Bench(tmp_path.resolve(), Limits(file_bytes=3_000, total_bytes=10_000, files=20))
