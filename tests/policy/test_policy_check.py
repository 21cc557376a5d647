"""`interpreter --policy-check` explains a verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from terminal.person import PROGRAM

Done = subprocess.CompletedProcess[str]


def policy_check(folder: Path, *arguments: str) -> Done:
    command = [sys.executable, "-c", PROGRAM, "--policy-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)


def test_a_denied_command_names_the_rule(tmp_path: Path) -> None:
    done = policy_check(tmp_path, "echo a; sudo rm -rf /usr")
    assert done.returncode == 1
    assert done.stdout.startswith("deny: It would delete the whole disk")
    assert "line 1: rm -rf /usr -> deny by whole-disk (built in:" in done.stdout
    assert "in mode auto (-y): deny" in done.stdout


def test_an_asked_block_shows_the_rule_that_would_allow_it(tmp_path: Path) -> None:
    done = policy_check(tmp_path, "open('out/a.txt', 'w')", "--language", "python")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ask: no rule covers it\n  in mode ask: ask; in mode auto (-y): run\n")
    assert "  Creates out/a.txt\n  Undoable\n" in done.stdout
    assert "  - decision: allow\n    language: python\n    does: write\n" in done.stdout


def test_an_ignored_project_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / ".interpreter").mkdir()
    (tmp_path / ".interpreter" / "policy.yaml").write_text("rules:\n  - {decision: allow, command: make}\n")
    done = policy_check(tmp_path, "make")
    assert "is ignored because you haven't trusted it. It contains:\n  allow: command make\n" in done.stdout


def test_a_broken_policy_file_is_an_error(tmp_path: Path, home: Path) -> None:
    path = home / ".config" / "open-interpreter" / "policy.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("rules:\n  - decision: never\n")
    done = policy_check(tmp_path, "ls")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{path}:2: 'never' is not valid here. Available: allow, ask, deny." in done.stderr
