"""A browser and a web application, shared by the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.web_app import WebApp, serving
from interpreter import OpenInterpreter


@pytest.fixture(scope="module")
def app() -> Iterator[WebApp]:
    with serving() as served:
        yield served


@pytest.fixture(scope="module")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Share a computer whose browser starts with the first test that uses it, in that test's home."""
    owner = OpenInterpreter(workspace=str(tmp_path_factory.mktemp("work").resolve()))
    yield owner.computer
    owner.computer.terminate()


@pytest.fixture
def browser(computer: Any) -> Any:
    """Return the shared browser, with the default timeout."""
    computer.browser.setup(timeout=100)
    return computer.browser


@pytest.fixture
def workspace(computer: Any) -> Path:
    return Path(computer.interpreter.workspace)
