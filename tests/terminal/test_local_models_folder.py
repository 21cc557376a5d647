"""`--local_models` opens the folder of downloaded models in the file manager, or prints its path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from terminal.person import PROGRAM

COMMAND = [sys.executable, "-c", PROGRAM, "--local_models"]


def test_without_a_display_the_path_is_printed(home: Path) -> None:
    env = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    done = subprocess.run(COMMAND, env=env, capture_output=True, text=True, timeout=60)
    folder = home / ".config" / "open-interpreter" / "models"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder}\n", "")
    assert folder.is_dir()


def test_with_a_display_the_folder_is_opened(home: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    program = tmp_path / "xdg-open"
    program.write_text(f'#!/bin/sh\necho "$1" > "{opened}"\n')
    program.chmod(0o755)
    env = {**os.environ, "DISPLAY": ":7", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(COMMAND, env=env, stdout=subprocess.DEVNULL) as process:
        assert opened.read_text().strip() == str(home / ".config" / "open-interpreter" / "models")
        assert process.wait(60) == 0
