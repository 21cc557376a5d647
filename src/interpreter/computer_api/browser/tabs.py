"""The tabs of the browser, by their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser import going
from interpreter.computer_api.browser.frame import clean, marked, shown

if TYPE_CHECKING:
    from playwright.async_api import Page

    from interpreter.computer_api.browser.window import Window


async def listed(window: Window) -> dict[str, Any]:
    current = await window.page()
    tabs = [
        {"tab": number, "title": clean(await page.title()), "url": page.url, "current": page == current}
        for number, page in enumerate(window.tabs, 1)
    ]
    return window.with_notices(marked(tabs=tabs))


async def show(window: Window, which: int | str) -> str:
    page = await window.context.new_page() if which == "new" else numbered(window, int(which))
    await window.show(page)
    return window.telling(f"In the tab with {shown(page.url)}.")


async def close(window: Window, number: int | None) -> str:
    page = await window.page() if number is None else numbered(window, number)
    was_current = page == await window.page()
    await page.close()
    if was_current:
        await window.leave()
    return window.telling(f"Closed. Now at {shown((await window.page()).url)}.")


async def back(window: Window) -> str:
    page = await window.page()
    response = await page.go_back(wait_until="domcontentloaded")
    return window.telling(going.arrived(page, response))


def numbered(window: Window, number: int) -> Page:
    if not 1 <= number <= len(window.tabs):
        raise ValueError(f"There is no tab {number}: there are {len(window.tabs)}, see computer.browser.tabs().")
    return window.tabs[number - 1]
