"""Seconds for file undo in a workspace of 20 GB, in sparse files."""

import os
import shutil
import tempfile
import time
from pathlib import Path

from common import ARGUMENTS, report

from interpreter.workspace import FileRecord

folder = Path(tempfile.mkdtemp(prefix="bench-files-")).resolve()
root, names = folder / "work", []
for number in range(ARGUMENTS["files"]):
    path = root / f"part{number // 10_000}" / f"set{number // 100}" / f"{number % 100}.bin"
    if number % 100 == 0:
        path.parent.mkdir(parents=True)
    with open(path, "wb") as file:
        file.truncate(100_000)
    names.append(str(path))


def measured(act):
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def block():
    record.before(1)
    Path(names[0]).write_bytes(os.urandom(1000))
    record.after(1)


def stat_all():
    for _ in range(2):
        for name in names:
            os.lstat(name)


record = FileRecord(root, folder / "store")
first = measured(lambda: record.prepare(0))
record.prepare_in_background()
block()
cost = min(measured(block) for _ in range(5))
bare = measured(stat_all)
shutil.rmtree(folder)
report(first=first, block=cost, bare=bare)
