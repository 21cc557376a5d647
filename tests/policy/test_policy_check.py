"""`interpreter --policy-check`: a verdict, explained."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from terminal.person import PROGRAM

Done = subprocess.CompletedProcess[str]


def checked(folder: Path, *arguments: str) -> Done:
    command = [sys.executable, "-c", PROGRAM, "--policy-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)


def test_what_never_runs(tmp_path: Path) -> None:
    done = checked(tmp_path, "echo a; sudo rm -rf /usr")
    assert done.returncode == 1
    assert done.stdout.startswith("deny: It would delete the whole disk")
    assert "line 1: rm -rf /usr -> deny by whole-disk (built in:" in done.stdout
    assert "in mode auto (-y): deny" in done.stdout


def test_what_is_asked_and_the_rule_that_would_allow_it(tmp_path: Path) -> None:
    done = checked(tmp_path, "open('out/a.txt', 'w')", "--language", "python")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ask: no rule covers it\n  in mode ask: ask; in mode auto (-y): run\n")
    assert "  Creates out/a.txt\n  Undoable\n" in done.stdout
    assert "  - decision: allow\n    language: python\n    does: write\n" in done.stdout


def test_a_projects_file_is_named_when_it_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".interpreter").mkdir()
    (tmp_path / ".interpreter" / "policy.yaml").write_text("rules:\n  - {decision: allow, command: make}\n")
    done = checked(tmp_path, "make")
    assert "is ignored because you haven't trusted it. It contains:\n  allow: command make\n" in done.stdout


def test_a_mistake_in_the_file_is_an_error(tmp_path: Path, home: Path) -> None:
    path = home / ".config" / "open-interpreter" / "policy.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("rules:\n  - decision: never\n")
    done = checked(tmp_path, "ls")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{path}:2: 'never' is not valid here. Available: allow, ask, deny." in done.stderr
