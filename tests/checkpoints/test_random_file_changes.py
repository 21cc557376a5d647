"""Random file changes: undo restores the tree before any number of blocks, and redo the tree after them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints.trees import Shape, clear, git, shape
from interpreter.workspace import FileRecord, RestorePlan, tree

NAMES = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "A", "repo", "repo/a", "repo/d/a", "ü", os.fsdecode(b"\xff\xfe")]
paths = st.sampled_from(NAMES)
contents = st.one_of(st.binary(max_size=12), st.sampled_from([b"", b"one\ntwo\n", b"x" * 70_000]))
modes = st.sampled_from([0o600, 0o644, 0o755, 0o400, 0o000])
GIT_WORDS = [
    ("init",),
    ("add", "-A"),
    ("commit", "-q", "--allow-empty", "-m", "words"),
    ("checkout", "-q", "-b", "other"),
    ("checkout", "-q", "main"),
    ("stash", "-u"),
    ("rm", "-r", "-q", "--cached", "."),
]

effects = st.one_of(
    st.tuples(st.just("write"), paths, contents),
    st.tuples(st.just("append"), paths, contents),
    st.tuples(st.just("truncate"), paths, st.integers(0, 5)),
    st.tuples(st.just("replace"), paths, contents),
    st.tuples(st.just("delete"), paths, st.none()),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("exchange"), paths, paths),
    st.tuples(st.just("chmod"), paths, modes),
    st.tuples(st.just("symlink"), paths, paths),
    st.tuples(st.just("link"), paths, paths),
    st.tuples(st.just("mkdir"), paths, st.none()),
    st.tuples(st.just("rmdir"), paths, st.none()),
    st.tuples(st.just("touch"), paths, st.integers(0, 2_000_000_000_000_000_000)),
    st.tuples(st.just("git"), st.just("repo"), st.sampled_from(GIT_WORDS)),
)
programs = st.lists(st.lists(effects, min_size=1, max_size=8), min_size=1, max_size=5)
watched = st.sampled_from([0, 2_000])  # whether the tree is watched, or scanned each time
walks = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def populate(root: Path) -> None:
    """Create the files before the first block, including a repository."""
    (root / "d" / "e").mkdir(parents=True)
    (root / "repo").mkdir()
    (root / "a").write_bytes(b"one\ntwo\n")
    (root / "b").symlink_to("a")
    (root / "d" / "a").write_bytes(b"one\ntwo\n")
    (root / "d" / "b").write_bytes(b"\x00\x01")
    (root / "repo" / "a").write_bytes(b"x" * 70_000)
    for words in (("init",), ("add", "-A"), ("commit", "-q", "-m", "words")):
        git(root / "repo", *words)


def write(root: Path, path: Path, data: bytes) -> None:
    path.write_bytes(data)


def append(root: Path, path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def truncate(root: Path, path: Path, size: int) -> None:
    os.truncate(path, size)


def replace(root: Path, path: Path, data: bytes) -> None:
    (root / "temporary").write_bytes(data)
    (root / "temporary").rename(path)


def delete(root: Path, path: Path, _: None) -> None:
    clear(path)


def rename(root: Path, path: Path, other: str) -> None:
    path.rename(root / other)


def exchange(root: Path, path: Path, other: str) -> None:
    path.rename(root / "temporary")
    (root / other).rename(path)
    (root / "temporary").rename(root / other)


def chmod(root: Path, path: Path, mode: int) -> None:
    path.chmod(mode | (0o500 if path.is_dir() else 0))


def symlink(root: Path, path: Path, other: str) -> None:
    path.symlink_to(other)


def link(root: Path, path: Path, other: str) -> None:
    os.link(path, root / other, follow_symlinks=False)


def mkdir(root: Path, path: Path, _: None) -> None:
    path.mkdir(parents=True)


def rmdir(root: Path, path: Path, _: None) -> None:
    path.rmdir()


def touch(root: Path, path: Path, when: int) -> None:
    os.utime(path, ns=(when, when))


def run_git(root: Path, path: Path, words: tuple[str, ...]) -> None:
    path.mkdir(exist_ok=True)
    if words == ("init",) or (path / ".git").is_dir():
        git(path, *words)


EFFECTS: dict[str, Callable[[Path, Path, object], None]] = {
    each.__name__: each  # type: ignore[misc]
    for each in (write, append, truncate, replace, delete, rename, exchange, chmod, symlink, link, mkdir, rmdir, touch)
} | {"git": run_git}  # type: ignore[dict-item]


def run(root: Path, block: list[tuple[str, str, object]]) -> None:
    """Run a block; effects that fail are skipped."""
    for name, path, extra in block:
        try:
            EFFECTS[name](root, root / path, extra)
        except OSError:
            continue
        finally:
            clear(root / "temporary")


def move(record: FileRecord, position: int) -> None:
    """Undo or redo until this many blocks are in effect."""
    here = len(record.blocks)
    if position == here:
        return
    plan = record.plan_undo(here - position) if position < here else record.plan_redo(position - here)
    assert not plan.drift
    act = record.undo if position < here else record.redo
    report = act(plan, repositories=all_repositories(plan))
    assert not report.failed and not report.kept


def all_repositories(plan: RestorePlan) -> set[str]:
    return {each.folder for each in plan.repositories}


def check(program: list[list[tuple[str, str, object]]], walk: list[int], watch_from: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "WATCH_FROM", watch_from)
        root = Path(folder).resolve() / "work"
        populate(root)
        record = FileRecord(root, Path(folder) / "store")
        seen: list[Shape] = [shape(root)]
        for number, block in enumerate(program):
            coverage = record.before(number)
            assert coverage.off is None and not coverage.not_covered
            run(root, block)
            record.after(number)
            seen.append(shape(root))
        for stop in [*walk, 0, len(program), 0]:
            position = min(stop, len(program))
            move(record, position)
            assert shape(root) == seen[position]
        os.chmod(root, 0o700)


@pytest.mark.needs("git")
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, walks, watched)
def test_undo_and_redo_restore_random_file_changes(
    program: list[list[tuple[str, str, object]]], walk: list[int], watch_from: int
) -> None:
    check(program, walk, watch_from)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.needs("git")
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, walks, watched)
def test_undo_and_redo_restore_many_random_file_changes(
    program: list[list[tuple[str, str, object]]], walk: list[int], watch_from: int
) -> None:
    check(program, walk, watch_from)
