"""Find the browsers that are installed on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from interpreter.host.processes import which

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


def installed_browsers(*others: str) -> list[str]:
    """Return the paths of installed Chromium-based browsers, and those of `others` that exist."""
    places = [path for path in map(which, NAMES) if path]
    if sys.platform == "darwin":  # macOS doesn't put browsers on the PATH
        places += [*MAC, *(os.path.expanduser(f"~{path}") for path in MAC)]
    if sys.platform == "win32":
        roots = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
        places += [os.path.join(root, path) for path in WINDOWS for root in roots if root]
    return [path for path in (*places, *others) if os.path.isfile(path) and os.access(path, os.X_OK)]


def is_firefox(path: str) -> bool:
    return "firefox" in Path(path).name.lower()
