"""An undo knows git: HEAD, branches, index, stash and files go back, unless others have moved them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.repo.undo import KEPT, index_entries
from repo.repositories import git, make_repository, state

pytestmark = pytest.mark.needs("git")

OPERATIONS = [
    "git commit -qm staged",
    "git commit -qam everything",
    "git add -A && git commit -qm all",
    "git add two.txt",
    "git reset -q",
    "git reset -q --hard",
    "git reset -q --hard && git clean -fdq",
    "git reset -q --soft HEAD~1",
    "git checkout -q -b feature",
    "git stash -q && git checkout -q other",
    "git stash -q -u",
    "git stash drop -q",
    "git reset -q --hard && git stash pop -q",
    "git branch -D other",
    "git branch -m other another",
    "git commit -q --amend -m amended",
    "git reset -q --hard && git merge -q --no-ff -m merged other; git reset -q --hard HEAD~1",
    "git checkout -q --detach",
    "git tag v2 && git tag -d v1",
    "git rm -q --cached one.txt",
    "git mv one.txt renamed.txt",
    "git restore --staged one.txt && git restore two.txt",
    "git reset -q --hard && git checkout -q other && echo x > one.txt && git commit -qam x && git checkout -q main",
    "git reset -q --hard && git checkout -q other && echo x > two.txt && git commit -qam x && (git merge -q main || true)",
    "git reset -q --hard && git checkout -q other && echo x > two.txt && git commit -qam x && (git rebase -q main || true)",
    "git reset -q --hard && git revert --no-edit HEAD",
    "git reset -q --hard && git cherry-pick --allow-empty --keep-redundant-commits other || true",
    "git gc -q --prune=now",
    "git pack-refs --all && git commit -qam packed",
]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[OpenInterpreter]:
    made = OpenInterpreter(workspace=str(make_repository(tmp_path / "work")))
    yield made
    made.computer.terminate()


def run(session: OpenInterpreter, code: str) -> str:
    return "".join(message["content"] for message in session.computer.run("shell", code))


@pytest.mark.full
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_git_operation_is_undone(session: OpenInterpreter, operation: str) -> None:
    folder = Path(session.workspace)
    before = state(folder)
    run(session, operation)
    changed = state(folder) != before
    git(folder, "status")  # refreshes the index, which is no change
    session.undo(blocks=True)
    assert state(folder) == before and git(folder, "fsck", "--no-dangling") == ""
    assert changed or "gc" in operation


def test_a_commit_is_undone_and_kept_under_a_ref(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    before = state(folder)
    run(
        session,
        "echo new >> one.txt; git commit -qam 'By the model' && git checkout -q -b feature && git stash drop -q",
    )
    commit, stash = git(folder, "rev-parse", "HEAD").strip(), before["stash"].split()[1]
    undone = session.undo(blocks=True)
    assert state(folder) == before and undone.plan.repositories is not None
    assert f".git: the branch main goes from {commit[:7]} to {before['head'][:7]}" in undone.plan.repositories.lines
    assert ".git: HEAD goes from feature to main" in undone.plan.repositories.lines
    kept = git(folder, "for-each-ref", KEPT, "--format=%(objectname)").split()
    assert commit in kept and stash not in kept  # the stash is back
    session.redo(blocks=True)
    assert git(folder, "rev-parse", "feature").strip() == commit
    assert git(folder, "symbolic-ref", "HEAD").strip() == "refs/heads/feature"


@pytest.mark.parametrize(
    ("by_others", "named"),
    [
        ("git commit -q --allow-empty -m mine", "the branch main"),
        ("git checkout -q -b mine", "HEAD"),
        ("git add new.txt", "the index"),
    ],
)
def test_a_repository_that_others_moved_stays(session: OpenInterpreter, by_others: str, named: str) -> None:
    folder = Path(session.workspace)
    run(session, "echo more >> two.txt; git commit -qam 'By the model'")
    for command in by_others.split(" && "):
        git(folder, *command.split()[1:])
    then = state(folder)
    undone = session.undo(blocks=True)
    now = state(folder)
    assert all(now[part] == then[part] for part in ("head", "branch", "refs", "index", "stash"))
    (note,) = [note for note in undone.plan.notes if note.startswith(".git stays as it is: ")]
    assert named in note and note.endswith("changed since, outside this session.")


def test_work_of_others_that_does_not_matter_is_kept(session: OpenInterpreter) -> None:
    folder = Path(session.workspace)
    run(session, "git commit -qm staged")
    git(folder, "branch", "mine")
    git(folder, "status")
    session.undo(blocks=True)
    assert git(folder, "log", "-1", "--format=%s", "main") == "Two: add a line\n"
    assert git(folder, "log", "-1", "--format=%s", "mine") == "staged\n"


def test_an_index_is_compared_by_what_it_lists(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "work")
    first = index_entries((folder / ".git/index").read_bytes())
    (folder / "one.txt").touch()
    git(folder, "status")
    assert first is not None and len(first) == 3
    assert index_entries((folder / ".git/index").read_bytes()) == first
    git(folder, "add", "new.txt")
    assert index_entries((folder / ".git/index").read_bytes()) != first
    assert index_entries(b"not an index") is None
