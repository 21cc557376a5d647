"""The changes of a block: by kind, as journal fields, as diffs, and which block a line comes from."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from interpreter.errors import UndoError
from interpreter.workspace import Changes


def kinds_of(changes: Changes) -> dict[str, str]:
    return {change.path: change.what for change in changes.listed}


def test_every_kind_of_change_is_listed(workspace: RecordedWorkspace) -> None:
    for name in ("changed", "deleted", "renamed", "mode", "touched", "folder/inside"):
        workspace.write(name, f"what {name} held\n")

    def act() -> None:
        workspace.write("changed", "other")
        workspace.write("created", "new")
        (workspace.root / "deleted").unlink()
        (workspace.root / "renamed").rename(workspace.root / "elsewhere")
        (workspace.root / "mode").chmod(0o700)
        os.utime(workspace.root / "touched", (1, 1))
        (workspace.root / "link").symlink_to("nowhere")
        (workspace.root / "empty").mkdir()
        shutil.rmtree(workspace.root / "folder")

    assert kinds_of(workspace.block(act)) == {
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


def test_a_file_that_was_copied_and_deleted_is_renamed(workspace: RecordedWorkspace) -> None:
    workspace.write("old", "words\n")

    def act() -> None:
        shutil.copy(workspace.root / "old", workspace.root / "new")
        (workspace.root / "old").unlink()

    (change,) = workspace.block(act).listed
    assert (change.what, change.source, change.path) == ("renamed", "old", "new")


def test_reading_a_file_is_not_a_change(workspace: RecordedWorkspace) -> None:
    workspace.write("a", "words")
    assert not workspace.block(lambda: workspace.read("a"))


def test_changes_between_blocks_belong_to_no_block(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: workspace.write("a", "1"))
    workspace.write("a", "2")
    assert not workspace.block(lambda: None)


def test_quick_rewrites_of_the_same_size_are_detected(workspace: RecordedWorkspace) -> None:
    for number in range(100):
        changes = workspace.block(lambda number=number: workspace.write("a", f"{number:04}"))  # type: ignore[misc]
        assert kinds_of(changes) == {"a": "created" if number == 0 else "changed"}


def test_rewrites_with_a_restored_timestamp_are_detected(workspace: RecordedWorkspace) -> None:
    file = workspace.write("a", "1111")
    os.utime(file, (5, 5))

    def act() -> None:
        workspace.write("a", "2222")
        os.utime(file, (5, 5))

    assert kinds_of(workspace.block(act)) == {"a": "changed"}


def test_changes_are_available_as_journal_fields(workspace: RecordedWorkspace) -> None:
    workspace.write("old", "words\n")
    changes = workspace.block(lambda: (workspace.root / "old").rename(workspace.root / "new"))
    fields = json.loads(json.dumps(changes.fields))
    (row,) = fields["changed"]
    assert fields["block"] == "1" and fields["off"] is None and fields["not_covered"] == []
    assert (row["path"], row["what"], row["from"]) == ("new", "renamed", "old")
    assert row["before"]["content"] == row["after"]["content"] and row["after"]["bytes"] == 6
    report = json.loads(json.dumps(workspace.record.undo().fields))
    assert report["blocks"] == ["1"] and sorted(report["restored"]) == ["new", "old"]


def test_names_that_are_not_utf_8_survive(workspace: RecordedWorkspace) -> None:
    name = os.fsdecode(b"caf\xe9")
    changes = workspace.block(lambda: workspace.write(name, "1"))
    assert json.loads(json.dumps(changes.fields))["changed"][0]["path"] == name
    workspace.opened().undo()
    assert os.listdir(workspace.root) == []


def test_undoing_a_block_without_changes_does_nothing(workspace: RecordedWorkspace) -> None:
    assert not workspace.block(lambda: None)
    plan = workspace.record.plan_undo()
    assert plan.steps == () and workspace.record.undo(plan).restored == ()


# -- diffs ---------------------------------------------------------------------------------------------------------


def test_text_files_have_a_unified_diff(workspace: RecordedWorkspace) -> None:
    workspace.write("a.txt", "one\ntwo\nthree\n")
    workspace.block(lambda: workspace.write("a.txt", "one\n2\nthree"))
    assert workspace.record.diff(1)["a.txt"] == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+three\n\\ No newline at end of file\n"
    )


def test_binary_files_modes_and_folders_have_a_short_diff(workspace: RecordedWorkspace) -> None:
    workspace.write("picture", b"\x00\x01")
    workspace.write("program", "#!/bin/sh\n")

    def act() -> None:
        workspace.write("picture", b"\x00\x02")
        (workspace.root / "program").chmod(0o755)
        (workspace.root / "folder").mkdir()

    workspace.write("program", "#!/bin/sh\n").chmod(0o644)
    workspace.block(act)
    assert workspace.record.diff(1) == {
        "picture": "Binary files a/picture and b/picture differ\n",
        "program": "program: mode 0644 -> 0755\n",
        "folder": "folder: new folder\n",
    }


def test_the_diff_of_an_unknown_block_is_an_error(workspace: RecordedWorkspace) -> None:
    with pytest.raises(UndoError, match="block 7"):
        workspace.record.diff(7)


# -- which block was it? ---------------------------------------------------------------------------------------------


def test_why_names_the_block(workspace: RecordedWorkspace) -> None:
    workspace.write("other", "1")
    workspace.block(lambda: workspace.write("a", "one\ntwo\nthree\n"))
    workspace.block(lambda: workspace.write("a", "zero\none\n2\nthree\n"))
    workspace.block(lambda: (workspace.root / "a").rename(workspace.root / "b"))
    workspace.write("b", "zero\none\n2\nthree\nmine\n")
    assert workspace.record.why("b") == "3"
    assert [workspace.record.why("b", line) for line in range(1, 7)] == ["2", "1", "2", "1", None, None]
    assert workspace.record.why(workspace.root / "b", 1) == "2"
    assert workspace.record.why("other") is None and workspace.record.why("missing", 1) is None


def test_why_ignores_undone_blocks(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: workspace.write("a", "1\n"))
    workspace.block(lambda: workspace.write("a", "2\n"))
    workspace.record.undo()
    assert workspace.record.why("a", 1) == "1"


def test_why_knows_no_paths_outside_the_workspace(workspace: RecordedWorkspace, tmp_path: Path) -> None:
    assert workspace.record.why(tmp_path / "elsewhere") is None
