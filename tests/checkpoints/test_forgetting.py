"""A long session: the oldest blocks are forgotten, so that the store stays small, and that is said."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from checkpoints.conftest import Travelling
from checkpoints.traveller import Traveller, step
from checkpoints.workbench import Bench
from interpreter.errors import UndoError
from interpreter.workspace import SnapshotLimits


def test_the_oldest_blocks_go_when_there_are_many(tmp_path: Path) -> None:
    bench = Bench(tmp_path.resolve(), SnapshotLimits(blocks=10))
    bench.write("kept", "never changed")
    for number in range(100):
        bench.block(lambda number=number: bench.write("a", str(number)))  # type: ignore[misc]
    assert 10 <= len(bench.record.blocks) <= 11 and bench.record.forgotten == "90"
    assert len(bench.record.store.hashes) <= 13
    again = bench.opened()
    assert again.blocks == bench.record.blocks and again.forgotten == "90"
    again.undo(again.plan_undo(len(again.blocks)))
    assert bench.read("a") == "89"


def test_the_oldest_blocks_go_when_much_is_stored(tmp_path: Path) -> None:
    bench = Bench(tmp_path.resolve(), SnapshotLimits(total_bytes=50_000))
    for number in range(30):
        bench.block(lambda number=number: bench.write("a", bytes([number]) * 20_000))  # type: ignore[misc]
    stored = sum(path.stat().st_size for path in (bench.store / "images").iterdir())
    assert stored <= 202_000 and bench.record.store.stored_bytes <= 100_000 and len(bench.record.blocks) == 4
    bench.record.undo(bench.record.plan_undo(4))
    assert (bench.root / "a").read_bytes() == bytes([25]) * 20_000


def test_what_others_wrote_again_and_again_is_forgotten(tmp_path: Path) -> None:
    bench = Bench(tmp_path.resolve(), SnapshotLimits(total_bytes=50_000))
    bench.write("b", "0")
    for number in range(30):
        bench.write("a", bytes([number]) * 20_000)
        bench.block(lambda number=number: bench.write("b", str(number)))  # type: ignore[misc]
    stored = sum(path.stat().st_size for path in (bench.store / "images").iterdir())
    assert stored <= 202_000 and bench.record.store.stored_bytes <= 100_000 and len(bench.record.blocks) == 30


def test_one_block_that_changes_more_than_may_be_stored_can_be_taken_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path.resolve(), SnapshotLimits(total_bytes=50_000))
    for number in range(2):
        bench.write(str(number), bytes([number]) * 20_000)
    for times in (3, 4):
        bench.block(lambda times=times: [bench.write(str(n), bytes([n * times]) * 20_000) for n in range(2)])  # type: ignore[misc]
    bench.record.undo()
    assert (bench.root / "1").read_bytes() == bytes([3]) * 20_000


def test_a_way_back_that_is_too_long_is_named(travelling: Travelling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotLimits, "__init__", _few)
    traveller = travelling(undo_max_files=100)
    for number in range(12):
        traveller.own(("shell", f"echo {number} > a"))
    undone = traveller.interpreter.undo(12)
    assert "only be partly restored" in undone.sentences[-1] and traveller.read("a") not in (None, "11\n")


def _few(limits: SnapshotLimits, *bounds: int) -> None:
    for name, bound in zip(("file_bytes", "total_bytes", "files", "blocks"), (*bounds, 5), strict=True):
        object.__setattr__(limits, name, bound)


# -- a very long one -----------------------------------------------------------------------------------------------------


def resident_in(process: psutil.Process) -> int:
    """Its memory; none of one that has just ended, such as a snapshot that was too old."""
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("no_strays")
def test_two_thousand_blocks(travelling: Travelling) -> None:
    traveller = travelling()
    host = psutil.Process()
    seen: list[tuple[int, int, int, int]] = []
    for number in range(2_200):
        code = f"x = {number}\n_ = open('a{number % 7}', 'w').write(str(x))"
        traveller.own(code if number % 10 else ("shell", f"echo {number} > s; export E={number}"))
        if number % 100 == 50:
            traveller.interpreter.undo(2)
            traveller.interpreter.redo()
        if number % 50 == 49:
            record = traveller.interpreter.timeline.files.record()
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


def test_only_so_many_points_are_held_in_memory(traveller: Traveller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.session.checkpoints.timeline.MOST", 6)
    for number in range(1, 7):
        traveller.turn(f"turn {number}", step(number))
    points = traveller.interpreter.checkpoints
    assert len(points) <= 6 and points[0].kind == "turn"
    count = sum(point.kind == "turn" for point in points)
    assert [point.label for point in points if point.kind == "turn"][-1] == "turn 6"
    traveller.interpreter.undo(count)
    assert traveller.state[1:] == (str(6 - count), str(6 - count))
    with pytest.raises(UndoError, match="nothing to undo"):
        traveller.interpreter.undo()
    traveller.interpreter.redo(count)
    assert traveller.state[1:] == ("6", "6")
