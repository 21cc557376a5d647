"""The user's repository is theirs: index, stash and refs stay, unless undoing them is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checkpoints.trees import Shape, clear, git, shape
from checkpoints.workbench import Bench

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def repo(bench: Bench) -> Bench:
    """A repository with a commit, a stash, something staged, something ignored and something not tracked."""
    git(bench.root, "init")
    bench.write("tracked", "1")
    bench.write(".gitignore", "ignored\n")
    git(bench.root, "add", "-A")
    git(bench.root, "commit", "-m", "first")
    bench.write("tracked", "stashed")
    git(bench.root, "stash")
    bench.write("staged", "1")
    git(bench.root, "add", "staged")
    bench.write("ignored", "1")
    bench.write("untracked", "1")
    return bench


def of_git(root: Path) -> Shape:
    return shape(root / ".git")


def commit(bench: Bench) -> None:
    bench.write("tracked", "2")
    git(bench.root, "add", "-A")
    git(bench.root, "commit", "-m", "second")


def test_files_come_back_tracked_or_not_and_git_is_not_touched(repo: Bench) -> None:
    before, everything = of_git(repo.root), shape(repo.root)

    def act() -> None:
        for name in ("tracked", "staged", "ignored", "untracked"):
            repo.write(name, "2")

    repo.block(act)
    repo.record.undo()
    assert of_git(repo.root) == before and shape(repo.root) == everything
    assert git(repo.root, "stash", "list").count("\n") == 1
    assert git(repo.root, "diff", "--cached", "--name-only") == "staged\n"


def test_a_commit_of_the_block_stays(repo: Bench) -> None:
    repo.block(lambda: commit(repo))
    after = of_git(repo.root)
    plan = repo.record.plan_undo()
    (unit,) = plan.repositories
    assert (unit.folder, unit.comes_or_goes, unit.in_use) == (".git", False, False)
    report = repo.record.undo(plan)
    assert repo.read("tracked") == "1" and of_git(repo.root) == after
    assert {kept.why for kept in report.kept} == {"git's files are left alone"}
    assert git(repo.root, "log", "--format=%s") == "second\nfirst\n"


def test_it_goes_on_request_and_comes_back(repo: Bench) -> None:
    before = shape(repo.root)
    repo.block(lambda: commit(repo))
    after = shape(repo.root)
    repo.record.undo(repositories={".git"})
    assert shape(repo.root) == before and git(repo.root, "fsck") == ""
    repo.record.redo(repositories={".git"})
    assert shape(repo.root) == after and git(repo.root, "fsck") == ""


def test_a_repository_in_which_somebody_worked_since_is_left_as_a_whole(repo: Bench) -> None:
    repo.block(lambda: commit(repo))
    git(repo.root, "branch", "mine")  # stands on the block's commit, in a file of its own
    after = of_git(repo.root)
    plan = repo.record.plan_undo()
    assert plan.repositories[0].in_use
    repo.record.undo(plan, repositories={".git"})
    assert of_git(repo.root) == after and git(repo.root, "log", "--format=%s", "mine") == "second\nfirst\n"


def test_even_so_on_request_no_commit_is_lost(repo: Bench) -> None:
    repo.block(lambda: commit(repo))
    git(repo.root, "branch", "mine")
    repo.record.undo(repositories={".git"}, overwrite={".git"})
    assert git(repo.root, "log", "--format=%s") == "first\n"
    assert git(repo.root, "log", "--format=%s", "mine") == "second\nfirst\n"


def test_work_between_two_blocks_counts(repo: Bench) -> None:
    repo.block(lambda: commit(repo))
    git(repo.root, "branch", "mine")
    repo.block(lambda: repo.write("tracked", "3"))
    assert repo.opened().plan_undo(2).repositories[0].in_use
    assert repo.record.plan_undo(2).repositories[0].in_use
    assert not repo.record.plan_undo(1).repositories


def test_git_at_work(repo: Bench) -> None:
    repo.block(lambda: commit(repo))
    (repo.root / ".git" / "index.lock").touch()
    after = of_git(repo.root)
    repo.record.undo(repositories={".git"})
    assert of_git(repo.root) == after


def test_a_repository_that_a_block_made_goes(bench: Bench) -> None:
    before = shape(bench.root)

    def act() -> None:
        bench.write("sub/a", "1")
        git(bench.root / "sub", "init")
        git(bench.root / "sub", "add", "-A")
        git(bench.root / "sub", "commit", "-m", "first")

    bench.block(act)
    after = shape(bench.root)
    bench.record.undo()
    assert shape(bench.root) == before
    bench.record.redo()
    assert shape(bench.root) == after and git(bench.root / "sub", "fsck") == ""


def test_but_not_with_commits_that_are_somebody_elses(bench: Bench) -> None:
    bench.block(lambda: git(bench.root, "init"))
    bench.write("mine", "1")
    git(bench.root, "add", "-A")
    git(bench.root, "commit", "-m", "mine")
    after = shape(bench.root)
    report = bench.record.undo()
    assert shape(bench.root) == after and report.restored == ()


def test_nor_with_those_of_a_block_that_were_left(bench: Bench) -> None:
    bench.block(lambda: git(bench.root, "init"))
    bench.block(lambda: commit(bench))
    bench.record.undo()
    after = of_git(bench.root)
    bench.record.undo()
    assert of_git(bench.root) == after


def test_a_repository_that_a_block_deleted_comes_back(repo: Bench) -> None:
    before = shape(repo.root)
    repo.block(lambda: shutil.rmtree(repo.root / ".git"))
    repo.record.undo()
    assert shape(repo.root) == before and git(repo.root, "fsck") == ""


@pytest.mark.parametrize("last", ["HEAD", "config", "objects", "hooks"])
def test_so_does_one_whose_deletion_was_cut_off(repo: Bench, last: str) -> None:
    """Git never removes these itself, so what is gone besides them is not git's doing either."""
    before = shape(repo.root)

    def act() -> None:
        clear(repo.root / ".git" / "refs" / "heads")
        clear(repo.root / ".git" / last)

    repo.block(act)
    repo.record.undo()
    assert shape(repo.root) == before and git(repo.root, "fsck") == ""
    repo.record.redo()
    assert git(repo.root, "fsck") == ""
