"""What is done with a page: going to it, clicking and filling its elements, downloading, waiting, searching."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from interpreter.computer_api.browser.boundary import (
    BrowserError,
    BrowserTimeoutError,
    ElementError,
    NotReachableError,
    clean,
    completed,
    marked,
    quoted,
    shown,
)
from interpreter.computer_api.browser.launch import reason
from interpreter.computer_api.browser.reading import CONTROLS, elements, is_ref, named, script, whole
from interpreter.computer_api.browser.window import CANCEL

if TYPE_CHECKING:
    from playwright.async_api import Download, ElementHandle, Frame, Locator, Page, Response

    from interpreter.computer_api.browser.boundary import Upload
    from interpreter.computer_api.browser.window import Window

ERROR_PAGE = "chrome-error:"
ERROR_SHOWN = 5.0  # seconds that it takes at most
STOP_LOADING = "Page.stopLoading"  # a tab that waits for an answer takes no other call
FILES = frozenset(["button", "textbox"])
UNSAFE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
LONGEST_NAME = 120
MOST_RESULTS = 10
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


# -- going to an address -----------------------------------------------------------------------------------------------


async def go(window: Window, page: Page, url: str) -> Response | None:
    """Load an address in a tab; NotReachableError if it, or one that it redirects to, is not allowed."""
    url = completed(url)
    window.launch.boundary.check(url)
    if url.startswith("file:"):
        await window.check_file_requests()
    window.failed_url, window.dialog_answer = "", CANCEL  # a consent was for the page that is left
    window.download_offered.clear()
    error_shown = asyncio.Event()

    def look(frame: Frame) -> None:
        if frame.parent_frame is None and frame.url.startswith(ERROR_PAGE):
            error_shown.set()

    page.on("framenavigated", look)
    try:
        response = await page.goto(url, wait_until="domcontentloaded")
    except asyncio.CancelledError:
        await window.command(page, STOP_LOADING)
        raise
    except window.timeout_error as error:
        await window.command(page, STOP_LOADING)
        raise BrowserTimeoutError(
            f"{shown(url)} did not answer in time. Try again later, or computer.browser.setup(timeout=120)."
        ) from error
    except window.error as error:
        # What comes a moment later: the error page, which would end the next one, or a file.
        await _first_of(error_shown, window.download_offered, limit=ERROR_SHOWN)
        check_arrival(window, window.failed_url)
        if window.download_offered.is_set():
            if window.wanted_download is None:
                window.take_notices()
            raise BrowserError(f"{shown(url)} is a file and no page: computer.browser.download() saves it.") from error
        raise BrowserError(f"{shown(window.failed_url or url)} could not be loaded: {reason(error)}") from error
    finally:
        page.remove_listener("framenavigated", look)
    check_arrival(window, page.url)
    await window.loaded(page)
    return response


async def _first_of(*events: asyncio.Event, limit: float) -> None:
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def check_arrival(window: Window, url: str) -> None:
    """A redirect may have led to an address that the proxy refuses; say so."""
    if urlsplit(url).scheme in ("http", "https") and (why := window.launch.boundary.refusal(url)):
        raise NotReachableError(f"The address led to {shown(url)}. {why}")


def arrived(page: Page, response: Response | None) -> str:
    status = f", status {response.status}" if response is not None and response.status != 200 else ""
    kind = response.headers.get("content-type", "") if response is not None else ""
    if "application/pdf" in kind:
        return f"{shown(page.url)} is a PDF: computer.browser.download({page.url!r}) saves it."
    return f"At {shown(page.url)}{status}. read() gives its text, snapshot() its elements."


async def search(window: Window, url: str) -> dict[str, Any]:
    """The results of a search page, opened in its own tab, so that the current page stays."""
    before = await window.page()
    page = await window.context.new_page()
    try:
        await go(window, page, url)
        found = await page.evaluate(script("results.js"), MOST_RESULTS)
        results = [{name: clean(str(each[name])) for name in ("title", "url", "snippet")} for each in found]
        values = marked(page.url, results=results)
        if not results:
            values["text"] = clean(await whole(window, page))[:4000]
        return window.with_notices(values)
    finally:
        with contextlib.suppress(window.error):
            await page.close()
            await window.show(before)


# -- elements ----------------------------------------------------------------------------------------------------------


async def located(window: Window, target: str, preferred: Collection[str] = CONTROLS) -> Locator:
    """The element with a ref, or of that name; ElementError if it is not one element."""
    page = await window.page()
    target = str(target).strip()
    ref = target if is_ref(target) else named(elements(await page.aria_snapshot(mode="ai")), target, preferred).ref
    found = page.locator(f"aria-ref={ref}")
    try:
        count = await found.count()
    except window.error:  # no snapshot has been taken of this page
        count = 0
    if count != 1:
        raise ElementError(f"There is no element {ref} on the page any more: take a new computer.browser.snapshot().")
    return found


async def act(
    window: Window,
    target: str,
    do: Callable[[Locator], Awaitable[Any]],
    done: str,
    preferred: Collection[str] = CONTROLS,
) -> str:
    """Do something with an element, and report where that led."""
    page = await window.page()
    element = await located(window, target, preferred)
    with element_errors(window, target):
        await do(element)
    return await report(window, page, done)


async def report(window: Window, page: Page, done: str) -> str:
    """What was done, where that led, and the notices of the page."""
    await window.settle(page)
    current = await window.page()
    return window.report(f"{done} Now at {shown(current.url)}.")


@contextlib.contextmanager
def element_errors(window: Window, target: str) -> Iterator[None]:
    """Playwright's messages are about selectors; ours are about the element."""
    try:
        yield
    except window.timeout_error as error:
        # The last thing that Playwright waited for.
        lines = [line.strip(" -") for line in str(error).splitlines()[1:]]
        skipped = ("waiting", "attempting", "retrying", "Call log")
        reasons = [line for line in lines if line and not line.startswith(skipped)]
        why = clean(reasons[-1])[:200] if reasons else "it did not become ready in time"
        raise BrowserTimeoutError(
            f"{target} cannot be used at the moment: {why}. Take a computer.browser.snapshot() or a screenshot()."
        ) from error
    except window.error as error:
        raise ElementError(f"{target}: {reason(error)}") from error


async def press(window: Window, key: str, target: str | None) -> str:
    page = await window.page()
    with element_errors(window, target or key):
        if target is None:
            await page.keyboard.press(key)
        else:
            await (await located(window, target)).press(key)
    return await report(window, page, f"Pressed {key}.")


async def choose(element: Locator, target: str, values: list[str]) -> None:
    """Choose in a list, by label or value."""
    listed = await element.evaluate("e => Array.from(e.options || [], o => [o.label.trim(), o.value])")
    if not listed:
        raise ElementError(f"{target} is no list to choose from; open it with click() and click what is wanted.")
    by_name = {value: value for _, value in listed} | dict(reversed(listed))
    missing = [value for value in values if value not in by_name]
    if missing:
        names = ", ".join(repr(clean(label)[:60]) for label, _ in listed[:30])
        raise ElementError(f"{target} has no {missing[0]!r}. It has: {names}.")
    await element.select_option([by_name[value] for value in values])


async def upload(element: Locator, uploads: list[Upload]) -> None:
    files: Any = [each.file for each in uploads]
    if await element.evaluate("e => e.localName === 'input' && e.type === 'file'"):
        await element.set_input_files(files)
    else:
        async with element.page.expect_file_chooser() as choosing:
            await element.click()
        await (await choosing.value).set_files(files)


# -- downloads ---------------------------------------------------------------------------------------------------------


async def download(window: Window, target: str, folder: Path) -> str:
    """Click what leads to a file, or go to its address, and save the file; its path."""
    page = await window.page()
    is_address = target.startswith(("http://", "https://"))
    element = None if is_address else await (await located(window, target)).element_handle()
    window.wanted_download = asyncio.get_running_loop().create_future()
    try:
        got = await _requested(window, page, target, element, window.wanted_download)
    finally:
        window.wanted_download = None
    if isinstance(got, bytes):
        return str(save(folder, target.rsplit("/", 1)[-1].split("?")[0], io.BytesIO(got)))
    try:
        with open(await got.path(), "rb") as content:
            return str(save(folder, got.suggested_filename, content))
    except window.error as error:
        raise BrowserError(f"The download did not come whole: {reason(error)}") from error
    finally:
        await got.delete()


async def _requested(
    window: Window, page: Page, target: str, element: ElementHandle | None, wanted: asyncio.Future[Download]
) -> Download | bytes:
    """The download; or the content itself, of an address that the browser shows instead."""
    if element is not None:
        with element_errors(window, target):
            await element.click()
        return await wanted
    try:
        response = await go(window, page, target)
    except BrowserError:
        if not window.download_offered.is_set():
            raise
        return await wanted
    return await response.body() if response is not None and not wanted.done() else await wanted


def save(folder: Path, suggested: str, content: BinaryIO) -> Path:
    """Write a file under a name that is a name and not a path, and that no other file has."""
    name = UNSAFE.sub("_", clean(suggested)).strip(" .")[-LONGEST_NAME:] or "download"
    for number in range(1, 1000):
        stem, suffix = os.path.splitext(name)
        path = folder / (name if number == 1 else f"{stem}-{number}{suffix}")
        try:
            with open(path, "xb") as file:
                shutil.copyfileobj(content, file)
        except FileExistsError:
            continue
        except OSError as error:
            raise BrowserError(f"{path} cannot be written: {error.strerror}.") from error
        return path
    raise BrowserError(f"There are too many files named {name} in {folder}.")


# -- tabs --------------------------------------------------------------------------------------------------------------


async def list_tabs(window: Window) -> dict[str, Any]:
    current = await window.page()
    tabs = [
        {"tab": number, "title": clean(await page.title()), "url": page.url, "current": page == current}
        for number, page in enumerate(window.tabs, 1)
    ]
    return window.with_notices(marked(tabs=tabs))


async def show_tab(window: Window, which: int | str) -> str:
    page = await window.context.new_page() if which == "new" else numbered_tab(window, int(which))
    await window.show(page)
    return window.report(f"In the tab with {shown(page.url)}.")


async def close_tab(window: Window, number: int | None) -> str:
    page = await window.page() if number is None else numbered_tab(window, number)
    was_current = page == await window.page()
    await page.close()
    if was_current:
        await window.go_to_last_tab()
    return window.report(f"Closed. Now at {shown((await window.page()).url)}.")


async def back(window: Window) -> str:
    page = await window.page()
    response = await page.go_back(wait_until="domcontentloaded")
    return window.report(arrived(page, response))


def numbered_tab(window: Window, number: int) -> Page:
    if not 1 <= number <= len(window.tabs):
        raise ValueError(f"There is no tab {number}: there are {len(window.tabs)}, see computer.browser.tabs().")
    return window.tabs[number - 1]


# -- waiting for a text ------------------------------------------------------------------------------------------------


async def wait_for_text(window: Window, text: str, limit: float) -> str:
    """Return when a text is seen on the page, in its frames or in the tab it opens; else BrowserTimeoutError."""
    try:
        async with asyncio.timeout(limit):
            while not await _seen_first(window, text):
                pass
    except TimeoutError as error:
        url = (await window.page()).url
        raise BrowserTimeoutError(
            f"{quoted(text)} did not come in {limit:g} seconds on {shown(url)}. read() tells what is there."
        ) from error
    return window.report(f"{quoted(text)} is on the page.")


async def _seen_first(window: Window, text: str) -> bool:
    """Whether the text came; False if another page came first."""
    window.tab_changed.clear()
    page = await window.page()
    moved = asyncio.Event()

    def note(*_: Any) -> None:
        moved.set()

    async def look(frame: Frame) -> bool:
        try:
            return bool(await frame.evaluate(SEEN, text))
        except window.error:
            return False  # the frame has gone, which is a navigation

    page.on("framenavigated", note)
    looks = [asyncio.create_task(look(frame)) for frame in page.frames]
    others = [asyncio.create_task(event.wait()) for event in (moved, window.tab_changed)]
    try:
        waiting = {*looks, *others}
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if any(task in looks and task.result() for task in done):
                return True
            if any(task in others for task in done):
                return False
        return False
    finally:
        page.remove_listener("framenavigated", note)
        for task in (*looks, *others):
            task.cancel()
