"""Seconds for file undo, and for git-stash-style checkpoints of the same trees."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import ARGUMENTS, report

from interpreter import OpenInterpreter
from interpreter.workspace import FileRecord

folder = Path(tempfile.mkdtemp(prefix="bench-files-")).resolve()


def measured(act):
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def best(act, repeats=10):
    return min(measured(act) for _ in range(repeats))


def changed_and(act):
    change()
    return measured(act)


class Git:
    """Checkpoints of a folder in a separate git directory: all files are added and written as a tree."""

    def __init__(self, root):
        self.words = ["git", f"--git-dir={folder / 'git'}-{root.name}", f"--work-tree={root}", "-c", "gc.auto=0"]
        self("init", "-q")

    def __call__(self, *words):
        return subprocess.run([*self.words, *words], check=True, capture_output=True, text=True).stdout.strip()

    def checkpoint(self):
        self("add", "-A")
        return self("write-tree")

    def restore(self, tree):
        self("read-tree", "--reset", "-u", tree)


def made(root, count):
    for number in range(count):
        path = root / f"part{number // 1000}" / f"package{number // 50}" / f"module{number % 50}.py"
        if number % 50 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"number = {number}\n" * 100)
    return sorted(path for path in root.rglob("*") if path.is_file())


# -- a small workspace, with the whole product -------------------------------------------------------------------------

small_root = folder / "small"
made(small_root, 10)
timeline = OpenInterpreter(workspace=str(small_root), conversation_history=False).timeline


def small_block():
    timeline.before_block("python", "1 + 1")
    timeline.after()


small_block()
time.sleep(0.1)  # so that file times differ, and no file has to be read twice
small = statistics.median(measured(small_block) for _ in range(100))
small_git = Git(small_root)
small_git.checkpoint()
git_small = best(small_git.checkpoint)

# -- a large one -------------------------------------------------------------------------------------------------------

root = folder / "work"
paths = made(root, ARGUMENTS["files"])
names = list(map(str, paths))


def stat_all():
    """Stat every file twice: nothing that checks them before and after can be faster."""
    for _ in range(2):
        for path in names:
            os.lstat(path)


def block(work=lambda: None):
    """Measure the overhead of recording for a block that does this work."""
    before = measured(lambda: record.before(1))
    work()
    return before + measured(lambda: record.after(1))


def change():
    for path in paths[:100]:
        path.write_text(f"{time.perf_counter()}\n")


record = FileRecord(root, folder / "store")
first = measured(record.prepare)
blocks_512 = sum(os.lstat(path).st_blocks for path in (folder / "store").rglob("*"))
time.sleep(0.1)
unchanged = min(block() for _ in range(10))
changed = min(block(change) for _ in range(5))
undo = measured(record.undo)


def change_many():
    for path in paths[:1000]:
        path.write_text("changed\n")


def write_by_path():
    """Write the files of an undo without its checks, and by full paths, which a link could redirect."""
    for path in names[:1000]:
        Path(f"{path}.new").write_text("number = 1\n" * 100)
        os.chmod(f"{path}.new", 0o644)
        os.utime(f"{path}.new", ns=(1, 1))
        os.rename(f"{path}.new", path)


block(change_many)
restored = measured(record.undo)
by_path = best(write_by_path, 3)

git = Git(root)
git_first = measured(git.checkpoint)
git_unchanged = best(git.checkpoint, 5)
git_changed = min(changed_and(git.checkpoint) for _ in range(5))
tree = git.checkpoint()
change()
git.checkpoint()
git_undo = measured(lambda: git.restore(tree))
bare = best(stat_all)
shutil.rmtree(folder)
report(
    small=small,
    first=first,
    megabytes=blocks_512 * 512 / 1_000_000,
    unchanged=unchanged,
    changed=changed,
    undo=undo,
    restored=restored,
    by_path=by_path,
    git_small=git_small,
    git_first=git_first,
    git_unchanged=git_unchanged,
    git_changed=git_changed,
    git_undo=git_undo,
    bare=bare,
)
