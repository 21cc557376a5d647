"""All OS mode tasks."""

from __future__ import annotations

from os_mode import tasks_editor, tasks_forms, tasks_native, tasks_web
from os_mode.scripted_task import Task

TASKS: list[Task] = [*tasks_editor.TASKS, *tasks_forms.TASKS, *tasks_web.TASKS, *tasks_native.TASKS]
