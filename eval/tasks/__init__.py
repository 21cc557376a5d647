"""The tasks, in order."""

from __future__ import annotations

from eval.task import Task
from eval.tasks import dates, documents, files, first_hour, plots, questions, shell, steps, tables, text

TASKS: tuple[Task, ...] = (
    *files.TASKS,
    *text.TASKS,
    *tables.TASKS,
    *documents.TASKS,
    *dates.TASKS,
    *plots.TASKS,
    *shell.TASKS,
    *steps.TASKS,
    *questions.TASKS,
    *first_hour.TASKS,
)
