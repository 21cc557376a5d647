"""Waiting for a text on the page, in its frames, or in the tab that it opens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from interpreter.computer_api.browser.errors import BrowserTimeoutError
from interpreter.computer_api.browser.frame import quoted, shown

if TYPE_CHECKING:
    from playwright.async_api import Page

    from interpreter.computer_api.browser.window import Window

SEEN = """text => {
  const squeezed = value => value.replace(/\\s+/g, " ").toLowerCase();
  const wanted = squeezed(text);
  const there = () => document.body && squeezed(document.body.innerText).includes(wanted);
  return new Promise(done => {
    if (there()) return done(true);
    const watching = new MutationObserver(() => there() && (watching.disconnect(), done(true)));
    watching.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
  });
}"""


async def until_seen(window: Window, text: str, limit: float) -> None:
    """Come back when the text is seen; BrowserTimeoutError if it does not come."""
    try:
        await asyncio.wait_for(_watch(window, text), limit)
    except TimeoutError as error:
        url = (await window.page()).url
        raise BrowserTimeoutError(
            f"{quoted(text)} did not come in {limit:g} seconds on {shown(url)}. read() tells what is there."
        ) from error


async def _watch(window: Window, text: str) -> None:
    while True:
        window.changed.clear()
        page = await window.page()
        if await _first(page, window, text):
            return


async def _first(page: Page, window: Window, text: str) -> bool:
    """Whether the text came; False if another page came first."""
    moved = asyncio.Event()
    note = lambda *_: moved.set()  # noqa: E731 - the same one is taken off again
    page.on("framenavigated", note)
    looks = [asyncio.create_task(_look(page, number, text, window)) for number in range(len(page.frames))]
    others = [asyncio.create_task(event.wait()) for event in (moved, window.changed)]
    tasks = [*looks, *others]
    try:
        waiting = set(tasks)
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if any(task in looks and task.result() for task in done):
                return True
            if any(task in others for task in done):
                return False
        return False
    finally:
        page.remove_listener("framenavigated", note)
        for task in tasks:
            task.cancel()


async def _look(page: Page, number: int, text: str, window: Window) -> bool:
    try:
        return bool(await page.frames[number].evaluate(SEEN, text))
    except (window.launch.error, IndexError):
        return False  # the frame has gone, which is a navigation
