"""Finding, starting and closing a browser; no process is left, however the program ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from browser.web_app import WebApp
from interpreter import OpenInterpreter
from interpreter.computer_api.browser import BrowserError, BrowserMissingError, launch
from interpreter.computer_api.browser.launch import BrowserProfile

CHROMIUM = pytest.mark.needs("chromium")

BEGIN = """
import sys
from interpreter import OpenInterpreter
browser = OpenInterpreter().computer.browser
browser.setup(timeout=60)
browser.go_to_url("about:blank")
print("ready", flush=True)
"""
WAIT = BEGIN + "sys.stdin.read()"
INTERRUPTED = (
    BEGIN
    + """
try:
    browser.go_to_url(sys.argv[1])
except KeyboardInterrupt:
    print(browser.evaluate("1 + 1"), flush=True)
"""
)


class NoBuilds:
    class chromium:
        executable_path = ""

    class firefox:
        executable_path = ""


def test_browser_path_chooses_the_browser(tmp_path: Path) -> None:
    own = tmp_path / "my-browser"
    own.touch(0o755)
    assert launch.find_browser(str(own), NoBuilds()) == str(own)  # type: ignore[arg-type]
    with pytest.raises(BrowserMissingError, match=r"computer\.browser_path"):
        launch.find_browser(str(tmp_path / "none"), NoBuilds())  # type: ignore[arg-type]


def test_a_browser_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(BrowserMissingError, match="playwright install chromium"):
        launch.find_browser(None, NoBuilds())  # type: ignore[arg-type]
    (tmp_path / "chromium").touch(0o755)
    assert launch.find_browser(None, NoBuilds()) == str(tmp_path / "chromium")  # type: ignore[arg-type]


def test_without_playwright_the_error_shows_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    with pytest.raises(BrowserMissingError, match=r"pip install .*\[browser\]"):
        OpenInterpreter().computer.browser.read()


def test_a_window_needs_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not launch.can_show_window()


def test_profiles_are_private_and_used_by_one_browser_at_a_time(tmp_path: Path) -> None:
    first = BrowserProfile(tmp_path / "browser")
    second = BrowserProfile(tmp_path / "browser")
    assert first.is_usual and not second.is_usual and first.path != second.path
    for path in (tmp_path / "browser", first.path, second.path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    first.release()
    again = BrowserProfile(tmp_path / "browser")
    assert again.is_usual
    again.release()
    second.release()


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None and started.stderr is not None
    assert started.stdout.readline() == "ready\n", started.stderr.read()
    return started


@pytest.mark.full
@CHROMIUM
@pytest.mark.usefixtures("no_strays")
def test_no_browser_is_left_when_the_program_is_killed() -> None:
    with start(WAIT) as started:
        below = psutil.Process(started.pid).children(recursive=True)
        started.kill()
    assert len(below) > 2
    _, alive = psutil.wait_procs(below, timeout=60)
    assert not alive


@CHROMIUM
@pytest.mark.usefixtures("no_strays")
def test_no_browser_is_left_when_the_program_ends_without_closing_it() -> None:
    with start(WAIT) as started:
        _, errors = started.communicate("", timeout=60)
    assert (started.returncode, errors) == (0, "")


@CHROMIUM
@pytest.mark.usefixtures("no_strays")
def test_ctrl_c_leaves_the_browser_usable(app: WebApp) -> None:
    app.wanted.clear()
    with start(INTERRUPTED, f"{app.url}/slow") as started:
        assert app.wanted.wait(60)
        os.killpg(started.pid, signal.SIGINT)
        told, errors = started.communicate("", timeout=60)
    assert "'value': 2" in told and "notices" not in told, errors


@CHROMIUM
@pytest.mark.usefixtures("no_strays")
def test_the_browser_closes_with_the_computer_and_keeps_its_logins(tmp_path: Path, app: WebApp) -> None:
    computer = OpenInterpreter(workspace=str(tmp_path)).computer
    browser = computer.browser
    browser.setup(timeout=60)
    browser.go_to_url(f"{app.url}/article")
    browser.evaluate("document.cookie = 'user=ann; max-age=3600'")
    computer.terminate()
    assert browser._window is None
    assert "Welcome ann" in browser.read(f"{app.url}/home")
    browser.quit()


@CHROMIUM
@pytest.mark.usefixtures("no_strays")
def test_attaching_to_a_running_browser_does_not_close_it(tmp_path: Path, app: WebApp) -> None:
    options = ["--headless", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={tmp_path / 'own'}"]
    command = ["chromium", *options, f"{app.url}/article"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        line = next(line for line in running.stderr if "DevTools listening on" in line)
        port = line.split("127.0.0.1:")[1].split("/")[0]
        browser: Any = OpenInterpreter(workspace=str(tmp_path)).computer.browser
        browser.setup(timeout=60)
        browser.attach(f"http://127.0.0.1:{port}")
        browser.wait_for("Harvest")
        browser.quit()
        assert running.poll() is None
        running.terminate()
        running.stderr.read()


@CHROMIUM
def test_attaching_without_a_browser_is_an_error(tmp_path: Path) -> None:
    browser: Any = OpenInterpreter(workspace=str(tmp_path)).computer.browser
    with pytest.raises(BrowserError, match=r"--remote-debugging-port=9222"):
        browser.attach("http://127.0.0.1:1")
    browser.quit()
