"""A workspace with a record of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoints.traveller import Traveller
from checkpoints.workbench import Bench
from interpreter.runtimes import live
from interpreter.workspace import SnapshotLimits

Travelling = Callable[..., Traveller]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are looked at after each step, however busy the machine is."""
    monkeypatch.setattr(live, "LISTING", 60.0)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path.resolve())


@pytest.fixture
def limited(tmp_path: Path) -> Bench:
    """Three kilobytes a file, ten in all, twenty files."""
    return Bench(tmp_path.resolve(), SnapshotLimits(file_bytes=3_000, total_bytes=10_000, files=20))


@pytest.fixture
def travelling(tmp_path: Path) -> Iterator[Travelling]:
    """`travelling(setting=value)` gives a traveller; several share the workspace and the folder of sessions."""
    started: list[Traveller] = []

    def start(**settings: Any) -> Traveller:
        started.append(Traveller(tmp_path.resolve(), **settings))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def traveller(travelling: Travelling) -> Traveller:
    return travelling()
