"""Servers for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from running_server import Serving, serving


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make a home and a workspace that last for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(tmp_path_factory.mktemp("workspace"))
        yield


@pytest.fixture(scope="module")
def shared(module_home: None) -> Iterator[Serving]:
    """One server for tests that change nothing."""
    with serving(server_rate=1_000_000) as served:
        yield served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()
