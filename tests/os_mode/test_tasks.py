"""Tasks on real applications, from the user's message to the effect, with a scripted model."""

from __future__ import annotations

import os
import shutil
import traceback
from pathlib import Path

import pytest

from os_mode.scripted_task import Task, run_task
from os_mode.tasks import TASKS
from screen.desktop import Desktop

pytestmark = pytest.mark.timeout(600)  # an interrupted wait would leave the shared desktop unusable
REPEATS = int(os.environ.get("OS_TASK_REPEATS", "10"))
MINIMUM = 0.98  # 245 of 250
# One of each kind; `make test-full` runs all of them, and each ten times.
CORE = {
    "write and save a file in an editor",
    "drag a selection",
    "right click for a menu",
    "start an application by its name and close it",
    "JavaScript that uses the computer",
    "without pictures, by the list of elements",
    "log in to a web application",
    "a hostile page",
    "with Anthropic's computer tool",
    "with OpenAI's computer tool",
}


def marked(task: Task) -> object:
    marks = [pytest.mark.needs(*task.needs), *([] if task.name in CORE else [pytest.mark.full])]
    return pytest.param(task, id=task.name.replace(" ", "-"), marks=marks)


def test_there_are_enough_tasks() -> None:
    assert len({task.name for task in TASKS}) == len(TASKS) >= 25
    assert {task.name for task in TASKS} > CORE


@pytest.mark.parametrize("task", [marked(task) for task in TASKS])
def test_the_task_succeeds(task: Task, desktop: Desktop, tmp_path: Path) -> None:
    run_task(task, desktop, tmp_path)


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_nearly_all_repeated_runs_succeed(desktop: Desktop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 98 % of the runs succeed; failures are printed with their reasons."""
    tasks = [task for task in TASKS if all(shutil.which(program) for program in task.needs)]
    failures: list[str] = []
    for number in range(REPEATS):
        for task in tasks:
            folder = tmp_path / f"{task.name.replace(' ', '-')}-{number}"
            folder.mkdir()
            try:
                run_task(task, desktop, folder)
            except Exception as error:
                why = "".join(traceback.format_exception_only(error)).strip()
                failures.append(f"{task.name}, run {number + 1}: {why}")
                _save_screenshot(desktop, folder)
    runs = REPEATS * len(tasks)
    with capsys.disabled():
        print(f"\n{runs - len(failures)} of {runs} runs succeeded", *failures, sep="\n")
    assert runs - len(failures) >= MINIMUM * runs, "\n".join(failures)


def _save_screenshot(desktop: Desktop, folder: Path) -> None:
    """Save a screenshot of the desktop after a failure."""
    desktop.picture(folder / "desktop.png")
