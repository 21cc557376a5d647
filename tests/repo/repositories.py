"""Repositories for tests: made with git, and described so that two states can be compared."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def shell(folder: Path, script: str) -> None:
    """Run a script as the user would, in another terminal."""
    subprocess.run(["sh", "-c", script], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)


def make_repository(folder: Path) -> Path:
    """A repository with two commits, a branch, a tag, a stash, and changes of the user: staged, not staged, new."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    for name in ("one.txt", "two.txt", "three.txt"):
        (folder / name).write_text("".join(f"{name} line {number}\n" for number in range(12)))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Add three files")
    git(folder, "branch", "other")
    git(folder, "tag", "v1")
    (folder / "two.txt").write_text((folder / "two.txt").read_text() + "more\n")
    git(folder, "commit", "-qam", "Two: add a line")
    (folder / "three.txt").write_text("stashed\n")
    git(folder, "stash", "-q")
    (folder / "one.txt").write_text((folder / "one.txt").read_text().replace("line 2\n", "line 2, staged\n"))
    git(folder, "add", "one.txt")
    (folder / "two.txt").write_text((folder / "two.txt").read_text().replace("line 4\n", "line 4, mine\n"))
    (folder / "new.txt").write_text("mine\n")
    return folder


def state(folder: Path) -> dict[str, str]:
    """HEAD, branches, index, stash and files."""
    return {
        "head": git(folder, "rev-parse", "HEAD", check=False),
        "branch": git(folder, "symbolic-ref", "-q", "HEAD", check=False),
        "refs": git(folder, "for-each-ref", "refs/heads", "refs/tags", "--format=%(refname) %(objectname)"),
        "index": git(folder, "ls-files", "-s"),
        "stash": git(folder, "stash", "list", "--format=%gd %H"),
        "status": git(folder, "status", "--porcelain"),
        "tree": "\n".join(f"{path.relative_to(folder)} {path.read_text()}" for path in files_of(folder)),
    }


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
