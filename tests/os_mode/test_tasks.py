"""Tasks on real applications, from the user's words to the effect, with a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from os_mode.tasks import TASKS
from os_mode.world import Task, carry_out
from screen.desktop import Desktop

_REPEATS, _LEAST = 10, 0.98


def marked(task: Task) -> object:
    return pytest.param(task, id=task.name.replace(" ", "-"), marks=pytest.mark.needs(*task.needs))


@pytest.mark.parametrize("task", [marked(task) for task in TASKS])
def test_task(task: Task, desktop: Desktop, tmp_path: Path) -> None:
    carry_out(task, desktop, tmp_path)
