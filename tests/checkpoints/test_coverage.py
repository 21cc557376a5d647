"""What is not covered is said before the block runs."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from checkpoints.workbench import Bench
from interpreter.workspace import FileRecord, SnapshotLimits, record
from interpreter.workspace.snapshot import size_in_words


def test_the_first_copy_tells_its_cost(bench: Bench) -> None:
    bench.write("a", "12345")
    bench.write("d/b", "123")
    coverage = bench.record.before(1)
    assert (coverage.files, coverage.bytes) == (2, 8)
    assert (coverage.copied_files, coverage.copied_bytes) == (2, 8) and coverage.seconds > 0
    assert coverage.cost.startswith("2 files, 8 bytes copied for undo in ")
    bench.record.after(1)
    assert bench.record.before(2).copied_files == 0


def test_a_block_waits_for_a_small_copy_that_the_background_has_not_made(bench: Bench) -> None:
    bench.write("a", "12345")
    os.utime(bench.root / "a", (1, 1))
    time.sleep(0.05)  # what has just changed is read at once
    bench.record.prepare(0)
    assert bench.record.snapshot.waiting
    coverage = bench.record.before(1)
    assert coverage.sentences == [] and coverage.copied_files == 1 and not bench.record.snapshot.waiting


def test_a_large_file_is_named(limited: Bench) -> None:
    limited.write("big.bin", b"x" * 5_000)
    coverage = limited.record.before(1)
    assert coverage.sentences == ["Undo doesn't cover: big.bin (4.9 KB)"] and coverage.off is None
    limited.record.after(1)
    again = limited.record.before(2)
    assert again.sentences == [] and [each.path for each in again.not_covered] == ["big.bin"]


def test_what_was_found_while_nobody_waited_is_told_before_the_block(limited: Bench) -> None:
    limited.write("small", "x")
    limited.write("big.bin", b"x" * 5_000)
    limited.record.prepare_in_background()
    limited.record.prepare()
    coverage = limited.record.before(1)
    assert coverage.sentences == ["Undo doesn't cover: big.bin (4.9 KB)"] and coverage.copied_files == 1
    limited.record.after(1)
    again = limited.record.before(2)
    assert again.sentences == [] and again.copied_files == 0


def test_what_cannot_be_restored_is_kept_and_said(limited: Bench) -> None:
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


def test_mode_and_name_of_a_large_file_come_back(limited: Bench) -> None:
    file = limited.write("big.bin", b"x" * 5_000)
    file.chmod(0o644)

    def act() -> None:
        file.rename(limited.root / "moved.bin")
        (limited.root / "moved.bin").chmod(0o600)

    assert [change.what for change in limited.block(act).listed] == ["renamed"]
    report = limited.record.undo()
    assert report.kept == () and file.stat().st_mode & 0o777 == 0o644 and os.listdir(limited.root) == ["big.bin"]


def test_a_large_file_that_a_block_made_goes(limited: Bench) -> None:
    limited.block(lambda: limited.write("big.bin", b"x" * 5_000))
    limited.record.undo()
    assert os.listdir(limited.root) == []


def test_what_fits_is_covered_and_the_rest_is_named(limited: Bench) -> None:
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


def test_small_files_and_texts_come_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SnapshotLimits(file_bytes=1_000_000, total_bytes=400_000, files=100))
    for name, size, age in (("new.bin", 300_000, 1), ("old.csv", 150_000, 9), ("older.bin", 50_000, 10)):
        os.utime(bench.write(name, b"x" * size), (100 - age, 100 - age))
    bench.record.before(1)
    assert list(bench.record.snapshot.not_covered) == ["new.bin"]


def test_more_files_than_are_copied(limited: Bench) -> None:
    for number in range(24):
        limited.write(f"{number:02}", "")
    coverage = limited.record.before(1)
    assert coverage.off is None and coverage.files == 20 and len(coverage.news) == 4
    assert not limited.record.after(1).not_covered


def test_a_file_that_a_block_touches_is_covered_from_then_on(limited: Bench) -> None:
    for number in range(5):
        os.utime(limited.write(f"{number}.bin", b"x" * 2_500), (number, number))
    limited.block(lambda: limited.write("0.bin", b"y" * 2_500))
    limited.block(lambda: limited.write("0.bin", b"z" * 2_500))
    assert list(limited.record.snapshot.not_covered) == ["1.bin"]  # it gave way
    limited.record.undo()
    assert limited.read("0.bin")[0] == "y"


def test_a_block_does_not_wait_for_the_whole_first_copy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_FIRST_COPY", 0.0)
    for number in range(20):
        os.utime(bench.write(f"{number:02}", "first"), (1, 1))
    time.sleep(0.05)  # what has just changed is read at once
    coverage = bench.record.before(1)
    assert coverage.waiting == 20
    assert coverage.sentences == ["Undo doesn't cover 20 files yet: they are still being copied."]
    bench.write("00", "second")
    bench.record.prepare_in_background()  # it goes on while the block runs
    bench.write("01", "second")
    assert [each.path for each in bench.record.after(1).not_covered] == ["00"]
    bench.record.undo()
    assert (bench.read("00"), bench.read("01")) == ("second", "first")
    assert not bench.record.snapshot.waiting
    monkeypatch.undo()
    assert bench.record.before(2).sentences == []


def test_a_block_does_not_wait_until_the_workspace_is_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_FIRST_COPY", 0.05)
    bench.write("a", "first")
    reading, goes_on = threading.Event(), threading.Event()

    def interruption_point() -> None:
        reading.set()
        goes_on.wait(30)

    monkeypatch.setattr(bench.record.snapshot, "_interruption_point", interruption_point)
    thread = threading.Thread(target=bench.record.prepare_in_background)
    thread.start()
    reading.wait(30)
    changes = bench.block(lambda: bench.write("a", "second"))
    assert bench.coverage is not None and "still being read" in bench.coverage.sentences[0]
    assert changes.off is not None and not changes.pairs
    goes_on.set()
    thread.join()
    bench.block(lambda: bench.write("a", "third"))
    plan = bench.record.plan_undo(2)
    assert [each.path for each in plan.not_covered] == ["block 1"]
    bench.record.undo(plan)
    assert bench.read("a") == "second"


def test_a_folder_with_too_many_files_is_named(limited: Bench) -> None:
    for number in range(101):  # more than five times as many as are copied
        limited.write(f"many/{number}", "")
    limited.write("a", "first")
    assert limited.record.before(1).sentences == ["Undo doesn't cover: many/ (there are too many files)"]
    limited.write("a", "second")
    limited.record.after(1)
    limited.record.undo()
    assert limited.read("a") == "first"


def test_what_undo_does_not_cover_is_known_before(bench: Bench) -> None:
    bench.write(".venv/pyvenv.cfg", "")
    bench.write("a", "")
    bench.record.before(1)
    assert bench.record.snapshot.covers("a") and bench.record.snapshot.covers("new/file")
    assert not bench.record.snapshot.covers(".venv/lib/file")


def test_a_large_file_is_stored_before_it_is_changed(limited: Bench) -> None:
    limited.write("big.bin", b"x" * 5_000)
    limited.record.before(1)
    limited.record.cover(["big.bin", "missing"])
    limited.write("big.bin", b"y" * 5_000)
    assert not limited.record.after(1).not_covered
    limited.record.undo()
    assert limited.read("big.bin") == "x" * 5_000


def test_a_block_that_makes_too_much_can_still_be_undone(limited: Bench) -> None:
    limited.write("a", "1")

    def act() -> None:
        for number in range(60):
            limited.write(f"new/{number}", b"x" * 500)

    limited.block(act)
    assert len(limited.record.before(2).news) == 60 - 19
    limited.record.after(2)
    limited.record.undo(limited.record.plan_undo(2))
    assert os.listdir(limited.root) == ["a"]


def test_a_workspace_that_is_the_home_folder_or_has_it_in_it(tmp_path: Path, home: Path) -> None:
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


def test_only_the_owner_can_read_the_store(bench: Bench) -> None:
    bench.write(".env", "KEY=secret").chmod(0o644)
    bench.block(lambda: None)
    (image,) = bench.record.store.folder.iterdir()
    assert image.stat().st_mode & 0o777 == 0o600
    for folder in (bench.store, bench.store / "images"):
        assert folder.stat().st_mode & 0o077 == 0


def test_what_has_not_changed_is_not_read(bench: Bench) -> None:
    for number in range(50):
        os.utime(bench.write(f"d{number % 5}/{number}", "words"), (1, 1))
    while bench.record.prepare().copied_files or bench.record.snapshot._fresh:
        pass  # until the clock has moved on
    opened: list[str] = []
    listening = [True]

    def hear(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and listening and not os.path.isabs(str(args[0])):
            opened.append(str(args[0]))

    sys.addaudithook(hear)
    bench.record.before(1)
    listening.clear()
    assert set(opened) == {".", "d0", "d1", "d2", "d3", "d4"} and len(opened) <= 7  # the folders


def test_a_trimmed_record_keeps_what_undo_needs(bench: Bench) -> None:
    for number in range(10):
        bench.write(str(number), f"words {number}")
    bench.block(lambda: bench.write("3", "other"))
    assert len(bench.record.store.hashes) == 11
    bench.record.trim()
    assert len(bench.record.store.hashes) == 2
    again = bench.opened()
    again.undo()
    assert bench.read("3") == "words 3"
    again.redo()
    assert bench.read("3") == "other"


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (999, "999 bytes"), (2048, "2.0 KB"), (3_435_973_837, "3.2 GB")]
)
def test_sizes(count: int, words: str) -> None:
    assert size_in_words(count) == words


@pytest.mark.parametrize("made", [".venv/pyvenv.cfg", "app/node_modules/left-pad/index.js"])
def test_what_an_installer_put_there_is_named_and_not_copied(bench: Bench, made: str) -> None:
    bench.write(made, "x")
    bench.write("notes", "one")
    folder = made.partition("/pyvenv")[0].partition("/left-pad")[0]
    coverage = bench.record.before(1)
    assert [each.path for each in coverage.not_covered] == [f"{folder}/"]
    bench.write(made, "y")
    bench.write("notes", "two")
    assert [change.path for change in bench.record.after(1).listed] == ["notes"]
    bench.record.undo()
    assert (bench.root / made).read_text() == "y" and (bench.root / "notes").read_text() == "one"
