"""Downloads while they go on: how much, how fast, how long still."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from interpreter.llm.local.weights import Progress
    from interpreter.llm.ollama import Pulled


def show_download(name: str, steps: Iterable[Progress]) -> None:
    """Run a download to its end with a bar; Ctrl-C stops it, and what has come is kept."""
    with _bar() as bar:
        task = bar.add_task(name, total=None)
        source = ""
        for step in steps:
            source = step.source
            words = f"{name} from {source}" if step.step == "downloading" else f"{name}: {step.step}"
            bar.update(task, description=words, completed=step.done, total=step.total)
        if source:  # what stays on the screen says where the file came from
            bar.update(task, description=f"{name} from {source}")


def show_pull(name: str, steps: Iterable[Pulled]) -> None:
    """The same for a model that Ollama fetches."""
    with _bar() as bar:
        task = bar.add_task(name, total=None)
        for step in steps:
            bar.update(task, description=name, completed=step.done, total=step.total or None)


def _bar() -> Bar:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
