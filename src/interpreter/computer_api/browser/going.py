"""Going to an address: checked first, and what came of it in words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interpreter.computer_api.browser.errors import BrowserError, BrowserTimeoutError, NotReachableError
from interpreter.computer_api.browser.frame import shown
from interpreter.computer_api.browser.launch import reason
from interpreter.computer_api.browser.reach import completed
from interpreter.computer_api.browser.window import NO

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

    from interpreter.computer_api.browser.window import Window

OFFERED = 0.5  # seconds
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
    try:
        response = await load(window, page, url)
    except asyncio.CancelledError:
        await window.command(page, STOP)
        raise
    except window.launch.timeout_error as error:
        await window.command(page, STOP)
        raise BrowserTimeoutError(
            f"{shown(url)} did not answer in time. Try again later, or computer.browser.setup(timeout=120)."
        ) from error
    except window.launch.error as error:
        window.failing.add(page)
        check_arrival(window, window.failed)
        if window.wanted is None and await is_file(window):
            window.take_notices()
            raise BrowserError(f"{shown(url)} is a file and no page: computer.browser.download() saves it.") from error
        raise BrowserError(f"{shown(window.failed or url)} could not be loaded: {reason(error)}") from error
    check_arrival(window, page.url)
    await window.loaded(page)
    return response


async def load(window: Window, page: Page, url: str) -> Response | None:
    """The browser shows an error a moment after a page did not load, and that may come in between."""
    try:
        return await page.goto(url, wait_until="domcontentloaded")
    except window.launch.timeout_error:
        raise
    except window.launch.error:
        if page not in window.failing:
            raise
    finally:
        window.failing.discard(page)
    return await page.goto(url, wait_until="domcontentloaded")


async def is_file(window: Window) -> bool:
    """Whether the address is a download: the word of it comes a moment after the page did not."""
    try:
        await asyncio.wait_for(window.offered.wait(), OFFERED)
    except TimeoutError:
        return False
    return True


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
