"""Python sessions for tests with both engines, and the results of a block in a convenient form."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from interpreter.questions import Question, Step
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.python.language import Python

ENGINES = ("ipython", "bare")
# For tests that start a new session: in `make test`, the conformance checks cover the bare engine.
ENGINES_FULL = ("ipython", pytest.param("bare", marks=pytest.mark.full))
READY_WITHIN = 60  # seconds


def chunk_of(step: Step) -> dict[str, Any]:
    """Convert a step to its chunk, a question too, as a stream shows it."""
    return dict(step.chunk if isinstance(step, Question) else step)


@dataclass
class Ran:
    """The output of a block and how it ended."""

    chunks: list[dict[str, Any]] = field(default_factory=list)

    def outputs(self, **wanted: Any) -> list[str]:
        return [
            chunk["content"]
            for chunk in self.chunks
            if chunk.get("format") == "output" and all(chunk.get(key) == value for key, value in wanted.items())
        ]

    @property
    def text(self) -> str:
        """All console output, in order."""
        return "".join(self.outputs())

    @property
    def stdout(self) -> str:
        return "".join(self.outputs(stream=None))

    @property
    def stderr(self) -> str:
        return "".join(self.outputs(stream="stderr"))

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [chunk for chunk in self.chunks if chunk["type"] == kind]

    @property
    def lines(self) -> list[int]:
        """Return the active lines."""
        numbers = [chunk["content"] for chunk in self.chunks if chunk.get("format") == "active_line"]
        return [line for line in numbers if line is not None]

    @property
    def ended(self) -> str:
        return str(self.chunks[-1]["ended"])

    @property
    def exit_code(self) -> int | None:
        code: int | None = self.chunks[-1]["exit_code"]
        return code


class PythonRuntime(Python):
    """A Python session with its own context."""

    def __init__(self, engine: str = "ipython", python: str | None = None) -> None:
        self.context = RuntimeContext(python=python)
        super().__init__(self)
        self.context.exported["INTERPRETER_PYTHON_ENGINE"] = engine
        self.engine = engine

    def do(self, code: str) -> Ran:
        """Run a block to its end."""
        return Ran([chunk_of(step) for step in self.run(code)])

    def interrupted_when_ready(self, code: str) -> Ran:
        """Run code and press Ctrl-C, in another thread, as soon as it prints `ready`."""
        ran, presser = Ran(), threading.Thread(target=self.stop)
        watchdog = threading.Timer(READY_WITHIN, self.stop)  # so that a failure shows the output
        watchdog.start()
        for step in self.run(code):
            ran.chunks.append(chunk_of(step))
            if not presser.ident and ran.stdout.startswith("ready\n"):
                watchdog.cancel()
                presser.start()
        watchdog.cancel()
        assert presser.ident, f"never ready: {ran.chunks}"
        return ran


@pytest.fixture(scope="module", params=ENGINES)
def session(request: pytest.FixtureRequest) -> Iterator[PythonRuntime]:
    """One session for all tests of a module, with each engine."""
    python = PythonRuntime(request.param)
    yield python
    python.terminate()


@pytest.fixture(params=ENGINES_FULL)
def fresh(request: pytest.FixtureRequest) -> Iterator[PythonRuntime]:
    """Start a new session for one test, with each engine."""
    python = PythonRuntime(request.param)
    yield python
    python.terminate()
