"""The status line shows the branch, with a star while something is not committed; `%diff` says where branches went."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.frontends.terminal.magics.workspace import _moved_ref
from interpreter.frontends.terminal.prompt import status_facts
from interpreter.repo.ci import since
from interpreter.repo.git import GitError, Repository
from interpreter.repo.status import branch, is_dirty
from repo.repositories import git, make_repository, shell

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "work")
    git(made, "reset", "-q", "--hard")
    return made


@pytest.mark.parametrize(
    ("script", "dirty"),
    [
        ("true", False),
        ("touch one.txt two.txt", False),  # other times, the same content
        ("echo new > untracked.txt", False),
        ("echo mine >> one.txt", True),
        ("rm one.txt", True),
        ("echo mine >> one.txt; git add one.txt", True),
        ("echo mine > new.txt; git add new.txt", True),
        ("git commit -q --allow-empty -m x; git checkout -q other", False),
    ],
)
def test_a_star_stands_for_changes_that_are_not_committed(folder: Path, script: str, dirty: bool) -> None:
    shell(folder, script)
    assert is_dirty(Repository(str(folder))) == dirty


def test_the_branch_is_on_the_status_line(folder: Path, tmp_path: Path) -> None:
    assert status_facts(OpenInterpreter(workspace=str(folder)))[-2] == "main"
    git(folder, "checkout", "-q", "--detach")
    assert branch(OpenInterpreter(workspace=str(folder))) == f"{git(folder, 'rev-parse', 'HEAD')[:7]} (detached)"
    assert branch(OpenInterpreter(workspace=str(tmp_path))) == ""


def test_the_workspace_is_compared_with_a_commit(folder: Path, tmp_path: Path) -> None:
    shell(folder, "echo mine >> one.txt; rm new.txt; touch two.txt; git branch -q old HEAD~1; mkdir .sub")
    shell(folder, "echo new > .sub/new.md; echo '*.log' > .gitignore; echo x > a.log; printf 'a\\0b' > b.bin")
    shown = "".join(since(OpenInterpreter(workspace=str(folder)), "HEAD"))
    added = {line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")}
    assert added == {"+mine", "+new", "+*.log"}
    assert "two.txt" not in shown and "a.log" not in shown and "Binary files /dev/null and b/b.bin differ" in shown
    for name in ("HEAD~1", "old", "v1", git(folder, "rev-parse", "--short", "HEAD~1").strip(), "refs/heads/old"):
        assert "+more" in "".join(since(OpenInterpreter(workspace=str(folder)), name))
    inside = list(since(OpenInterpreter(workspace=str(folder / ".sub")), "main"))
    assert len(inside) == 1 and "+new" in inside[0]
    for name in ("nothing", "--output=x", "HEAD~9", "../main", "a b"):
        with pytest.raises(GitError, match="There is no commit"):
            list(since(OpenInterpreter(workspace=str(folder)), name))
    with pytest.raises(GitError, match="%rewind lists them"):
        list(since(OpenInterpreter(workspace=str(tmp_path)), "last"))


def test_a_diff_of_git_files_says_where_branches_went() -> None:
    moved = f"--- a\n+++ b\n-{'1' * 40}\n+{'2' * 40}\n"
    assert _moved_ref(".git/refs/heads/main", moved) == ".git: main went from 1111111 to 2222222"
    head = "--- a\n+++ b\n-ref: refs/heads/main\n+ref: refs/heads/feature\n"
    assert _moved_ref("lib/.git/HEAD", head) == "lib/.git: HEAD went from main to feature"
    assert _moved_ref(".git/refs/stash", f"+{'3' * 40}\n") == ".git: stash went from nothing to 3333333"
    assert _moved_ref(".git/index", moved) == _moved_ref("a.txt", moved) == ""
