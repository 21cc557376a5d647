"""`make run` installs what a chat needs; the recipes for development install their tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAM = '#!/bin/sh\necho "$(basename "$0") $@" >> log\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout whose virtual environment writes down what it is asked to do."""
    for name in ("Makefile", "pyproject.toml", "scripts/install.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "interpreter"):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(PROGRAM)
        program.chmod(0o755)
    return tmp_path


def made(clone: Path, *arguments: str) -> list[str]:
    """The installations and the programs of one `make`."""
    (clone / "log").write_text("")
    subprocess.run(["make", *arguments], cwd=clone, check=True, capture_output=True)
    lines = (clone / "log").read_text().splitlines()
    return [line.split()[-1] for line in lines if "pip install" in line or line.startswith("interpreter")]


@pytest.mark.needs("make")
def test_run_installs_the_chat_and_no_development_tools(clone: Path) -> None:
    assert made(clone, "run", "ARGS=--version") == [".[local]", "--version"]
    assert made(clone, "run", "ARGS=--version") == ["--version"], "it is installed"


@pytest.mark.needs("make")
def test_development_installs_its_tools_once_and_run_is_content_with_them(clone: Path) -> None:
    assert made(clone, "check") == [".[dev]"]
    assert made(clone, "check") == []
    assert made(clone, "run", "ARGS=--version") == ["--version"]


@pytest.mark.needs("make")
def test_the_development_tools_follow_after_a_run(clone: Path) -> None:
    made(clone, "run", "ARGS=--version")
    assert made(clone, "format") == [".[dev]"]
