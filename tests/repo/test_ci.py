"""Runs without a chat: `--diff FILE`, and an exit code for a commit that was refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_server import ModelServer, text, tool_call
from repo.repositories import ENVIRONMENT, git, make_repository

pytestmark = pytest.mark.needs("git")


def run(folder: Path, *arguments: str, replies: list[object]) -> subprocess.CompletedProcess[str]:
    with ModelServer(replies) as server:
        command = [sys.executable, "-m", "interpreter", "--model", "gpt-4o", "--api_base", server.base_url, *arguments]
        env = {**ENVIRONMENT, "OPENAI_API_KEY": "key", "HOME": os.environ["HOME"]}
        return subprocess.run(
            [*command, "fix it"],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=100,
            stdin=subprocess.DEVNULL,
        )


def test_the_diff_of_the_session_is_written(tmp_path: Path, home: Path) -> None:
    folder = make_repository(tmp_path / "work")
    (folder / "AGENTS.md").write_text("Be brief.")
    code = "open('two.txt', 'a').write('session\\n')\nopen('made.py', 'w').write('x = 1\\n')"
    commit = tool_call(name="commit", arguments='{"message": "Two: session"}')
    replies = [
        tool_call("python", code),
        tool_call("python", "open('made.py', 'a').write('y = 2\\n')"),
        commit,
        text("Done."),
    ]
    done = run(folder, "-y", "--plain", "--diff", str(tmp_path / "out.diff"), replies=replies)
    assert done.returncode == 0, done.stderr
    diff = (tmp_path / "out.diff").read_text()
    assert "+++ b/made.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n" in diff and "+session\n" in diff and "mine" not in diff
    assert git(folder, "log", "-1", "--format=%s") == "Two: session\n"
    assert "Using the instructions in AGENTS.md." in done.stderr and "AGENTS.md" not in done.stdout


def test_a_refused_commit_is_an_exit_code(tmp_path: Path, home: Path) -> None:
    folder = make_repository(tmp_path / "work")
    git(folder, "config", "commit.gpgsign", "true")
    replies = [
        tool_call("python", "open('made.py', 'w').write('x = 1\\n')"),
        tool_call(name="commit", arguments='{"message": "Made"}'),
        text("I could not commit."),
    ]
    done = run(folder, "-y", "--plain", replies=replies)
    assert (done.returncode, git(folder, "log", "-1", "--format=%s")) == (7, "Two: add a line\n")
    assert "commit.gpgsign is on" in done.stdout
