"""How a browser is started, or one that runs is attached to."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser.errors import BrowserError, BrowserMissingError
from interpreter.computer_api.browser.profile import Profile
from interpreter.computer_api.browser.program import NO_PLAYWRIGHT, Program, find
from interpreter.computer_api.browser.reach import Reach

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

OTHER_PROFILE = "Another browser of ours has the profile with the logins, so this one has another profile."


@dataclass
class Started:
    """What is to be put away at the end."""

    playwright: Playwright
    context: BrowserContext
    profile: Profile | None = None
    attached: Browser | None = None
    word: str = ""

    async def close(self, limit: float) -> None:
        from playwright.async_api import Error

        if self.attached is None:
            with contextlib.suppress(Error, TimeoutError):
                await asyncio.wait_for(self.context.close(), limit)
        # The browser's pipe is the driver's: it ends with it, and one that is attached to is let go.
        with contextlib.suppress(Error, TimeoutError):
            await asyncio.wait_for(self.playwright.stop(), limit)
        if self.profile is not None:
            self.profile.release()


@dataclass(frozen=True)
class Launch:
    """How the browser is wanted; another wish needs another browser."""

    reach: Reach
    path: str | None = None
    seen: bool = False
    attach_to: str = ""

    @property
    def is_firefox(self) -> bool:
        return not self.attach_to and bool(self.path) and Program(str(self.path)).is_firefox

    @property
    def error(self) -> type[Exception]:
        from playwright.async_api import Error

        return Error

    @property
    def timeout_error(self) -> type[Exception]:
        from playwright.async_api import TimeoutError as LateError

        return LateError

    async def start(self) -> Started:
        try:
            from playwright.async_api import async_playwright
        except ImportError as error:
            raise BrowserMissingError(NO_PLAYWRIGHT) from error
        playwright = await async_playwright().start()
        try:
            return await (self._attach(playwright) if self.attach_to else self._launch(playwright))
        except BaseException:
            await playwright.stop()
            raise

    async def _attach(self, playwright: Playwright) -> Started:
        try:
            browser = await playwright.chromium.connect_over_cdp(self.attach_to)
        except self.error as error:
            raise BrowserError(
                f"No browser answers at {self.attach_to}. Start one for it: "
                "chromium --remote-debugging-port=9222 --user-data-dir=FOLDER"
            ) from error
        context = browser.contexts[0] if browser.contexts else await browser.new_context()
        return Started(playwright, context, attached=browser)

    async def _launch(self, playwright: Playwright) -> Started:
        program = find(self.path, playwright)
        kind = playwright.firefox if program.is_firefox else playwright.chromium
        profile = Profile()
        try:
            context = await kind.launch_persistent_context(profile.path, **self._options(program))
        except self.error as error:
            profile.release()
            raise BrowserError(f"{program.path} did not start: {reason(error)}") from error
        except BaseException:
            profile.release()
            raise
        return Started(playwright, context, profile, word="" if profile.is_usual else OTHER_PROFILE)

    def _options(self, program: Program) -> dict[str, Any]:
        if program.is_firefox and not self.reach.is_open:
            raise BrowserError("Offline and in a sandbox only Chromium and its relatives can be used, not Firefox.")
        options: dict[str, Any] = {
            "executable_path": program.path,
            "headless": not self.seen,
            "args": [] if program.is_firefox else self.reach.arguments(),
            "accept_downloads": True,
            # Ctrl-C is for the turn; the browser ends with the driver.
            **dict.fromkeys(("handle_sigint", "handle_sigterm", "handle_sighup"), False),
        }
        if self.seen:
            options["no_viewport"] = True  # the page is as large as the window is
        if not program.is_firefox:
            options["chromium_sandbox"] = not is_root()  # Chromium refuses to start as root with its own sandbox
        return options


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def reason(error: Exception) -> str:
    """The first line of what Playwright says; its log of the call follows."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return first.split(": ", 1)[-1] if first.split(": ", 1)[0].count(".") == 1 else first
