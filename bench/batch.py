"""What a task of a batch costs beside a thread, and a process, for each task."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from bench.subject import OURS, ROOT, Subject, once, probe
from bench.table import Measurement

sys.path.insert(0, str(ROOT / "tests"))

from model_server import ModelServer, text, tool_call

TASKS = 60


def answer(body: dict[str, Any]) -> Any:
    is_first = body["messages"][-1]["role"] == "user"
    return tool_call("python", "print(6 * 7)") if is_first else text("It is 42.")


@once
def tasks(subject: Subject) -> dict[str, Any]:
    with ModelServer([answer], repeat=True) as server:
        has_sandbox = shutil.which("bwrap") is not None
        return probe(subject.python, "batch_tasks", 300, api_base=server.base_url, count=TASKS, sandbox=has_sandbox)


MEASUREMENTS = [
    Measurement(
        "a task of a batch, beside a thread per task", "ms", lambda it: tasks(it)["batch"],
        bare=lambda: float(tasks(OURS)["threads"]), budget_of_bare=0.6,
    ),
    Measurement(
        "a task of a batch, beside a process per task", "ms", lambda it: tasks(it)["batch"],
        bare=lambda: float(tasks(OURS)["processes"]), budget_of_bare=0.25,
    ),
    Measurement("a task of a batch in sandboxes", "ms", lambda it: tasks(it)["sandbox"]),
]  # fmt: skip
