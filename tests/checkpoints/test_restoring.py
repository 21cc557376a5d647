"""Undo brings back what was there, as it was, and redo what came after."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.trees import shape
from checkpoints.workbench import Bench
from interpreter.errors import UndoError


def test_a_file_comes_back_with_mode_and_time(bench: Bench) -> None:
    file = bench.write("a", "before")
    file.chmod(0o750)
    os.utime(file, ns=(1, 123_456_789_012_345_678))
    before = shape(bench.root)
    bench.block(file.unlink)
    bench.record.undo()
    assert shape(bench.root) == before


def test_several_blocks_at_once_and_one_by_one(bench: Bench) -> None:
    for number in range(4):
        bench.block(lambda number=number: bench.write("a", str(number)))  # type: ignore[misc]
    bench.record.undo(bench.record.plan_undo(3))
    assert bench.read("a") == "0" and bench.record.blocks == ("1",) and bench.record.undone == ("2", "3", "4")
    bench.record.redo()
    assert bench.read("a") == "1"
    bench.record.redo(bench.record.plan_redo(until=4))
    assert bench.read("a") == "3"
    bench.record.undo(bench.record.plan_undo(since=2))
    assert bench.read("a") == "0"


def test_a_plan_says_what_would_be_done_and_does_nothing(bench: Bench) -> None:
    bench.write("old", "1")
    bench.write("changed", "1")

    def act() -> None:
        (bench.root / "old").unlink()
        bench.write("changed", "2")
        bench.write("new", "1")
        bench.write("program", "1")

    bench.block(act)
    bench.block(lambda: (bench.root / "program").chmod(0o700))
    before = shape(bench.root)
    plan = bench.record.plan_undo(2)
    assert {step.path: step.verb for step in plan.steps} == {
        "old": "create",
        "changed": "restore",
        "new": "delete",
        "program": "delete",
    }
    assert [step.verb for step in bench.record.plan_undo().steps] == ["attributes"]
    assert plan.blocks == ("2", "1") and shape(bench.root) == before


def test_nothing_to_undo_or_redo(bench: Bench) -> None:
    for plan in (bench.record.plan_undo, bench.record.plan_redo):
        with pytest.raises(UndoError):
            plan()
    bench.block(lambda: None)
    with pytest.raises(UndoError):
        bench.record.plan_undo(2)


def test_a_new_block_ends_what_could_be_done_again(bench: Bench) -> None:
    bench.block(lambda: bench.write("a", "1"))
    bench.record.undo()
    bench.block(lambda: bench.write("b", "1"))
    assert bench.record.undone == ()
    with pytest.raises(UndoError):
        bench.record.plan_redo()


def test_a_plan_made_before_another_block_is_refused(bench: Bench) -> None:
    bench.block(lambda: bench.write("a", "1"))
    plan = bench.record.plan_undo()
    bench.block(lambda: bench.write("b", "1"))
    with pytest.raises(UndoError, match="Plan it again"):
        bench.record.undo(plan)


def test_folder_becomes_file_and_back(bench: Bench) -> None:
    bench.write("x/y/z", "deep")
    bench.write("f", "flat")
    before = shape(bench.root)

    def act() -> None:
        shutil.rmtree(bench.root / "x")
        bench.write("x", "a file now")
        (bench.root / "f").unlink()
        bench.write("f/g", "a folder now")

    bench.block(act)
    after = shape(bench.root)
    bench.record.undo()
    assert shape(bench.root) == before
    bench.record.redo()
    assert shape(bench.root) == after


def test_the_workspace_itself_was_deleted(bench: Bench) -> None:
    bench.write("d/a", "1")
    before = shape(bench.root)
    bench.block(lambda: shutil.rmtree(bench.root))
    bench.record.undo()
    assert shape(bench.root) == before


def test_a_renamed_file_is_the_same_file_again(bench: Bench) -> None:
    inode = bench.write("a", "1").stat().st_ino
    bench.block(lambda: (bench.root / "a").rename(bench.root / "b"))
    bench.record.undo()
    assert (bench.root / "a").stat().st_ino == inode


def test_hard_links_stay_linked(bench: Bench) -> None:
    bench.write("a", "1")
    os.link(bench.root / "a", bench.root / "b")
    bench.write("c", "1")
    os.link(bench.root / "c", bench.root / "d")

    def act() -> None:
        bench.write("a", "2")  # through both names
        (bench.root / "d").unlink()

    bench.block(act)
    bench.record.undo()
    for one, other in ("ab", "cd"):
        assert bench.read(one) == bench.read(other) == "1"
        assert (bench.root / one).samefile(bench.root / other)


def test_a_number_that_the_file_system_used_twice_makes_no_hard_link(bench: Bench) -> None:
    """One file was deleted, another got its inode, then that was deleted too: they were never one file."""
    for name, time in (("a", 1_000_000_000), ("b", 2_000_000_000)):
        os.utime(bench.write(name, "the same"), ns=(time, time))
    before = shape(bench.root)
    bench.block((bench.root / "a").unlink)
    bench.block((bench.root / "b").unlink)
    plan = bench.record.plan_undo(2)
    number = (bench.root / "..").stat().st_ino
    wants = [step.want._replace(inode=number) for step in plan.steps if step.want is not None]
    steps = tuple(replace(step, want=want) for step, want in zip(plan.steps, wants, strict=True))
    bench.record.undo(replace(plan, steps=steps))
    assert shape(bench.root) == before
    assert not os.path.samefile(bench.root / "a", bench.root / "b")


def test_a_stored_copy_is_never_a_link_to_the_live_file(bench: Bench) -> None:
    file = bench.write("a", "1")
    bench.record.prepare()
    with file.open("r+") as live:
        live.write("2")
    assert file.stat().st_nlink == 1
    bench.block(file.unlink)
    bench.record.undo()
    assert bench.read("a") == "2"


def test_case_matters(bench: Bench) -> None:
    bench.write("a", "1")
    if (bench.root / "A").exists():
        pytest.skip("this file system takes both for one")
    bench.write("A", "2")
    bench.block(lambda: (bench.root / "a").rename(bench.root / "A"))
    bench.record.undo()
    assert (bench.read("a"), bench.read("A")) == ("1", "2")


def test_links_are_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("not ours")
    (bench.root / "way_out").symlink_to(outside)
    (bench.root / "loop").symlink_to("loop")
    (bench.root / "up").symlink_to("..")

    def act() -> None:
        (outside / "a").write_text("changed")
        (bench.root / "loop").unlink()

    changes = bench.block(act)
    assert [change.path for change in changes.listed] == ["loop"]
    bench.record.undo()
    assert os.readlink(bench.root / "loop") == "loop" and (outside / "a").read_text() == "changed"


def test_nothing_is_written_through_a_link(bench: Bench, tmp_path: Path) -> None:
    bench.write("d/a", "1")
    bench.block(lambda: bench.write("d/a", "2"))
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(bench.root / "d")
    (bench.root / "d").symlink_to(outside)
    report = bench.record.undo(overwrite={"d/a"})
    assert [kept.path for kept in report.kept] == ["d/a"] and os.listdir(outside) == []


def test_pipes_and_sockets(bench: Bench) -> None:
    os.mkfifo(bench.root / "pipe", 0o600)

    def act() -> None:
        (bench.root / "pipe").unlink()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(bench.root / "socket"))

    bench.block(act)
    bench.record.undo()
    assert os.listdir(bench.root) == ["pipe"] and (bench.root / "pipe").is_fifo()
    report = bench.record.redo()
    assert [(kept.path, kept.why) for kept in report.kept] == [("socket", "a socket can't be recreated")]
    assert not bench.record.prepare().not_covered


def test_a_socket_is_named_before_the_block_runs(bench: Bench) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(bench.root / "socket"))
        coverage = bench.record.before(1)
    assert coverage.sentences == ["Undo doesn't cover: socket (a socket)"]


def test_a_device_in_the_tree(bench: Bench) -> None:
    try:
        os.mknod(bench.root / "null", 0o020600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert bench.record.before(1).sentences == ["Undo doesn't cover: null (a device)"]


def test_a_folder_with_something_new_in_it_stays(bench: Bench) -> None:
    bench.block(lambda: bench.write("d/a", "1"))
    bench.write("d/mine", "1")
    report = bench.record.undo()
    assert [(kept.path, kept.why) for kept in report.kept] == [("d", "the folder contains other files")]
    assert os.listdir(bench.root / "d") == ["mine"]


def test_many_files(bench: Bench) -> None:
    for number in range(300):
        bench.write(f"d{number % 7}/{number}", str(number))
    before = shape(bench.root)

    def act() -> None:
        for folder in list(bench.root.iterdir())[:3]:
            shutil.rmtree(folder)
        for number in range(200):
            bench.write(f"new/{number}", "new")

    bench.block(act)
    bench.record.undo()
    assert shape(bench.root) == before
