"""Long sessions: the oldest blocks are dropped so that the store stays small, and undo mentions it."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from checkpoints.conftest import MakeSession
from checkpoints.recorded_workspace import RecordedWorkspace
from checkpoints.scripted_session import ScriptedSession, step
from interpreter.errors import UndoError
from interpreter.workspace import SnapshotLimits


def test_the_oldest_blocks_are_dropped_beyond_the_count_limit(tmp_path: Path) -> None:
    workspace = RecordedWorkspace(tmp_path.resolve(), SnapshotLimits(blocks=10))
    workspace.write("kept", "never changed")
    for number in range(100):
        workspace.block(lambda number=number: workspace.write("a", str(number)))  # type: ignore[misc]
    assert 10 <= len(workspace.record.blocks) <= 11 and workspace.record.forgotten == "90"
    assert len(workspace.record.store.hashes) <= 13
    again = workspace.opened()
    assert again.blocks == workspace.record.blocks and again.forgotten == "90"
    again.undo(again.plan_undo(len(again.blocks)))
    assert workspace.read("a") == "89"


def test_the_oldest_blocks_are_dropped_beyond_the_size_limit(tmp_path: Path) -> None:
    workspace = RecordedWorkspace(tmp_path.resolve(), SnapshotLimits(total_bytes=50_000))
    for number in range(30):
        workspace.block(lambda number=number: workspace.write("a", bytes([number]) * 20_000))  # type: ignore[misc]
    stored = sum(path.stat().st_size for path in (workspace.store / "images").iterdir())
    assert stored <= 202_000 and workspace.record.store.stored_bytes <= 100_000 and len(workspace.record.blocks) == 4
    workspace.record.undo(workspace.record.plan_undo(4))
    assert (workspace.root / "a").read_bytes() == bytes([25]) * 20_000


def test_copies_of_external_changes_are_dropped(tmp_path: Path) -> None:
    workspace = RecordedWorkspace(tmp_path.resolve(), SnapshotLimits(total_bytes=50_000))
    workspace.write("b", "0")
    for number in range(30):
        workspace.write("a", bytes([number]) * 20_000)
        workspace.block(lambda number=number: workspace.write("b", str(number)))  # type: ignore[misc]
    stored = sum(path.stat().st_size for path in (workspace.store / "images").iterdir())
    assert stored <= 202_000 and workspace.record.store.stored_bytes <= 100_000 and len(workspace.record.blocks) == 30


def test_one_block_beyond_the_size_limit_can_be_undone(tmp_path: Path) -> None:
    workspace = RecordedWorkspace(tmp_path.resolve(), SnapshotLimits(total_bytes=50_000))
    for number in range(2):
        workspace.write(str(number), bytes([number]) * 20_000)
    for times in (3, 4):
        workspace.block(lambda times=times: [workspace.write(str(n), bytes([n * times]) * 20_000) for n in range(2)])  # type: ignore[misc]
    workspace.record.undo()
    assert (workspace.root / "1").read_bytes() == bytes([3]) * 20_000


def test_undoing_dropped_blocks_is_reported_as_partial(
    make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SnapshotLimits, "__init__", _limit_to_five_blocks)
    session = make_session(undo_max_files=100)
    for number in range(12):
        session.run_block(("shell", f"echo {number} > a"))
    undone = session.interpreter.undo(12)
    assert "only be partly restored" in undone.sentences[-1] and session.read("a") not in (None, "11\n")


def _limit_to_five_blocks(limits: SnapshotLimits, *bounds: int) -> None:
    for name, bound in zip(("file_bytes", "total_bytes", "files", "blocks"), (*bounds, 5), strict=True):
        object.__setattr__(limits, name, bound)


# -- long sessions -------------------------------------------------------------------------------------------------------


def resident_in(process: psutil.Process) -> int:
    """The memory of a process; 0 if it has just ended, like an old snapshot."""
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("no_strays")
def test_two_thousand_blocks_leak_no_memory_files_or_processes(make_session: MakeSession) -> None:
    session = make_session()
    host = psutil.Process()
    seen: list[tuple[int, int, int, int]] = []
    for number in range(2_200):
        code = f"x = {number}\n_ = open('a{number % 7}', 'w').write(str(x))"
        session.run_block(code if number % 10 else ("shell", f"echo {number} > s; export E={number}"))
        if number % 100 == 50:
            session.interpreter.undo(2)
            session.interpreter.redo()
        if number % 50 == 49:
            record = session.interpreter.timeline.files.record()
            assert record is not None
            resident = sum(map(resident_in, [host, *host.children(recursive=True)]))
            files = len(record.store.hashes)
            seen.append((host.memory_info().rss, resident, files, len(host.children(recursive=True))))
    early, late = seen[len(seen) * 3 // 5 :][:4], seen[-4:]
    smallest, largest = (
        [min(values) for values in zip(*early, strict=True)],
        [max(values) for values in zip(*late, strict=True)],
    )
    assert largest[0] < smallest[0] + 30_000_000, "the host's memory grows"
    assert largest[1] < smallest[1] * 1.5, "the sessions' memory grows"
    assert largest[2] <= 1_300 * 2, "the store grows"
    assert largest[3] <= smallest[3] + 3, "processes pile up"


def test_the_number_of_checkpoints_is_limited(session: ScriptedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.session.checkpoints.timeline.MAX_CHECKPOINTS", 6)
    for number in range(1, 7):
        session.turn(f"turn {number}", step(number))
    points = session.interpreter.checkpoints
    assert len(points) <= 6 and points[0].kind == "turn"
    count = sum(point.kind == "turn" for point in points)
    assert [point.label for point in points if point.kind == "turn"][-1] == "turn 6"
    session.interpreter.undo(count)
    assert session.state[1:] == (str(6 - count), str(6 - count))
    with pytest.raises(UndoError, match="nothing to undo"):
        session.interpreter.undo()
    session.interpreter.redo(count)
    assert session.state[1:] == ("6", "6")
