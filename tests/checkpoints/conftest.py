"""Fixtures for undo: workspaces with a record of their files, and scripted sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from checkpoints.scripted_session import ScriptedSession
from interpreter.runtimes import live
from interpreter.workspace import SnapshotLimits

MakeSession = Callable[..., ScriptedSession]


@pytest.fixture(autouse=True)
def _no_listing_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are listed after each step, even on a busy machine."""
    monkeypatch.setattr(live, "LIST_TIMEOUT", 60.0)


@pytest.fixture
def workspace(tmp_path: Path) -> RecordedWorkspace:
    return RecordedWorkspace(tmp_path.resolve())


@pytest.fixture
def limited(tmp_path: Path) -> RecordedWorkspace:
    """Limit files to three kilobytes each, ten in total, and twenty files."""
    return RecordedWorkspace(tmp_path.resolve(), SnapshotLimits(file_bytes=3_000, total_bytes=10_000, files=20))


@pytest.fixture
def make_session(tmp_path: Path) -> Iterator[MakeSession]:
    """`make_session(setting=value)` gives a session; several share the workspace and the folder of sessions."""
    started: list[ScriptedSession] = []

    def start(**settings: Any) -> ScriptedSession:
        started.append(ScriptedSession(tmp_path.resolve(), **settings))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def session(make_session: MakeSession) -> ScriptedSession:
    return make_session()
