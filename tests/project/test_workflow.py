"""The GitHub workflow covers three systems, names existing files, and needs no secrets."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
JOB = yaml.safe_load(TEXT)["jobs"]["test"]


def commands(system: str) -> str:
    """The commands that run on a system."""
    conditions = {"", f"runner.os == '{system}'", *({"runner.os != 'Windows'"} if system != "Windows" else ())}
    return "\n".join(step.get("run", "") for step in JOB["steps"] if step.get("if", "") in conditions)


def test_the_matrix_covers_every_system_and_the_oldest_python() -> None:
    assert JOB["strategy"]["matrix"] == {
        "os": ["ubuntu-latest", "macos-latest", "windows-latest"],
        "python": ["3.11", "3.13"],
    }
    assert all({"uses", "run"} & step.keys() for step in JOB["steps"])


def test_each_system_runs_the_tests_it_supports() -> None:
    assert "make check" in commands("Linux") and "make test" in commands("Linux")
    assert "make check" not in commands("macOS") and "make test" in commands("macOS")
    assert "make" not in commands("Windows") and "interpreter --version" in commands("Windows")
    named = re.findall(r"tests/\S+", commands("Windows"))
    assert "tests/project/test_windows.py" in named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_workflow_needs_no_secrets() -> None:
    assert "${{ secrets" not in TEXT
    assert yaml.safe_load(TEXT)["permissions"] == {"contents": "read"}
