"""Forty browser tasks: the core always, the others in the full suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser.tasks import TASKS, Task
from browser.web_app import WebApp

pytestmark = pytest.mark.needs("chromium")


def perform(browser: Any, task: Task, url: str) -> list[str]:
    """Take the steps. Returns everything the model would see."""
    told = [browser.go_to_url(url)]
    for what, *given in task.steps:
        if what in ("click", "hover", "fill", "select", "press", "drag", "upload", "scroll"):
            told.append(getattr(browser, what)(*given))
        elif what == "double":
            told.append(browser.click(*given, double=True))
        elif what == "at":
            told.append(browser.click(given[0], x=given[1], y=given[2]))
        elif what == "accept":
            browser.accept_dialog()
            told.append(browser.click(*given))
        else:
            seen = browser.read() + browser.snapshot()
            told.append(seen)
            assert (given[0] in seen) == (what == "see"), f"{what} {given[0]}: {seen}"
    return told


@pytest.mark.parametrize(
    "task", [pytest.param(task, id=task.name, marks=[] if task.core else [pytest.mark.full]) for task in TASKS]
)
def test_the_task_succeeds(browser: Any, app: WebApp, workspace: Path, task: Task) -> None:
    (workspace / "task.txt").write_text("text")
    app.pages["/task"] = f"<title>{task.name}</title><main>{task.page}</main>"
    told = perform(browser, task, f"{app.url}/task")
    assert browser.evaluate(task.check)["value"] is True, told[-1]
    hidden = [given[0] for what, *given in task.steps if what == "never"]
    assert not [words for words in hidden for each in told if words in each]


def test_there_are_forty_tasks_of_ten_kinds() -> None:
    assert len(TASKS) == 40 and len({task.kind for task in TASKS}) >= 10 and sum(task.core for task in TASKS) == 10
