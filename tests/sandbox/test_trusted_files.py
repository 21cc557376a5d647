"""Code in a sandbox can't change or plant files in the workspace that git, editors and agents trust."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import SandboxUnavailableError
from interpreter.runtimes.launch import Start
from interpreter.sandbox import container, places
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.places import RESERVED, TrustedPaths
from interpreter.sandbox.sandbox import Sandbox
from sampling import some

from .conftest import Inside

EVIL = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {proof}; false\n"
PLANT = {
    "python": "import os\nos.makedirs({folder!r}, exist_ok=True)\nopen({file!r}, 'w').write('planted')",
    "shell": "mkdir -p {folder!r}; echo planted >{file!r}",
    "javascript": "fs = require('fs'); fs.mkdirSync({folder!r}, {{recursive: true}}); fs.writeFileSync({file!r}, 'x')",
}
LANGUAGES = pytest.mark.parametrize(
    "language", ["python", "shell", pytest.param("javascript", marks=pytest.mark.needs("node"))]
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder without any trusted files."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def repository(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", *options)
    return folder


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@LANGUAGES
@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_cannot_be_created(inside: Inside, workspace: Path, language: str, name: str) -> None:
    code = PLANT[language].format(folder=str(workspace / name), file=str(workspace / name / "config"))
    ran = inside.do(language, code)
    assert "Read-only file system" in ran.text or "EROFS" in ran.text
    assert not (workspace / name / "config").exists()
    assert "files that git, editors and Open Interpreter trust" in ran.text


@pytest.mark.needs("git")
def test_a_planted_repository_does_not_run_in_the_users_git(inside: Inside, workspace: Path, tmp_path: Path) -> None:
    """The attack: the user runs `git status` in the workspace, outside the sandbox."""
    proof = tmp_path / "proof"
    config = EVIL.format(proof=proof)
    inside.do(
        "shell",
        f"git init -q . || git init -q evil; mv evil/.git .git; rm -rf .git; mkdir .git; printf '{config}' >.git/config",
    )
    inside.do(
        "shell", "for name in HEAD; do cp evil/.git/$name .git/; done; mv evil .git 2>/dev/null; ln -sfn evil/.git .git"
    )
    done = subprocess.run(["git", "status"], cwd=workspace, capture_output=True, text=True)
    assert done.returncode != 0 and not proof.exists()
    assert list((workspace / ".git").iterdir()) == []


@pytest.mark.needs("git")
def test_git_still_finds_the_parent_repository(contained: Any, workspace: Path) -> None:
    """Git ignores our empty `.git` folder and looks in the parent folder."""
    repository(workspace.parent)
    contained()
    assert (workspace / ".git").is_dir()
    assert git(workspace, "rev-parse", "--show-toplevel").strip() == str(workspace.parent)


@LANGUAGES
@pytest.mark.needs("git")
def test_repositories_at_any_depth_are_read_only(contained: Any, workspace: Path, language: str) -> None:
    deep = repository(workspace / "a" / "b" / "c" / "d" / "e" / "f")
    modules = repository(workspace / "node_modules" / "x")
    inside = contained()
    for folder in (deep, modules):
        before = (folder / ".git" / "config").read_text()
        inside.do(language, PLANT[language].format(folder=str(folder), file=str(folder / ".git" / "config")))
        assert (folder / ".git" / "config").read_text() == before


@pytest.mark.needs("git")
def test_separate_git_folders_and_worktrees_are_read_only(contained: Any, workspace: Path) -> None:
    repository(workspace / "tree", f"--separate-git-dir={workspace}/kept")
    bare = repository(workspace / "bare", "--bare")
    tree = git(bare, "hash-object", "-t", "tree", "-w", "/dev/null").strip()
    commit = git(bare, "commit-tree", tree, "-m", "first").strip()
    git(bare, "worktree", "add", "-q", "-b", "other", str(workspace / "other"), commit)
    inside = contained()
    ran = inside.do(
        "shell", "for f in kept/config bare/config tree/.git other/.git; do echo x >>$f && echo WROTE $f; done"
    )
    assert "WROTE" not in ran.text and ran.text.count("Read-only file system") >= 4


def test_gitdir_files_cannot_expose_folders_outside(contained: Any, workspace: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("the secret")
    (workspace / "sub").mkdir()
    (workspace / "sub" / ".git").write_text(f"gitdir: {home}/.ssh\n")
    (workspace / "link").symlink_to(home)
    (workspace / "third").mkdir()
    (workspace / "third" / ".git").write_text("gitdir: ../link/.ssh\n")
    inside = contained()
    assert "the secret" not in inside.do("shell", f"cat {home}/.ssh/id link/.ssh/id").text


def test_reserved_empty_folders_are_removed_at_the_end(sandbox_available: None, workspace: Path) -> None:
    containment = Containment(Sandbox("workspace", str(workspace)))
    assert sorted(path.name for path in workspace.iterdir()) == sorted(RESERVED)
    (workspace / ".vscode" / "settings.json").write_text("{}")  # as the user's editor may do at the same time
    containment.close()
    assert [path.name for path in workspace.iterdir()] == [".vscode"]


def test_nothing_is_reserved_in_a_read_only_sandbox(sandbox_available: None, workspace: Path) -> None:
    containment = Containment(Sandbox("read-only", str(workspace)))
    assert list(workspace.iterdir()) == []
    containment.close()


def test_reserved_folders_stay_while_another_sandbox_needs_them(contained: Any, workspace: Path) -> None:
    first, second = contained(), contained()
    second.do("shell", "true")
    first.close()
    assert "Read-only" in second.do("shell", "echo x >.git/config").text and (workspace / ".git").is_dir()
    second.close()
    assert list(workspace.iterdir()) == []


def test_the_users_empty_folders_are_kept(sandbox_available: None, workspace: Path) -> None:
    (workspace / ".vscode").mkdir()
    Containment(Sandbox("workspace", str(workspace))).close()
    assert [path.name for path in workspace.iterdir()] == [".vscode"]


@pytest.mark.parametrize(
    "text", some(2, [b"gitdir: a\0b", b"gitdir: ", b"gitdir: " + b"x" * 9000, b"\xff", b"gitdir: ..", b"gitdir: ."])
)
def test_malformed_git_files_do_no_harm(inside: Inside, workspace: Path, text: bytes) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / ".git").write_bytes(text)
    assert inside.do("shell", "echo $((6 * 7)); echo x >>sub/.git").text.splitlines()[0] == "42"
    assert (workspace / "sub" / ".git").read_bytes() == text


def test_the_next_sandbox_removes_leftovers_of_a_killed_one(sandbox_available: None, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    Containment(Sandbox("workspace", str(workspace))).close()
    assert list(workspace.iterdir()) == []


def test_new_trusted_files_in_subfolders_are_reported(inside: Inside, workspace: Path) -> None:
    output = inside.do("shell", "mkdir -p a/b/c/d/.vscode; echo '{}' >a/b/c/d/.vscode/tasks.json").text
    assert "New in the workspace: a/b/c/d/.vscode." in output and "before you use that folder" in output
    assert "New in" not in inside.do("shell", "echo again >a/file").text
    swapped = inside.do("python", "import os; os.rename('a/b', 'a/old'); os.makedirs('a/b/c/d/.vscode')").text
    assert "a/b/c/d/.vscode, a/old/c/d/.vscode" in swapped
    assert ".envrc" in inside.do("shell", "touch -d 2001-01-01 x; echo >.envrc; touch -d 2001-01-01 .").text


def test_two_looks_in_quick_succession_both_report(workspace: Path) -> None:
    for number in range(3000):  # so many that a look takes a moment
        (workspace / str(number)).mkdir()
    trusted = TrustedPaths(workspace)
    for name in (".envrc", "7/.envrc", "2999/.vscode"):
        (workspace / name).mkdir()
        assert trusted.new() == [name]
    trusted.release()


def test_control_characters_in_reported_names_are_replaced(inside: Inside, workspace: Path) -> None:
    output = inside.do("python", r"import os; os.makedirs(b'\xff\x1b[2J\n\xe2\x80\xaex/.vscode')").text
    assert "New in the workspace: ??[2J??x/.vscode." in output and output.encode()


def test_undo_keeps_reserved_names(sandbox_available: None, workspace: Path, home: Path) -> None:
    interpreter = OpenInterpreter(sandbox="workspace", auto_run=True)
    interpreter.workspace = str(workspace)
    try:
        interpreter.computer.run("shell", "echo one >one")
        interpreter.undo()
        assert not (workspace / "one").exists() and (workspace / ".git").is_dir()
        said = interpreter.computer.run("shell", "echo x >.git/config")
        assert "Read-only" in str(said)
    finally:
        interpreter.computer.terminate()


def test_finding_trusted_files_follows_no_links(workspace: Path, home: Path) -> None:
    (home / "secret" / ".git").mkdir(parents=True)
    (workspace / "link").symlink_to(home / "secret")
    trusted = TrustedPaths(workspace)
    assert set(trusted.find()) == set(RESERVED) and trusted.open("link/.git") is None
    trusted.release()


def test_too_many_repositories_are_refused(contained: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.sandbox.places.MAX_PROTECTED", 6)
    for number in range(8):
        (workspace / str(number) / ".vscode").mkdir(parents=True)
    assert contained().do("shell", "echo $((6 * 7))").text.strip() == "42"  # only the nearest folders are protected
    for number in range(8):
        (workspace / str(number) / ".git").mkdir()
    with pytest.raises(SandboxUnavailableError, match="more than 6 git repositories"):
        contained().do("shell", "true")


def test_diverted_mounts_are_detected(contained: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another session moved `sub` away while bubblewrap mounts it, so that bubblewrap creates a new folder."""
    repository(workspace / "sub")
    opened = TrustedPaths.open

    def diverted(self: TrustedPaths, name: str) -> int | None:
        fd = opened(self, name)
        if name == "sub/.git":
            (workspace / "sub").rename(workspace / "kept")
        return fd

    monkeypatch.setattr(TrustedPaths, "open", diverted)
    ran = contained().do("shell", "echo x >>kept/.git/config && echo WROTE")
    assert "WROTE" not in ran.text and "folders in the workspace were moved" in ran.text


@pytest.mark.full
def test_swapping_folders_during_startup_exposes_nothing(contained: Any, workspace: Path, home: Path) -> None:
    """The race between finding a repository and mounting it never mounts a folder outside the workspace."""
    (home / "private" / ".git").mkdir(parents=True)
    (home / "private" / ".git" / "config").write_text("the secret")
    repository(workspace / "sub")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            if (workspace / "kept").exists():  # bubblewrap made an empty mount point here
                shutil.rmtree(workspace / "sub", ignore_errors=True)
                (workspace / "kept").rename(workspace / "sub")
            with contextlib.suppress(OSError):
                (workspace / "sub").rename(workspace / "kept")
                (workspace / "sub").symlink_to(home / "private")
                (workspace / "sub").unlink()
                (workspace / "kept").rename(workspace / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = []
    try:
        for _ in range(20):
            inside = contained()
            seen.append(inside.do("shell", "cat sub/.git/config kept/.git/config").text)
            inside.close()
    finally:
        stop.set()
        swapper.join()
    assert not any("the secret" in text for text in seen)
    assert [path.name for path in home.rglob("*") if "private" in str(path)] == ["private", ".git", "config"]


def test_our_own_installation_cannot_be_moved_or_replaced(
    contained: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a subfolder of the workspace, code could otherwise rename a parent folder and replace it."""
    for prefix, name in (("prefix", "tools/a/venv"), ("base_prefix", "tools/b/python")):
        (workspace / name).mkdir(parents=True)
        monkeypatch.setattr(sys, prefix, str(workspace / name))
    inside = contained()
    for name in ("tools", "tools/a", "tools/b"):
        assert "busy" in inside.do("shell", f"mv {name} moved").text
    for name in ("tools/a/venv", "tools/b/python"):
        assert "Read-only" in inside.do("shell", f"touch {name}/x").text
    assert inside.do("shell", "touch tools/a/x tools/x && mv tools/a/x tools/b && echo fine").text == "fine\n"


def test_our_own_installation_is_read_only_in_a_container(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Path] = []
    (workspace / "venv").mkdir()
    monkeypatch.setattr(sys, "prefix", str(workspace / "venv"))
    monkeypatch.setattr(container, "available", lambda: "podman")
    monkeypatch.setattr(container, "wrapped", lambda *arguments: given.extend(arguments[4]) or arguments[5])
    containment = Containment(Sandbox("container:image", str(workspace)))
    with containment.wrap(Start(["python"], {})):
        assert workspace / "venv" in given
    containment.close()


def test_known_repositories_stay_protected_among_many_folders(
    contained: Any, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MAX_FOLDERS", 50)
    repository(workspace / "z/y/x/known")
    inside = contained()
    ran = inside.do("shell", "mkdir d{1..60} && mkdir -p z/y/x/new/.git")
    assert ran.text.count("aren't noticed") == 1
    assert "aren't noticed" not in inside.do("shell", "true").text
    assert "Read-only" in inside.do("python", "open('z/y/x/known/.git/config', 'a')").text


def test_a_long_list_of_new_files_is_shortened(inside: Inside) -> None:
    ran = inside.do("shell", "for n in {1..8}; do mkdir -p d$n/.git; done")
    assert "d5/.git and 3 more." in ran.text
