"""Undo keeps the user's git index, stash and refs unless it is asked to restore them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checkpoints.recorded_workspace import RecordedWorkspace
from checkpoints.trees import Shape, clear, git, shape

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def repo(workspace: RecordedWorkspace) -> RecordedWorkspace:
    """A repository with a commit, a stash, something staged, something ignored and something not tracked."""
    git(workspace.root, "init")
    workspace.write("tracked", "1")
    workspace.write(".gitignore", "ignored\n")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-m", "first")
    workspace.write("tracked", "stashed")
    git(workspace.root, "stash")
    workspace.write("staged", "1")
    git(workspace.root, "add", "staged")
    workspace.write("ignored", "1")
    workspace.write("untracked", "1")
    return workspace


def git_files(root: Path) -> Shape:
    return shape(root / ".git")


def commit(workspace: RecordedWorkspace) -> None:
    workspace.write("tracked", "2")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-m", "second")


def test_undo_restores_tracked_and_untracked_files_without_touching_git(repo: RecordedWorkspace) -> None:
    before, everything = git_files(repo.root), shape(repo.root)

    def act() -> None:
        for name in ("tracked", "staged", "ignored", "untracked"):
            repo.write(name, "2")

    repo.block(act)
    repo.record.undo()
    assert git_files(repo.root) == before and shape(repo.root) == everything
    assert git(repo.root, "stash", "list").count("\n") == 1
    assert git(repo.root, "diff", "--cached", "--name-only") == "staged\n"


def test_undo_keeps_a_commit_of_the_block(repo: RecordedWorkspace) -> None:
    repo.block(lambda: commit(repo))
    after = git_files(repo.root)
    plan = repo.record.plan_undo()
    (unit,) = plan.repositories
    assert (unit.folder, unit.comes_or_goes, unit.in_use) == (".git", False, False)
    report = repo.record.undo(plan)
    assert repo.read("tracked") == "1" and git_files(repo.root) == after
    assert {kept.why for kept in report.kept} == {"git's files are left alone"}
    assert git(repo.root, "log", "--format=%s") == "second\nfirst\n"


def test_commits_are_undone_and_redone_on_request(repo: RecordedWorkspace) -> None:
    before = shape(repo.root)
    repo.block(lambda: commit(repo))
    after = shape(repo.root)
    repo.record.undo(repositories={".git"})
    assert shape(repo.root) == before and git(repo.root, "fsck") == ""
    repo.record.redo(repositories={".git"})
    assert shape(repo.root) == after and git(repo.root, "fsck") == ""


def test_a_repository_used_since_the_block_is_left_unchanged(repo: RecordedWorkspace) -> None:
    repo.block(lambda: commit(repo))
    git(repo.root, "branch", "mine")  # points to the block's commit, in a separate file
    after = git_files(repo.root)
    plan = repo.record.plan_undo()
    assert plan.repositories[0].in_use
    repo.record.undo(plan, repositories={".git"})
    assert git_files(repo.root) == after and git(repo.root, "log", "--format=%s", "mine") == "second\nfirst\n"


def test_overwriting_a_used_repository_loses_no_commit(repo: RecordedWorkspace) -> None:
    repo.block(lambda: commit(repo))
    git(repo.root, "branch", "mine")
    repo.record.undo(repositories={".git"}, overwrite={".git"})
    assert git(repo.root, "log", "--format=%s") == "first\n"
    assert git(repo.root, "log", "--format=%s", "mine") == "second\nfirst\n"


def test_git_work_between_two_blocks_marks_the_repository_as_used(repo: RecordedWorkspace) -> None:
    repo.block(lambda: commit(repo))
    git(repo.root, "branch", "mine")
    repo.block(lambda: repo.write("tracked", "3"))
    assert repo.opened().plan_undo(2).repositories[0].in_use
    assert repo.record.plan_undo(2).repositories[0].in_use
    assert not repo.record.plan_undo(1).repositories


def test_a_locked_repository_is_left_unchanged(repo: RecordedWorkspace) -> None:
    repo.block(lambda: commit(repo))
    (repo.root / ".git" / "index.lock").touch()
    after = git_files(repo.root)
    repo.record.undo(repositories={".git"})
    assert git_files(repo.root) == after


def test_undo_removes_a_repository_created_by_the_block(workspace: RecordedWorkspace) -> None:
    before = shape(workspace.root)

    def act() -> None:
        workspace.write("sub/a", "1")
        git(workspace.root / "sub", "init")
        git(workspace.root / "sub", "add", "-A")
        git(workspace.root / "sub", "commit", "-m", "first")

    workspace.block(act)
    after = shape(workspace.root)
    workspace.record.undo()
    assert shape(workspace.root) == before
    workspace.record.redo()
    assert shape(workspace.root) == after and git(workspace.root / "sub", "fsck") == ""


def test_undo_keeps_a_created_repository_with_user_commits(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: git(workspace.root, "init"))
    workspace.write("mine", "1")
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-m", "mine")
    after = shape(workspace.root)
    report = workspace.record.undo()
    assert shape(workspace.root) == after and report.restored == ()


def test_undo_keeps_a_created_repository_with_commits_of_another_block(workspace: RecordedWorkspace) -> None:
    workspace.block(lambda: git(workspace.root, "init"))
    workspace.block(lambda: commit(workspace))
    workspace.record.undo()
    after = git_files(workspace.root)
    workspace.record.undo()
    assert git_files(workspace.root) == after


def test_undo_restores_a_deleted_repository(repo: RecordedWorkspace) -> None:
    before = shape(repo.root)
    repo.block(lambda: shutil.rmtree(repo.root / ".git"))
    repo.record.undo()
    assert shape(repo.root) == before and git(repo.root, "fsck") == ""


@pytest.mark.parametrize("last", ["HEAD", "config", "objects", "hooks"])
def test_undo_restores_a_partly_deleted_repository(repo: RecordedWorkspace, last: str) -> None:
    """Git never removes these files itself, so the block deleted them and all others that are missing."""
    before = shape(repo.root)

    def act() -> None:
        clear(repo.root / ".git" / "refs" / "heads")
        clear(repo.root / ".git" / last)

    repo.block(act)
    repo.record.undo()
    assert shape(repo.root) == before and git(repo.root, "fsck") == ""
    repo.record.redo()
    assert git(repo.root, "fsck") == ""
