"""`make run` installs what a chat needs; development targets install the development tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = '#!/bin/sh\necho "$(basename "$0") $@" >> log\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout whose virtual environment logs its calls."""
    for name in ("Makefile", "pyproject.toml", "scripts/install.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "interpreter"):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(PROGRAM)
        program.chmod(0o755)
    return tmp_path


def run_make(clone: Path, *arguments: str) -> list[str]:
    """Run `make`. Returns the installations and programs it started."""
    (clone / "log").write_text("")
    subprocess.run(["make", *arguments], cwd=clone, check=True, capture_output=True)
    lines = (clone / "log").read_text().splitlines()
    return [line.split()[-1] for line in lines if "pip install" in line or line.startswith("interpreter")]


@pytest.mark.needs("make")
def test_run_installs_no_development_tools(clone: Path) -> None:
    assert run_make(clone, "run", "ARGS=--version") == [".[local,images]", "--version"]
    assert run_make(clone, "run", "ARGS=--version") == ["--version"], "it is already installed"


@pytest.mark.needs("make")
def test_development_tools_are_installed_once_and_suffice_for_run(clone: Path) -> None:
    assert run_make(clone, "check") == [".[dev]"]
    assert run_make(clone, "check") == []
    assert run_make(clone, "run", "ARGS=--version") == ["--version"]


@pytest.mark.needs("make")
def test_development_tools_are_installed_after_a_run(clone: Path) -> None:
    run_make(clone, "run", "ARGS=--version")
    assert run_make(clone, "format") == [".[dev]"]


@pytest.mark.needs("make")
def test_run_starts_in_the_folder_that_is_named(clone: Path) -> None:
    folder = clone / "my data"
    folder.mkdir()
    subprocess.run(["make", "run", f"DIR={folder}", "ARGS=-y"], cwd=clone, check=True, capture_output=True)
    assert (folder / "log").read_text() == "interpreter -y\n"
    home = {**os.environ, "HOME": str(clone)}
    subprocess.run(["make", "run", "DIR=~/my data"], cwd=clone, check=True, capture_output=True, env=home)
    assert (folder / "log").read_text().splitlines()[1:] == ["interpreter "]
    missing = subprocess.run(["make", "run", "DIR=nowhere"], cwd=clone, capture_output=True, text=True)
    assert missing.returncode != 0
    assert "nowhere" in missing.stderr
