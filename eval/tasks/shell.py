"""Typical shell tasks."""

from __future__ import annotations

from pathlib import Path

from eval.outcome import Outcome, expect
from eval.task import Task, write

ADDRESSES = [f"10.{40 + number}.7.{100 + number}" for number in range(26)]


def _script(folder: Path) -> None:
    write(folder, "greet.sh", "#!/bin/sh", 'echo "seal $((317 * 3)) of $(basename "$0" .sh)"')


def _script_ran(outcome: Outcome) -> None:
    expect((outcome.folder / "greet.sh").stat().st_mode & 0o100, "greet.sh is not executable")
    expect("seal 951 of greet" in outcome.shown, "nothing shows what greet.sh prints")


def _notes(folder: Path) -> None:
    write(folder, "notes.txt", "not part of the project")


def _tree(outcome: Outcome) -> None:
    for name in ("src", "tests", "docs"):
        expect((outcome.folder / "project" / name).is_dir(), f"there is no folder project/{name}")
    expect(outcome.text("project/README.md").strip() == "", "README.md is not empty")


def _access(folder: Path) -> None:
    visits = [ADDRESSES[number * number % 61 % 26] for number in range(200)] + ADDRESSES
    write(folder, "access.log", *(f'{address} - - "GET /page HTTP/1.1" 200 512' for address in visits))


def _addresses(outcome: Outcome) -> None:
    outcome.expect_number(len(ADDRESSES), what="there are")


TASKS = [
    Task("shell/script", ("Make greet.sh executable, run it and show me what it prints.",), _script, _script_ran),
    Task(
        "shell/tree",
        ("Create a folder called project with the subfolders src, tests and docs, and an empty README.md in project.",),
        _notes,
        _tree,
    ),
    Task(
        "shell/addresses",
        ("Use shell commands to find out how many different IP addresses there are in access.log.",),
        _access,
        _addresses,
    ),
]
