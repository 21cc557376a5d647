"""Shell sessions for tests: bash and zsh, shared by a module or new for one test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.shell.language import Shell
from python_runtimes import Ran

SHELLS = ["bash", pytest.param("zsh", marks=pytest.mark.needs("zsh"))]


class ShellRuntime(Shell):
    """A shell session with its own context."""

    def __init__(self, shell: str = "bash", **context: Any) -> None:
        self.context = RuntimeContext(shell=shutil.which(shell), **context)
        super().__init__(self)
        self.kind = shell

    def do(self, code: str, on_output: Callable[[str], None] | None = None) -> Ran:
        """Run a block to its end; `on_output` gets the whole output so far, at each new output."""
        ran = Ran()
        for chunk in self.run(code):
            ran.chunks.append(dict(chunk))
            if on_output is not None and chunk.get("format") == "output":
                on_output(ran.text)
        return ran

    def stop_at(self, marker: str, code: str) -> Ran:
        """Run a block and interrupt it as soon as it has written the marker."""
        return self.do(code, lambda text: self.stop() if marker in text else None)


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Iterator[ShellRuntime]:
    """One session for all tests of a module, with each shell."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    session = ShellRuntime(request.param)
    yield session
    session.terminate()


@pytest.fixture(params=SHELLS)
def fresh(request: pytest.FixtureRequest) -> Iterator[ShellRuntime]:
    """Start a new session for one test, with each shell."""
    session = ShellRuntime(request.param)
    yield session
    session.terminate()


@pytest.fixture
def bash() -> Iterator[ShellRuntime]:
    """Start a new bash session for one test."""
    session = ShellRuntime("bash")
    yield session
    session.terminate()
