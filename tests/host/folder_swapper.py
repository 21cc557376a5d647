"""A program that swaps a folder for a link to an outside folder and back, as fast as it can."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
import ctypes, os, sys
folder, outside = sys.argv[1:]
os.symlink(outside, folder + ".swapped")
libc = ctypes.CDLL(None)
names = [os.fsencode(folder), os.fsencode(folder + ".swapped")]
print("ready", flush=True)
while True:
    libc.renameat2(-100, names[0], -100, names[1], 2)  # exchange them atomically: the name always exists
"""


@contextmanager
def swapper(folder: Path, outside: Path) -> Iterator[None]:
    """Keep swapping the folder inside the `with` block, and restore it at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, folder, outside], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.kill()
    other = folder.with_name(f"{folder.name}.swapped")
    if folder.is_symlink():
        folder.unlink()
        other.rename(folder)
    elif other.is_symlink():
        other.unlink()
    elif other.exists():  # an undo may have deleted it
        shutil.rmtree(other)  # the link was replaced by a folder
