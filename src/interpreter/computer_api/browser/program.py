"""Which browser is driven: the one that is named, else one that the user has, else one that Playwright installed."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.computer_api.browser.errors import BrowserMissingError

if TYPE_CHECKING:
    from playwright.async_api import Playwright

NAMES = (
    *("google-chrome-stable", "google-chrome", "chromium", "chromium-browser"),
    *("microsoft-edge-stable", "microsoft-edge", "brave-browser", "chrome", "msedge"),
)
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/Applications/Brave Browser.app/Contents/MacOS/Brave Browser",
)
WINDOWS = (
    r"Google\Chrome\Application\chrome.exe",
    r"Chromium\Application\chrome.exe",
    r"Microsoft\Edge\Application\msedge.exe",
    r"BraveSoftware\Brave-Browser\Application\brave.exe",
)
NO_PLAYWRIGHT = "The browser needs Playwright: pip install 'open-interpreter[browser]'"
NO_BROWSER = (
    "There is no browser to drive: install Chromium or Chrome (such as `apt install chromium`), or run "
    "`playwright install chromium`, or name one in the setting computer.browser_path."
)


@dataclass(frozen=True)
class Program:
    """A browser that is installed."""

    path: str

    @property
    def is_firefox(self) -> bool:
        return "firefox" in Path(self.path).name.lower()


def find(named: str | None, playwright: Playwright) -> Program:
    """The browser to use; BrowserMissingError if there is none."""
    if named:
        found = shutil.which(os.path.expanduser(named))
        if found is None:
            raise BrowserMissingError(f"There is no program {named}, which computer.browser_path names.")
        return Program(found)
    installed = [path for path in map(shutil.which, NAMES) if path]
    places = [*installed, *usual_places(), *own_builds(playwright)]
    for path in places:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return Program(path)
    raise BrowserMissingError(NO_BROWSER)


def usual_places() -> list[str]:
    """Where browsers are on systems that do not put them on the path."""
    if sys.platform == "darwin":
        return [*MAC, *(os.path.expanduser(f"~{path}") for path in MAC)]
    if sys.platform == "win32":
        roots = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
        return [os.path.join(root, path) for path in WINDOWS for root in roots if root]
    return []


def own_builds(playwright: Playwright) -> list[str]:
    """What `playwright install` has put on this machine."""
    return [playwright.chromium.executable_path, playwright.firefox.executable_path]


def is_seen(wanted: bool | None) -> bool:
    """Whether the browser has a window: if it is wanted, else where there is a display and somebody before it."""
    if wanted is not None:
        return wanted
    if sys.platform not in ("darwin", "win32") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
