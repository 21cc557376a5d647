"""What is not covered is said before the block runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from checkpoints.workbench import Bench
from interpreter.workspace import FileRecord
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


def test_a_large_file_is_named(limited: Bench) -> None:
    limited.write("big.bin", b"x" * 5_000)
    coverage = limited.record.before(1)
    assert coverage.sentences == ["not covered: big.bin (4.9 KB)"] and coverage.off is None
    limited.record.after(1)
    again = limited.record.before(2)
    assert again.sentences == [] and [each.path for each in again.not_covered] == ["big.bin"]


def test_what_was_found_while_nobody_waited_is_told_before_the_block(limited: Bench) -> None:
    limited.write("small", "x")
    limited.write("big.bin", b"x" * 5_000)
    limited.record.prepare_in_background()
    limited.record.prepare()
    coverage = limited.record.before(1)
    assert coverage.sentences == ["not covered: big.bin (4.9 KB)"] and coverage.copied_files == 1
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


def test_a_large_file_that_a_block_made_goes_and_that_is_said(limited: Bench) -> None:
    limited.block(lambda: limited.write("big.bin", b"x" * 5_000))
    (step,) = limited.record.plan_undo().steps
    assert step.not_stored
    limited.record.undo()
    assert os.listdir(limited.root) == []


def test_too_much_in_all_at_the_start(limited: Bench) -> None:
    for number in range(5):
        limited.write(str(number), b"x" * 2_500)
    coverage = limited.record.before(1)
    assert coverage.off is not None and "12.2 KB" in coverage.off and "9.8 KB" in coverage.off
    assert coverage.sentences[0].startswith("File undo is off: there are 12.2 KB in ")
    assert limited.record.after(1).off == coverage.off
    again = limited.record.before(2)
    assert again.off == coverage.off and again.sentences == []  # said once
    limited.record.after(2)
    plan = limited.record.plan_undo(2)
    assert plan.steps == () and str(plan.not_covered[1]).startswith("block 1 (there are 12.2 KB")


def test_too_many_files_at_the_start(limited: Bench) -> None:
    for number in range(21):
        limited.write(str(number), "")
    assert "more than 20 files" in (limited.record.before(1).off or "")
    (limited.root / "0").unlink()
    assert limited.record.before(2).off
    limited.record.reconsider()
    assert limited.record.before(3).off is None


def test_a_block_that_makes_too_much_can_still_be_undone(limited: Bench) -> None:
    limited.write("a", "1")

    def act() -> None:
        for number in range(60):
            limited.write(f"new/{number}", b"x" * 500)

    limited.block(act)
    assert [str(each) for each in limited.record.before(2).news][:1] == ["new/26 (500 bytes)"]
    limited.record.after(2)
    limited.record.undo(limited.record.plan_undo(2))
    assert os.listdir(limited.root) == ["a"]


def test_home_and_the_whole_disk(tmp_path: Path, home: Path) -> None:
    for folder in (home, home.parent, Path("/")):
        record = FileRecord(folder, tmp_path / "store")
        coverage = record.before(1)
        assert coverage.off and "Name a smaller folder" in coverage.off
        record.after(1)
    assert FileRecord(home / "project", tmp_path / "other").off is None


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
    assert sorted(opened) == [".", "d0", "d1", "d2", "d3", "d4"]  # the folders


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
