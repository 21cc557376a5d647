"""What a block did is told: by kind, for the journal, as differences, and which block a line comes from."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from checkpoints.workbench import Bench
from interpreter.errors import UndoError
from interpreter.workspace import Changes


def told(changes: Changes) -> dict[str, str]:
    return {change.path: change.what for change in changes.listed}


def test_each_kind_of_change(bench: Bench) -> None:
    for name in ("changed", "deleted", "renamed", "mode", "touched", "folder/inside"):
        bench.write(name, f"what {name} held\n")

    def act() -> None:
        bench.write("changed", "other")
        bench.write("created", "new")
        (bench.root / "deleted").unlink()
        (bench.root / "renamed").rename(bench.root / "elsewhere")
        (bench.root / "mode").chmod(0o700)
        os.utime(bench.root / "touched", (1, 1))
        (bench.root / "link").symlink_to("nowhere")
        (bench.root / "empty").mkdir()
        shutil.rmtree(bench.root / "folder")

    assert told(bench.block(act)) == {
        "changed": "changed",
        "created": "created",
        "deleted": "deleted",
        "elsewhere": "renamed",
        "mode": "mode",
        "touched": "touched",
        "link": "created",
        "empty": "created",
        "folder": "deleted",
        "folder/inside": "deleted",
    }


def test_a_file_that_was_copied_and_deleted_is_renamed(bench: Bench) -> None:
    bench.write("old", "words\n")

    def act() -> None:
        shutil.copy(bench.root / "old", bench.root / "new")
        (bench.root / "old").unlink()

    (change,) = bench.block(act).listed
    assert (change.what, change.source, change.path) == ("renamed", "old", "new")


def test_reading_is_no_change(bench: Bench) -> None:
    bench.write("a", "words")
    assert not bench.block(lambda: bench.read("a"))


def test_changes_between_blocks_are_nobodys(bench: Bench) -> None:
    bench.block(lambda: bench.write("a", "1"))
    bench.write("a", "2")
    assert not bench.block(lambda: None)


def test_a_rewrite_of_the_same_size_is_seen_however_soon_it_comes(bench: Bench) -> None:
    for number in range(100):
        changes = bench.block(lambda number=number: bench.write("a", f"{number:04}"))  # type: ignore[misc]
        assert told(changes) == {"a": "created" if number == 0 else "changed"}


def test_a_rewrite_that_hides_its_time_is_seen(bench: Bench) -> None:
    file = bench.write("a", "1111")
    os.utime(file, (5, 5))

    def act() -> None:
        bench.write("a", "2222")
        os.utime(file, (5, 5))

    assert told(bench.block(act)) == {"a": "changed"}


def test_fields_for_the_journal(bench: Bench) -> None:
    bench.write("old", "words\n")
    changes = bench.block(lambda: (bench.root / "old").rename(bench.root / "new"))
    fields = json.loads(json.dumps(changes.fields))
    (row,) = fields["changed"]
    assert fields["block"] == "1" and fields["off"] is None and fields["not_covered"] == []
    assert (row["path"], row["what"], row["from"]) == ("new", "renamed", "old")
    assert row["before"]["content"] == row["after"]["content"] and row["after"]["bytes"] == 6
    report = json.loads(json.dumps(bench.record.undo().fields))
    assert report["blocks"] == ["1"] and sorted(report["restored"]) == ["new", "old"]


def test_names_that_are_no_utf_8_survive(bench: Bench) -> None:
    name = os.fsdecode(b"caf\xe9")
    changes = bench.block(lambda: bench.write(name, "1"))
    assert json.loads(json.dumps(changes.fields))["changed"][0]["path"] == name
    bench.opened().undo()
    assert os.listdir(bench.root) == []


def test_a_block_that_changed_nothing(bench: Bench) -> None:
    assert not bench.block(lambda: None)
    plan = bench.record.plan_undo()
    assert plan.steps == () and bench.record.undo(plan).restored == ()


# -- differences ---------------------------------------------------------------------------------------------------


def test_difference_of_lines(bench: Bench) -> None:
    bench.write("a.txt", "one\ntwo\nthree\n")
    bench.block(lambda: bench.write("a.txt", "one\n2\nthree"))
    assert bench.record.diff(1)["a.txt"] == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+three\n\\ No newline at end of file\n"
    )


def test_differences_of_what_has_no_lines(bench: Bench) -> None:
    bench.write("picture", b"\x00\x01")
    bench.write("program", "#!/bin/sh\n")

    def act() -> None:
        bench.write("picture", b"\x00\x02")
        (bench.root / "program").chmod(0o755)
        (bench.root / "folder").mkdir()

    bench.write("program", "#!/bin/sh\n").chmod(0o644)
    bench.block(act)
    assert bench.record.diff(1) == {
        "picture": "Binary files a/picture and b/picture differ\n",
        "program": "program: mode 0644 -> 0755\n",
        "folder": "folder: new folder\n",
    }


def test_difference_of_a_block_that_is_not_known(bench: Bench) -> None:
    with pytest.raises(UndoError, match="block 7"):
        bench.record.diff(7)


# -- which block was it? ---------------------------------------------------------------------------------------------


def test_why_names_the_block(bench: Bench) -> None:
    bench.write("other", "1")
    bench.block(lambda: bench.write("a", "one\ntwo\nthree\n"))
    bench.block(lambda: bench.write("a", "zero\none\n2\nthree\n"))
    bench.block(lambda: (bench.root / "a").rename(bench.root / "b"))
    bench.write("b", "zero\none\n2\nthree\nmine\n")
    assert bench.record.why("b") == "3"
    assert [bench.record.why("b", line) for line in range(1, 7)] == ["2", "1", "2", "1", None, None]
    assert bench.record.why(bench.root / "b", 1) == "2"
    assert bench.record.why("other") is None and bench.record.why("missing", 1) is None


def test_why_forgets_what_was_undone(bench: Bench) -> None:
    bench.block(lambda: bench.write("a", "1\n"))
    bench.block(lambda: bench.write("a", "2\n"))
    bench.record.undo()
    assert bench.record.why("a", 1) == "1"


def test_paths_from_outside(bench: Bench, tmp_path: Path) -> None:
    assert bench.record.why(tmp_path / "elsewhere") is None
