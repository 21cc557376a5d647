"""A desktop for the tests in this folder; each test worker has its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from screen.desktop import Desktop, missing


@pytest.fixture(scope="session")
def _desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    if packages := missing():
        pytest.skip(f"a desktop needs packages: apt-get install {' '.join(packages)}")
    made = Desktop(tmp_path_factory.mktemp("desktop"))
    yield made
    made.close()


@pytest.fixture
def desktop(_desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desktop]:
    """Share the desktop without applications, with this test's environment; started applications end with the test."""
    for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, _desktop.env[name])
    for name in ("WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "AT_SPI_BUS_ADDRESS", "XMODIFIERS"):
        monkeypatch.delenv(name, raising=False)
    yield _desktop
    _desktop.close_applications()
    _desktop.until(lambda: not _desktop.windows(), "all windows to close")


@pytest.fixture
def two_monitors(desktop: Desktop) -> Iterator[Desktop]:
    """Show the desktop on two monitors side by side."""
    desktop.two_monitors()
    yield desktop
    desktop.one_monitor()


@pytest.fixture
def computer(desktop: Desktop) -> Iterator[Any]:
    """Make a computer that uses the desktop's input device."""
    from interpreter import OpenInterpreter

    made = OpenInterpreter().computer
    yield made
    made.mouse.terminate()


@pytest.fixture
def page(tmp_path: Path) -> Callable[[str], str]:
    """`page(html)` writes an HTML page and returns its address."""

    def make(html: str) -> str:
        file = tmp_path / f"page-{uuid.uuid4().hex[:6]}.html"
        file.write_text(f"<!doctype html><meta charset=utf-8>{html}")
        return file.as_uri()

    return make
