"""Fixtures for sandbox tests: a workspace with trusted files, and runtimes inside a sandbox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.errors import SandboxUnavailableError
from interpreter.languages.javascript import JavaScript
from interpreter.policy import Policy
from interpreter.questions import without_questions
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.python import Python
from interpreter.runtimes.shell import Shell
from interpreter.sandbox import bubblewrap
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.sandbox import Sandbox
from python_runtimes import Ran

LANGUAGES = {"python": Python, "shell": Shell, "javascript": JavaScript}


@pytest.fixture
def sandbox_available() -> None:
    """Skips the test, with the reason, where no sandbox can be created."""
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".vscode").mkdir()
    return folder


class Inside:
    """The runtimes inside one sandbox."""

    def __init__(self, containment: Containment) -> None:
        self.containment = containment
        self.context = RuntimeContext(cwd=containment.sandbox.workspace, shell=shutil.which("bash"))
        self.context.containment = containment
        self.languages: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.languages:
            self.languages[name] = LANGUAGES[name](self)
        return self.languages[name]

    def do(self, name: str, code: str) -> Ran:
        return Ran([dict(chunk) for chunk in without_questions(self[name].run(code))])

    def close(self) -> None:
        for language in self.languages.values():
            language.terminate()
        self.containment.close()


@pytest.fixture
def contained(sandbox_available: None, workspace: Path, no_strays: None) -> Iterator[Any]:
    """Makes sandboxes: `contained(kind="read-only", ...)`."""
    made: list[Inside] = []

    def make(kind: str = "workspace", proxy: Any = None, state: tuple[Path, ...] = (), **more: Any) -> Inside:
        rules = Policy.load(workspace)
        sandbox = Sandbox(kind, str(workspace), **more)
        made.append(
            Inside(Containment(sandbox, proxy, state, lambda access: rules.access_refusal(access.kind, access.value)))
        )
        return made[-1]

    yield make
    for inside in made:
        inside.close()


@pytest.fixture
def inside(contained: Any) -> Inside:
    return contained()  # type: ignore[no-any-return]
