"""Going to an address: checked first, and what came of it in words."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interpreter.computer_api.browser.errors import BrowserError, BrowserTimeoutError, NotReachableError
from interpreter.computer_api.browser.frame import shown
from interpreter.computer_api.browser.launch import reason
from interpreter.computer_api.browser.reach import completed
from interpreter.computer_api.browser.window import NO

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page, Response

    from interpreter.computer_api.browser.window import Window

ERROR_PAGE = "chrome-error:"
SHOWN = 5.0  # seconds that it takes at most
STOP = "Page.stopLoading"  # a tab that waits for an answer takes no other call


async def go(window: Window, page: Page, url: str) -> Response | None:
    """Load an address in a tab; NotReachableError if it, or one that it leads to, is out of reach."""
    url = completed(url)
    reach = window.launch.reach
    reach.check(url)
    if url.startswith("file:"):
        await window.keep_to_workspace()
    window.failed, window.answer = "", NO  # a yes was for the page that is left
    window.offered.clear()
    with watching(page) as shows:
        try:
            response = await page.goto(url, wait_until="domcontentloaded")
        except asyncio.CancelledError:
            await window.command(page, STOP)
            raise
        except window.launch.timeout_error as error:
            await window.command(page, STOP)
            raise BrowserTimeoutError(
                f"{shown(url)} did not answer in time. Try again later, or computer.browser.setup(timeout=120)."
            ) from error
        except window.launch.error as error:
            await outcome(window, shows)
            raise failure(window, url, error) from error
    check_arrival(window, page.url)
    await window.loaded(page)
    return response


@contextlib.contextmanager
def watching(page: Page) -> Iterator[asyncio.Event]:
    """Set when the browser shows its own page about an address that did not load."""
    shows = asyncio.Event()

    def look(frame: Frame) -> None:
        if frame.parent_frame is None and frame.url.startswith(ERROR_PAGE):
            shows.set()

    page.on("framenavigated", look)
    try:
        yield shows
    finally:
        page.remove_listener("framenavigated", look)


async def outcome(window: Window, shows: asyncio.Event) -> None:
    """Wait for what comes a moment after a page did not: the error page, which would end the next one, or a file."""
    tasks = [asyncio.create_task(event.wait()) for event in (shows, window.offered)]
    try:
        await asyncio.wait(tasks, timeout=SHOWN, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def failure(window: Window, url: str, error: Exception) -> BrowserError:
    """Why a page did not load, in words."""
    check_arrival(window, window.failed)
    if window.offered.is_set():
        if window.wanted is None:
            window.take_notices()
        return BrowserError(f"{shown(url)} is a file and no page: computer.browser.download() saves it.")
    return BrowserError(f"{shown(window.failed or url)} could not be loaded: {reason(error)}")


def check_arrival(window: Window, url: str) -> None:
    """A redirect may have led elsewhere, where the proxy refuses; say so."""
    reach = window.launch.reach
    if urlsplit(url).scheme in ("http", "https") and (why := reach.refusal(url)):
        raise NotReachableError(f"The address led to {shown(url)}. {why}")


def arrived(page: Page, response: Response | None) -> str:
    status = f", status {response.status}" if response is not None and response.status != 200 else ""
    kind = response.headers.get("content-type", "") if response is not None else ""
    if "application/pdf" in kind:
        return f"{shown(page.url)} is a PDF: computer.browser.download({page.url!r}) saves it."
    return f"At {shown(page.url)}{status}. read() gives its text, snapshot() its elements."
