"""Gaps in undo coverage are reported before the block runs."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from interpreter.workspace import FileRecord, SnapshotLimits, record
from interpreter.workspace.snapshot import size_in_words


def test_the_first_copy_reports_its_cost(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "12345")
    workspace.write("d/b", "123")
    coverage = workspace.record.before(1)
    assert (coverage.files, coverage.bytes) == (2, 8)
    assert (coverage.copied_files, coverage.copied_bytes) == (2, 8) and coverage.seconds > 0
    assert coverage.cost.startswith("2 files, 8 bytes copied for undo in ")
    workspace.record.after(1)
    assert workspace.record.before(2).copied_files == 0


def test_a_block_waits_for_a_small_pending_copy(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "12345")
    os.utime(workspace.root / "a", (1, 1))
    time.sleep(0.05)  # recently changed files are read at once
    workspace.record.prepare(0)
    assert workspace.record.snapshot.waiting
    coverage = workspace.record.before(1)
    assert coverage.sentences == [] and coverage.copied_files == 1 and not workspace.record.snapshot.waiting


def test_large_files_are_reported_once(limited: RecordedWorkspace) -> None:
    limited.write("big.bin", b"x" * 5_000)
    coverage = limited.record.before(1)
    assert coverage.sentences == ["Undo doesn't cover: big.bin (4.9 KB)"] and coverage.off is None
    limited.record.after(1)
    again = limited.record.before(2)
    assert again.sentences == [] and [each.path for each in again.not_covered] == ["big.bin"]


def test_gaps_found_in_the_background_are_reported_before_the_block(limited: RecordedWorkspace) -> None:
    limited.write("small", "x")
    limited.write("big.bin", b"x" * 5_000)
    limited.record.prepare_in_background()
    limited.record.prepare()
    coverage = limited.record.before(1)
    assert coverage.sentences == ["Undo doesn't cover: big.bin (4.9 KB)"] and coverage.copied_files == 1
    limited.record.after(1)
    again = limited.record.before(2)
    assert again.sentences == [] and again.copied_files == 0


def test_undo_keeps_and_reports_uncovered_files(limited: RecordedWorkspace) -> None:
    limited.write("big.bin", b"x" * 5_000)
    limited.write("a", "1")

    def act() -> None:
        limited.write("big.bin", b"y" * 5_000)
        limited.write("a", "2")

    changes = limited.block(act)
    assert [each.path for each in changes.not_covered] == ["big.bin"]
    (step,) = [step for step in limited.record.plan_undo().steps if step.impossible]
    assert step.path == "big.bin"
    report = limited.record.undo()
    assert limited.read("a") == "1" and [kept.path for kept in report.kept] == ["big.bin"]
    assert limited.read("big.bin") == "y" * 5_000


def test_undo_restores_mode_and_name_of_a_large_file(limited: RecordedWorkspace) -> None:
    file = limited.write("big.bin", b"x" * 5_000)
    file.chmod(0o644)

    def act() -> None:
        file.rename(limited.root / "moved.bin")
        (limited.root / "moved.bin").chmod(0o600)

    assert [change.what for change in limited.block(act).listed] == ["renamed"]
    report = limited.record.undo()
    assert report.kept == () and file.stat().st_mode & 0o777 == 0o644 and os.listdir(limited.root) == ["big.bin"]


def test_undo_deletes_a_large_file_created_by_the_block(limited: RecordedWorkspace) -> None:
    limited.block(lambda: limited.write("big.bin", b"x" * 5_000))
    limited.record.undo()
    assert os.listdir(limited.root) == []


def test_files_beyond_the_size_limit_are_reported(limited: RecordedWorkspace) -> None:
    for number in range(5):
        os.utime(limited.write(f"{number}.bin", b"x" * 2_500), (number, number))
    coverage = limited.record.before(1)
    assert coverage.off is None and (coverage.files, coverage.bytes) == (4, 10_000)
    assert coverage.sentences == ["Undo doesn't cover: 0.bin (2.4 KB)"]  # the oldest
    for number in range(5):
        limited.write(f"{number}.bin", b"y" * 2_500)
    assert [each.path for each in limited.record.after(1).not_covered] == ["0.bin"]
    report = limited.record.undo()
    assert [limited.read(f"{number}.bin")[0] for number in range(5)] == ["y", "x", "x", "x", "x"]
    assert [each.path for each in report.kept] == ["0.bin"]


def test_small_and_text_files_are_covered_first(tmp_path: Path) -> None:
    workspace = RecordedWorkspace(tmp_path, SnapshotLimits(file_bytes=1_000_000, total_bytes=400_000, files=100))
    for name, size, age in (("new.bin", 300_000, 1), ("old.csv", 150_000, 9), ("older.bin", 50_000, 10)):
        os.utime(workspace.write(name, b"x" * size), (100 - age, 100 - age))
    workspace.record.before(1)
    assert list(workspace.record.snapshot.not_covered) == ["new.bin"]


def test_files_beyond_the_count_limit_are_reported(limited: RecordedWorkspace) -> None:
    for number in range(24):
        limited.write(f"{number:02}", "")
    coverage = limited.record.before(1)
    assert coverage.off is None and coverage.files == 20 and len(coverage.news) == 4
    assert not limited.record.after(1).not_covered


def test_a_file_changed_by_a_block_is_covered_afterwards(limited: RecordedWorkspace) -> None:
    for number in range(5):
        os.utime(limited.write(f"{number}.bin", b"x" * 2_500), (number, number))
    limited.block(lambda: limited.write("0.bin", b"y" * 2_500))
    limited.block(lambda: limited.write("0.bin", b"z" * 2_500))
    assert list(limited.record.snapshot.not_covered) == ["1.bin"]  # replaced as the oldest
    limited.record.undo()
    assert limited.read("0.bin")[0] == "y"


def test_a_block_does_not_wait_for_the_whole_first_copy(
    workspace: RecordedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_FIRST_COPY_TIMEOUT", 0.0)
    for number in range(20):
        os.utime(workspace.write(f"{number:02}", "first"), (1, 1))
    time.sleep(0.05)  # recently changed files are read at once
    coverage = workspace.record.before(1)
    assert coverage.waiting == 20
    assert coverage.sentences == ["Undo doesn't cover 20 files yet: they are still being copied."]
    workspace.write("00", "second")
    workspace.record.prepare_in_background()  # copying continues while the block runs
    workspace.write("01", "second")
    assert [each.path for each in workspace.record.after(1).not_covered] == ["00"]
    workspace.record.undo()
    assert (workspace.read("00"), workspace.read("01")) == ("second", "first")
    assert not workspace.record.snapshot.waiting
    monkeypatch.undo()
    assert workspace.record.before(2).sentences == []


def test_a_block_does_not_wait_until_the_workspace_is_read(
    workspace: RecordedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_FIRST_COPY_TIMEOUT", 0.05)
    workspace.write("a", "first")
    reading, goes_on = threading.Event(), threading.Event()

    def interruption_point() -> None:
        reading.set()
        goes_on.wait(30)

    monkeypatch.setattr(workspace.record.snapshot, "_interruption_point", interruption_point)
    thread = threading.Thread(target=workspace.record.prepare_in_background)
    thread.start()
    reading.wait(30)
    changes = workspace.block(lambda: workspace.write("a", "second"))
    assert workspace.coverage is not None and "still being read" in workspace.coverage.sentences[0]
    assert changes.off is not None and not changes.pairs
    goes_on.set()
    thread.join()
    workspace.block(lambda: workspace.write("a", "third"))
    plan = workspace.record.plan_undo(2)
    assert [each.path for each in plan.not_covered] == ["block 1"]
    workspace.record.undo(plan)
    assert workspace.read("a") == "second"


def test_folders_with_too_many_files_are_reported(limited: RecordedWorkspace) -> None:
    for number in range(101):  # more than five times the limit
        limited.write(f"many/{number}", "")
    limited.write("a", "first")
    assert limited.record.before(1).sentences == ["Undo doesn't cover: many/ (there are too many files)"]
    limited.write("a", "second")
    limited.record.after(1)
    limited.record.undo()
    assert limited.read("a") == "first"


def test_the_snapshot_knows_which_paths_undo_covers(workspace: RecordedWorkspace) -> None:
    workspace.write(".venv/pyvenv.cfg", "")
    workspace.write("a", "")
    workspace.record.before(1)
    assert workspace.record.snapshot.covers("a") and workspace.record.snapshot.covers("new/file")
    assert not workspace.record.snapshot.covers(".venv/lib/file")


def test_large_files_can_be_stored_before_they_change(limited: RecordedWorkspace) -> None:
    limited.write("big.bin", b"x" * 5_000)
    limited.record.before(1)
    limited.record.cover(["big.bin", "missing"])
    limited.write("big.bin", b"y" * 5_000)
    assert not limited.record.after(1).not_covered
    limited.record.undo()
    assert limited.read("big.bin") == "x" * 5_000


def test_a_block_that_creates_too_many_files_can_be_undone(limited: RecordedWorkspace) -> None:
    limited.write("a", "1")

    def act() -> None:
        for number in range(60):
            limited.write(f"new/{number}", b"x" * 500)

    limited.block(act)
    assert len(limited.record.before(2).news) == 60 - 19
    limited.record.after(2)
    limited.record.undo(limited.record.plan_undo(2))
    assert os.listdir(limited.root) == ["a"]


def test_settings_and_other_users_files_are_not_covered_in_a_home_folder(tmp_path: Path, home: Path) -> None:
    others = home.parent / "others"
    for folder in (home / ".config" / "browser", home / "project", others):
        folder.mkdir(parents=True)
        (folder / "file").write_text("first")
    (home / ".bashrc").write_text("first")
    for number, root in enumerate((home, home.parent)):
        files = FileRecord(root, tmp_path / f"store{number}", exclude=[tmp_path])
        coverage = files.before(1)
        start = os.path.relpath(home, root).removeprefix(".") and f"{home.name}/"
        reasons = {each.path: each.why for each in coverage.not_covered}
        assert reasons.pop(f"{start}.config/") == "settings of other programs"
        assert not start or reasons["others/"] == "outside your home folder"
        for path in (home / "project" / "file", home / ".bashrc"):
            path.write_text("second")
        files.after(1)
        files.undo()
        assert {path.read_text() for path in (home / "project" / "file", home / ".bashrc")} == {"first"}


def test_the_store_may_be_in_the_workspace(tmp_path: Path) -> None:
    record = FileRecord(tmp_path, tmp_path / "state" / "session", exclude=[tmp_path / "state"])
    record.before(1)
    (tmp_path / "a").write_text("1")
    (tmp_path / "state" / "other").write_text("1")
    assert [change.path for change in record.after(1).listed] == ["a"]


def test_only_the_owner_can_read_the_store(workspace: RecordedWorkspace) -> None:
    workspace.write(".env", "KEY=secret").chmod(0o644)
    workspace.block(lambda: None)
    (image,) = workspace.record.store.folder.iterdir()
    assert image.stat().st_mode & 0o777 == 0o600
    for folder in (workspace.store, workspace.store / "images"):
        assert folder.stat().st_mode & 0o077 == 0


def test_unchanged_files_are_not_read(workspace: RecordedWorkspace) -> None:
    for number in range(50):
        os.utime(workspace.write(f"d{number % 5}/{number}", "words"), (1, 1))
    while workspace.record.prepare().copied_files or workspace.record.snapshot._fresh:
        pass  # until the clock has moved on
    opened: list[str] = []
    listening = [True]

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and listening and not os.path.isabs(str(args[0])):
            opened.append(str(args[0]))

    sys.addaudithook(audit)
    workspace.record.before(1)
    listening.clear()
    assert set(opened) == {".", "d0", "d1", "d2", "d3", "d4"} and len(opened) <= 7  # the folders


def test_a_trimmed_record_keeps_what_undo_needs(workspace: RecordedWorkspace) -> None:
    for number in range(10):
        workspace.write(str(number), f"words {number}")
    workspace.block(lambda: workspace.write("3", "other"))
    assert len(workspace.record.store.hashes) == 11
    workspace.record.trim()
    assert len(workspace.record.store.hashes) == 2
    again = workspace.opened()
    again.undo()
    assert workspace.read("3") == "words 3"
    again.redo()
    assert workspace.read("3") == "other"


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (999, "999 bytes"), (2048, "2.0 KB"), (3_435_973_837, "3.2 GB")]
)
def test_sizes_are_human_readable(count: int, words: str) -> None:
    assert size_in_words(count) == words


@pytest.mark.parametrize("made", [".venv/pyvenv.cfg", "app/node_modules/left-pad/index.js"])
def test_installed_packages_are_reported_and_not_copied(workspace: RecordedWorkspace, made: str) -> None:
    workspace.write(made, "x")
    workspace.write("notes", "one")
    folder = made.partition("/pyvenv")[0].partition("/left-pad")[0]
    coverage = workspace.record.before(1)
    assert [each.path for each in coverage.not_covered] == [f"{folder}/"]
    workspace.write(made, "y")
    workspace.write("notes", "two")
    assert [change.path for change in workspace.record.after(1).listed] == ["notes"]
    workspace.record.undo()
    assert (workspace.root / made).read_text() == "y" and (workspace.root / "notes").read_text() == "one"
