"""A scripted model that answers every task, and the command that runs a batch against it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from model_server import ModelServer, text, usage


def task_of(body: dict[str, Any]) -> str:
    """The word behind `Do` in the request of a task."""
    found = re.search(r"Do (\S+)", json.dumps(body["messages"]))
    assert found is not None
    return found[1].rstrip('",}]')


def echo(body: dict[str, Any]) -> Any:
    """Answer without code."""
    return text(f"Did {task_of(body)}").then(usage(1000, 100))


class Batches:
    """Runs `interpreter batch` in a folder of its own, against a server."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.folder, self.server, self.out = folder, server, folder / "results.jsonl"
        self.tasks, self.started = folder / "tasks.jsonl", list[subprocess.Popen[str]]()

    def write(self, *names: str, **columns: Any) -> None:
        rows = [{"id": name, "name": name, **columns} for name in names]
        self.tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def command(self, *flags: str, out: str = "results.jsonl") -> list[str]:
        model = ["--model", "openai/gpt-4o", "--api_base", self.server.base_url, "--api_key", "x", "-y"]
        prompt = [] if "--prompt" in flags else ["--prompt", "Do {name}"]
        batch = ["batch", str(self.tasks), "--out", str(self.folder / out)]
        return [sys.executable, "-m", "interpreter", *batch, *prompt, *model, *flags]

    def start(self, *flags: str) -> subprocess.Popen[str]:
        with (self.folder / "stderr").open("w") as errors:
            process = subprocess.Popen(self.command(*flags), cwd=self.folder, stdout=errors, stderr=errors, text=True)
        self.started.append(process)
        return process

    def run(self, *flags: str, out: str = "results.jsonl") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*flags, out=out), cwd=self.folder, capture_output=True, text=True, timeout=100, check=False
        )

    @property
    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    @property
    def ids(self) -> list[str]:
        return sorted(row["id"] for row in self.results)

    @property
    def requests(self) -> list[str]:
        return sorted(task_of(request.body) for request in self.server.requests if request.method == "POST")


@pytest.fixture
def batches(tmp_path: Path, home: Path) -> Iterator[Callable[[Any], Batches]]:
    made: list[Batches] = []

    def start(answer: Any = echo) -> Batches:
        server = ModelServer([answer], repeat=True)
        server.__enter__()
        made.append(Batches(tmp_path, server))
        return made[-1]

    yield start
    for each in made:
        for process in each.started:
            process.kill()
            process.wait()
        each.server.__exit__(None, None, None)


class Gate:
    """Answers that wait until the test opens it."""

    def __init__(self) -> None:
        self.opened, self.waiting, self._lock = threading.Event(), 0, threading.Semaphore(0)

    def __call__(self, body: dict[str, Any]) -> Any:
        self._lock.release()
        assert self.opened.wait(60)
        return echo(body)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self._lock.acquire(timeout=60)


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(each) for each in text.split()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
