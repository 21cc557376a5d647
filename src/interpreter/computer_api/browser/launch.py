"""Starting a browser: which program, with which profile, under which limits; or attaching to one that runs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser.boundary import Boundary, BrowserError, BrowserMissingError
from interpreter.config.homes import make_folder, our_folder
from interpreter.host.browsers import installed_browsers, is_firefox
from interpreter.host.files import lock
from interpreter.host.installation import install_hint
from interpreter.host.processes import which

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Playwright

ENGINE = "interpreter"  # the name under which Playwright knows page.js
OTHER_PROFILE = "Another browser is using the profile with the logins, so this one has a different profile."
MAX_PROFILES = 16


@dataclass(frozen=True)
class BrowserLaunch:
    """Options to start the browser with; other options need another browser."""

    boundary: Boundary
    path: str | None = None
    headed: bool = False
    attach_to: str = ""

    @property
    def is_firefox(self) -> bool:
        return not self.attach_to and is_firefox(self.path or "")

    async def start(self) -> tuple[Playwright, BrowserContext, BrowserProfile | None]:
        """Start the browser; return it with its profile, or with None for an attached browser."""
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError as error:
            raise BrowserMissingError(f"The browser needs Playwright: {install_hint('browser')}") from error
        playwright, profile = await async_playwright().start(), None
        try:
            if not self.attach_to:
                context, profile = await self._launch(playwright)
            else:
                try:
                    browser = await playwright.chromium.connect_over_cdp(self.attach_to)
                except Error as error:
                    raise BrowserError(
                        f"No browser answers at {self.attach_to}. To start one: chromium --remote-debugging-port=9222 "
                        f"--user-data-dir=FOLDER"
                    ) from error
                context = browser.contexts[0] if browser.contexts else await browser.new_context()
            await playwright.selectors.register(ENGINE, script("page.js"), content_script=True)
            return playwright, context, profile
        except BaseException:
            await playwright.stop()
            raise

    async def _launch(self, playwright: Playwright) -> tuple[BrowserContext, BrowserProfile]:
        from playwright.async_api import Error

        program = find_browser(self.path, playwright)
        firefox = is_firefox(program)
        if firefox and not self.boundary.is_open:
            raise BrowserError("With `offline` or a sandbox, only Chromium-based browsers can be used, not Firefox.")
        options: dict[str, Any] = {
            "executable_path": program,
            "headless": not self.headed,
            "args": [] if firefox else self.boundary.arguments(),
            "accept_downloads": True,
            # Ctrl-C is for the turn; the browser ends with the driver.
            **dict.fromkeys(("handle_sigint", "handle_sigterm", "handle_sighup"), False),
            # The page is as large as the window is.
            **({"no_viewport": True} if self.headed else {}),
            # Chromium refuses to start as root with its own sandbox.
            **({} if firefox else {"chromium_sandbox": not hasattr(os, "geteuid") or os.geteuid() != 0}),
        }
        profile = BrowserProfile(our_folder("data") / "browser")
        try:
            kind = playwright.firefox if firefox else playwright.chromium
            context = await kind.launch_persistent_context(profile.path, **options)
        except BaseException as error:
            profile.release()
            if isinstance(error, Error):
                raise BrowserError(f"{program} did not start: {reason(error)}") from error
            raise
        return context, profile


def script(name: str) -> str:
    """Read one of our files that run in a page."""
    return Path(__file__).with_name(name).read_text("utf-8")


def reason(error: Exception) -> str:
    """Return the first line of Playwright's message; its log of the call follows there."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return first.split(": ", 1)[-1] if first.split(": ", 1)[0].count(".") == 1 else first


# -- which browser -----------------------------------------------------------------------------------------------------


def find_browser(named: str | None, playwright: Playwright) -> str:
    """Return the browser to use: the one that is named, one of the user's, or one that Playwright installed."""
    if named:
        if (path := which(os.path.expanduser(named))) is None:
            raise BrowserMissingError(f"There is no program {named} (setting computer.browser_path).")
        return path
    if not (found := installed_browsers(playwright.chromium.executable_path, playwright.firefox.executable_path)):
        raise BrowserMissingError(
            "No browser found. Install Chromium or Chrome (for example `apt install chromium`), run `playwright "
            "install chromium`, or set computer.browser_path."
        )
    return found[0]


def can_show_window() -> bool:
    """Return whether there is a display, and a user at a terminal before it."""
    if sys.platform not in ("darwin", "win32") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


# -- profiles ----------------------------------------------------------------------------------------------------------


class BrowserProfile:
    """Cookies and logins that stay, apart from the user's own; used by one of our browsers at a time."""

    def __init__(self, root: Path) -> None:
        try:
            make_folder(root)
            root.chmod(0o700)
            for number in range(1, MAX_PROFILES + 1):
                # The first is the one with the logins; others are for further browsers at the same time.
                self.is_usual = number == 1
                self.path = root / ("profile" if self.is_usual else f"profile-{number}")
                self.path.mkdir(exist_ok=True, mode=0o700)
                self._lock = os.open(root / f"{self.path.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
                with suppress(BlockingIOError):  # another browser has it, until its process ends
                    lock(self._lock)
                    return
                self.release()
        except OSError as error:
            raise BrowserError(f"Can't create the browser's profile in {root}: {error.strerror}.") from error
        raise BrowserError(f"{MAX_PROFILES} browsers are already open. Close one with computer.browser.quit().")

    def release(self) -> None:
        held, self._lock = self._lock, -1  # closed twice, the number might be another file by then
        if held != -1:
            os.close(held)
