"""A program swaps a workspace folder for a link while the host uses it: the host never leaves the workspace."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from host.folder_swapper import swapper
from interpreter.host.files import Folder
from interpreter.preview.layers import Layer, write_layer
from interpreter.workspace.merge import copy_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the swapper uses renameat2")
FILES = 300
SECRET = b"-----BEGIN KEY-----"

_WAIT_AND_SWAP = """
import ctypes, os, sys
folder, outside, awaited = sys.argv[1:]
os.symlink(outside, folder + ".swapped")
print("ready", flush=True)
while not os.path.exists(awaited):
    pass
ctypes.CDLL(None).renameat2(-100, os.fsencode(folder), -100, os.fsencode(folder + ".swapped"), 2)
"""


@contextmanager
def _swap_once(folder: Path, outside: Path, awaited: Path) -> Iterator[None]:
    command = [sys.executable, "-c", _WAIT_AND_SWAP, folder, outside, awaited]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield
        process.wait(10)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside the workspace, with secrets in files of the same names."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:03}").write_bytes(SECRET)
    return folder


def _write(workspace: RecordedWorkspace, words: str) -> None:
    for number in range(FILES):
        workspace.write(f"d/{number:03}", f"{words} {number}" * 50)


def _untouched(outside: Path) -> bool:
    return {file.name: file.read_bytes() for file in outside.iterdir()} == {
        f"{number:03}": SECRET for number in range(FILES)
    }


def test_undo_does_not_follow_a_swapped_folder(workspace: RecordedWorkspace, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    _write(workspace, "chosen by the block")
    workspace.block(lambda: [(workspace.root / "d" / f"{number:03}").unlink() for number in range(FILES)])
    with _swap_once(workspace.root / "d", target, workspace.root / "d" / "000"):
        report = workspace.record.undo()
    assert list(target.iterdir()) == []
    assert (workspace.root / "d").is_symlink() and len(report.kept) + len(report.failed) > 0


@pytest.mark.parametrize("rounds", [4, pytest.param(200, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
def test_recording_does_not_follow_a_swapped_folder(workspace: RecordedWorkspace, outside: Path, rounds: int) -> None:
    _write(workspace, "first")
    for number in range(rounds):
        with swapper(workspace.root / "d", outside):
            workspace.record.before(number)
            for file in range(0, FILES, 3):
                with Folder(workspace.root) as folder:
                    try:
                        folder.write_bytes(f"d/{file:03}", b"block %d" % number)
                    except OSError:
                        continue
            workspace.record.after(number)
            if number % 2:
                workspace.record.undo()
        assert hashlib.sha256(SECRET).hexdigest() not in workspace.record.store.hashes
        assert _untouched(outside)


def test_a_fork_does_not_copy_from_outside(workspace: RecordedWorkspace, outside: Path, tmp_path: Path) -> None:
    _write(workspace, "first")
    for number in range(5):
        with swapper(workspace.root / "d", outside):
            try:
                copy_tree(workspace.root, tmp_path / f"copy{number}")
            except OSError:
                continue
        copied = tmp_path / f"copy{number}" / "d"
        assert copied.is_symlink() or not any(file.read_bytes() == SECRET for file in copied.iterdir())


def test_applying_a_preview_does_not_write_outside(workspace: RecordedWorkspace, outside: Path, tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    for number in range(FILES):
        file = upper / "d" / f"{number:03}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"previewed {number}")
    _write(workspace, "first")
    layer = Layer(str(workspace.root), str(upper), time.time_ns())
    with swapper(workspace.root / "d", outside):
        write_layer(layer, overwrite=layer.changes.pairs)
    assert _untouched(outside)


@pytest.mark.full
def test_a_preview_may_delete_deeply_nested_folders(workspace: RecordedWorkspace, tmp_path: Path) -> None:
    with Folder(workspace.root) as folder:
        folder.mkdir("/".join("d" * 1200), parents=True)
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "d").write_text("a file in its place")
    layer = Layer(str(workspace.root), str(upper), time.time_ns())
    assert len(layer.changes.pairs) == 1200
    write_layer(layer)
    assert workspace.read("d") == "a file in its place"
