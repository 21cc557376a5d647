"""Seconds that the record of a workspace's files costs, and git-stash-style checkpoints of the same tree."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from common import ARGUMENTS, tell

from interpreter.safety import FileRecord

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]


def measured(act):
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def best(act, repeats=10):
    return min(measured(act) for _ in range(repeats))


def stat_all():
    """What nothing can be cheaper than that looks at every file, before and after."""
    for _ in range(2):
        for path in names:
            os.lstat(path)


def block(work=lambda: None):
    record.before(1)
    work()
    record.after(1)


def change():
    for path in paths[:100]:
        path.write_text(f"{time.perf_counter()}\n")


def checkpoint():
    subprocess.run([*GIT, "add", "-A"], cwd=root, check=True)
    subprocess.run([*GIT, "stash", "create"], cwd=root, check=True, stdout=subprocess.DEVNULL)


def changed_and(act):
    change()
    return measured(act)


folder = Path(tempfile.mkdtemp(prefix="bench-files-")).resolve()
root = folder / "work"
for number in range(ARGUMENTS["files"]):
    path = root / f"part{number // 1000}" / f"package{number // 50}" / f"module{number % 50}.py"
    if number % 50 == 0:
        path.parent.mkdir(parents=True)
    path.write_text(f"number = {number}\n" * 100)
paths = sorted(path for path in root.rglob("*") if path.is_file())
names = list(map(str, paths))

record = FileRecord(root, folder / "store")
first = measured(record.prepare)
time.sleep(0.1)  # until the clock has moved on, and nothing has to be read twice
unchanged = best(block)
changed = best(lambda: block(change), 5) - best(change, 5)
undo = measured(record.undo)

subprocess.run([*GIT, "init", "-q"], cwd=root, check=True)
git_first = measured(lambda: subprocess.run([*GIT, "add", "-A"], cwd=root, check=True))
subprocess.run([*GIT, "commit", "-qm", "first"], cwd=root, check=True)
git_unchanged = best(checkpoint, 5)
git_changed = min(changed_and(checkpoint) for _ in range(5))
bare = best(stat_all)
shutil.rmtree(folder)
tell(
    first=first,
    unchanged=unchanged,
    changed=changed,
    undo=undo,
    git_first=git_first,
    git_unchanged=git_unchanged,
    git_changed=git_changed,
    bare=bare,
)
