"""JavaScript sessions for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from interpreter.languages.javascript import JavaScript
from interpreter.runtimes.launch import RuntimeContext
from python_runtimes import Ran, chunk_of


class JavaScriptRuntime(JavaScript):
    """A JavaScript session with its own context."""

    def __init__(self) -> None:
        self.context = RuntimeContext()
        super().__init__(self)

    def do(self, code: str) -> Ran:
        """Run a block to its end."""
        return Ran([chunk_of(step) for step in self.run(code)])

    def interrupted_when_ready(self, code: str) -> Ran:
        """Run code and press Ctrl-C, in another thread, as soon as it has printed `ready`."""
        ran, presser = Ran(), threading.Thread(target=self.stop)
        for step in self.run(code):
            ran.chunks.append(chunk_of(step))
            if not presser.ident and "ready\n" in ran.stdout:
                presser.start()
        return ran


@pytest.fixture(scope="module")
def session() -> Iterator[JavaScriptRuntime]:
    """One session for all tests of a module."""
    javascript = JavaScriptRuntime()
    yield javascript
    javascript.terminate()


@pytest.fixture
def fresh() -> Iterator[JavaScriptRuntime]:
    """Start a new session for one test."""
    javascript = JavaScriptRuntime()
    yield javascript
    javascript.terminate()
