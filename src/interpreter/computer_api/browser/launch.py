"""Starting a browser: which program, with which profile, under which limits; or attaching to one that runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser.boundary import Boundary, BrowserError, BrowserMissingError
from interpreter.config.homes import make_folder, our_folder
from interpreter.host.processes import which

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Playwright

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
OTHER_PROFILE = "Another browser of ours has the profile with the logins, so this one has another profile."
MOST_PROFILES = 16


@dataclass(frozen=True)
class Launch:
    """How the browser should run; a different one needs another browser."""

    boundary: Boundary
    path: str | None = None
    headed: bool = False
    attach_to: str = ""

    @property
    def is_firefox(self) -> bool:
        return not self.attach_to and is_firefox(self.path or "")

    async def start(self) -> tuple[Playwright, BrowserContext, Profile | None]:
        """The browser, and its profile; an attached browser has none of ours."""
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise BrowserMissingError(NO_PLAYWRIGHT) from error
        playwright = await async_playwright().start()
        try:
            if not self.attach_to:
                return playwright, *await self._launch(playwright)
            try:
                browser = await playwright.chromium.connect_over_cdp(self.attach_to)
            except Error as error:
                raise BrowserError(
                    f"No browser answers at {self.attach_to}. Start one for it: "
                    "chromium --remote-debugging-port=9222 --user-data-dir=FOLDER"
                ) from error
            context = browser.contexts[0] if browser.contexts else await browser.new_context()
            return playwright, context, None
        except BaseException:
            await playwright.stop()
            raise

    async def _launch(self, playwright: Playwright) -> tuple[BrowserContext, Profile]:
        from playwright.async_api import Error

        program = find_browser(self.path, playwright)
        firefox = is_firefox(program)
        if firefox and not self.boundary.is_open:
            raise BrowserError("Offline and in a sandbox only Chromium and its relatives can be used, not Firefox.")
        options: dict[str, Any] = {
            "executable_path": program,
            "headless": not self.headed,
            "args": [] if firefox else self.boundary.arguments(),
            "accept_downloads": True,
            # Ctrl-C is for the turn; the browser ends with the driver.
            **dict.fromkeys(("handle_sigint", "handle_sigterm", "handle_sighup"), False),
        }
        if self.headed:
            options["no_viewport"] = True  # the page is as large as the window is
        if not firefox:  # Chromium refuses to start as root with its own sandbox
            options["chromium_sandbox"] = not hasattr(os, "geteuid") or os.geteuid() != 0
        profile = Profile()
        try:
            kind = playwright.firefox if firefox else playwright.chromium
            context = await kind.launch_persistent_context(profile.path, **options)
        except BaseException as error:
            profile.release()
            if isinstance(error, Error):
                raise BrowserError(f"{program} did not start: {reason(error)}") from error
            raise
        return context, profile


def reason(error: Exception) -> str:
    """The first line of what Playwright says; its log of the call follows."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return first.split(": ", 1)[-1] if first.split(": ", 1)[0].count(".") == 1 else first


# -- which browser -----------------------------------------------------------------------------------------------------


def is_firefox(path: str) -> bool:
    return "firefox" in Path(path).name.lower()


def find_browser(named: str | None, playwright: Playwright) -> str:
    """The browser to use: the one that is named, else one that the user has, else one that Playwright installed."""
    if named:
        found = which(os.path.expanduser(named))
        if found is None:
            raise BrowserMissingError(f"There is no program {named}, which computer.browser_path names.")
        return found
    places = [path for path in map(which, NAMES) if path]
    if sys.platform == "darwin":  # which does not put browsers on the path
        places += [*MAC, *(os.path.expanduser(f"~{path}") for path in MAC)]
    if sys.platform == "win32":
        roots = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
        places += [os.path.join(root, path) for path in WINDOWS for root in roots if root]
    for path in (*places, playwright.chromium.executable_path, playwright.firefox.executable_path):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise BrowserMissingError(NO_BROWSER)


def can_show_window() -> bool:
    """Whether there is a display, and a user at a terminal before it."""
    if sys.platform not in ("darwin", "win32") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


# -- profiles ----------------------------------------------------------------------------------------------------------


class Profile:
    """Cookies and logins that stay, apart from the user's own; used by one of our browsers at a time."""

    def __init__(self, root: Path | None = None) -> None:
        if root is None:
            root = our_folder("data") / "browser"
        try:
            make_folder(root)
            root.chmod(0o700)
            for number in range(1, MOST_PROFILES + 1):
                # The first is the one with the logins; others are for further browsers at the same time.
                self.is_usual = number == 1
                self.path = root / ("profile" if self.is_usual else f"profile-{number}")
                self.path.mkdir(exist_ok=True, mode=0o700)
                self._lock = os.open(root / f"{self.path.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
                if _is_locked_by_us(self._lock):
                    return
                self.release()
        except OSError as error:
            raise BrowserError(f"The browser's profile in {root} cannot be made: {error.strerror}.") from error
        raise BrowserError(f"There are {MOST_PROFILES} browsers open already: close one with computer.browser.quit().")

    def release(self) -> None:
        lock, self._lock = self._lock, -1  # closed twice, the number might be another file by then
        if lock != -1:
            os.close(lock)


def _is_locked_by_us(lock: int) -> bool:
    """Try to lock a file; the system releases the lock when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
