"""A program swaps a folder of the workspace for a link while the host works in it: nothing leads outside."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpoints.workbench import Bench
from host.swapping import swapper
from interpreter.host.files import Folder
from interpreter.workspace.merge import Layer, copy_tree, write_layer

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
    """A folder outside, with secrets in files of the same names."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:03}").write_bytes(SECRET)
    return folder


def _write(bench: Bench, words: str) -> None:
    for number in range(FILES):
        bench.write(f"d/{number:03}", f"{words} {number}" * 50)


def _untouched(outside: Path) -> bool:
    return {file.name: file.read_bytes() for file in outside.iterdir()} == {
        f"{number:03}": SECRET for number in range(FILES)
    }


def test_an_undo_does_not_follow_a_folder_that_is_swapped(bench: Bench, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    _write(bench, "chosen by the block")
    bench.block(lambda: [(bench.root / "d" / f"{number:03}").unlink() for number in range(FILES)])
    with _swap_once(bench.root / "d", target, bench.root / "d" / "000"):
        report = bench.record.undo()
    assert list(target.iterdir()) == []
    assert (bench.root / "d").is_symlink() and len(report.kept) + len(report.failed) > 0


def _store(bench: Bench, outside: Path, rounds: int) -> None:
    """Blocks write all files while a folder is swapped: is a secret stored, or anything outside changed?"""
    _write(bench, "first")
    for number in range(rounds):
        with swapper(bench.root / "d", outside):
            bench.record.before(number)
            for file in range(0, FILES, 3):
                with Folder(bench.root) as folder:
                    try:
                        folder.write_bytes(f"d/{file:03}", b"block %d" % number)
                    except OSError:
                        continue
            bench.record.after(number)
            if number % 2:
                bench.record.undo()
        assert hashlib.sha256(SECRET).hexdigest() not in bench.record.store.hashes
        assert _untouched(outside)


def test_a_block_s_files_are_stored_without_following_a_swapped_folder(bench: Bench, outside: Path) -> None:
    _store(bench, outside, 4)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_block_s_files_are_never_stored_from_outside(bench: Bench, outside: Path) -> None:
    _store(bench, outside, 200)


def test_a_fork_does_not_copy_from_outside(bench: Bench, outside: Path, tmp_path: Path) -> None:
    _write(bench, "first")
    for number in range(5):
        with swapper(bench.root / "d", outside):
            try:
                copy_tree(bench.root, tmp_path / f"copy{number}")
            except OSError:
                continue
        copied = tmp_path / f"copy{number}" / "d"
        assert copied.is_symlink() or not any(file.read_bytes() == SECRET for file in copied.iterdir())


def test_applying_a_preview_does_not_write_outside(bench: Bench, outside: Path, tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    for number in range(FILES):
        file = upper / "d" / f"{number:03}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"previewed {number}")
    _write(bench, "first")
    layer = Layer(str(bench.root), str(upper), time.time_ns())
    with swapper(bench.root / "d", outside):
        write_layer(layer, overwrite=layer.changes.pairs)
    assert _untouched(outside)


@pytest.mark.full
def test_a_preview_that_deletes_folders_in_each_other_does_not_exhaust_the_stack(bench: Bench, tmp_path: Path) -> None:
    with Folder(bench.root) as folder:
        folder.mkdir("/".join("d" * 1200), parents=True)
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "d").write_text("a file in its place")
    layer = Layer(str(bench.root), str(upper), time.time_ns())
    assert len(layer.changes.pairs) == 1200
    write_layer(layer)
    assert bench.read("d") == "a file in its place"
