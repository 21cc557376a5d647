"""What is done to a page: its elements are clicked and filled, files go up and come down."""

from __future__ import annotations

import asyncio
import contextlib
import io
import mimetypes
import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from interpreter.computer_api.browser.elements import CHOICES, CONTROLS, FIELDS, elements, is_ref, named
from interpreter.computer_api.browser.errors import BrowserError, BrowserTimeoutError, ElementError
from interpreter.computer_api.browser.frame import clean, shown
from interpreter.computer_api.browser.going import go
from interpreter.computer_api.browser.launch import reason

if TYPE_CHECKING:
    from playwright.async_api import Download, ElementHandle, Locator, Page

    from interpreter.computer_api.browser.local_files import Upload
    from interpreter.computer_api.browser.window import Window

FILES = frozenset(["button", "textbox"])
UNSAFE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
LONGEST_NAME = 120


async def located(page: Page, target: str, preferred: Collection[str] = CONTROLS) -> Locator:
    """The element with a ref, or of that name; ElementError if it is not one element."""
    target = str(target).strip()
    ref = target if is_ref(target) else named(elements(await page.aria_snapshot(mode="ai")), target, preferred).ref
    found = page.locator(f"aria-ref={ref}")
    if await count(found) != 1:
        raise ElementError(f"There is no element {ref} on the page any more: take a new computer.browser.snapshot().")
    return found


async def count(found: Locator) -> int:
    from playwright.async_api import Error

    try:
        return await found.count()
    except Error:  # no snapshot has been taken of this page
        return 0


async def done(window: Window, page: Page, what: str) -> str:
    """What was done, where that led, and what the page had to say to it, in words."""
    await window.settle(page)
    current = await window.page()
    return window.telling(f"{what} Now at {shown(current.url)}.")


@contextlib.contextmanager
def in_words(window: Window, target: str) -> Iterator[None]:
    """Playwright's own words are about selectors; ours are about the element."""
    try:
        yield
    except window.launch.timeout_error as error:
        why = obstacle(error)
        raise BrowserTimeoutError(
            f"{target} cannot be used at the moment: {why}. Take a computer.browser.snapshot() or a screenshot()."
        ) from error
    except window.launch.error as error:
        raise ElementError(f"{target}: {reason(error)}") from error


def obstacle(error: Exception) -> str:
    """The last thing that Playwright waited for."""
    lines = [line.strip(" -") for line in str(error).splitlines()[1:]]
    told = [line for line in lines if line and not line.startswith(("waiting", "attempting", "retrying", "Call log"))]
    return clean(told[-1])[:200] if told else "it did not become ready in time"


async def click(window: Window, target: str, double: bool) -> str:
    page = await window.page()
    element = await located(page, target)
    with in_words(window, target):
        await (element.dblclick() if double else element.click())
    return await done(window, page, f"Clicked {target}.")


async def hover(window: Window, target: str) -> str:
    page = await window.page()
    element = await located(page, target)
    with in_words(window, target):
        await element.hover()
    return await done(window, page, f"The pointer is on {target}.")


async def fill(window: Window, target: str, text: str, submit: bool) -> str:
    page = await window.page()
    element = await located(page, target, FIELDS)
    with in_words(window, target):
        await element.fill(text)
        if submit:
            await element.press("Enter")
    return await done(window, page, f"Filled {target}.")


async def select(window: Window, target: str, values: list[str]) -> str:
    page = await window.page()
    element = await located(page, target, CHOICES)
    listed = await element.evaluate("e => Array.from(e.options || [], o => [o.label.trim(), o.value])")
    if not listed:
        raise ElementError(f"{target} is no list to choose from; open it with click() and click what is wanted.")
    by_name = {value: value for _, value in listed} | dict(reversed(listed))
    missing = [value for value in values if value not in by_name]
    if missing:
        names = ", ".join(repr(clean(label)[:60]) for label, _ in listed[:30])
        raise ElementError(f"{target} has no {missing[0]!r}. It has: {names}.")
    with in_words(window, target):
        await element.select_option([by_name[value] for value in values])
    return await done(window, page, f"Chose {', '.join(values)} in {target}.")


async def press(window: Window, key: str, target: str | None) -> str:
    page = await window.page()
    with in_words(window, target or key):
        if target is None:
            await page.keyboard.press(key)
        else:
            await (await located(page, target)).press(key)
    return await done(window, page, f"Pressed {key}.")


async def upload(window: Window, target: str, uploads: list[Upload]) -> str:
    page = await window.page()
    files: Any = [each.path or payload(each) for each in uploads]
    element = await located(page, target, FILES)
    with in_words(window, target):
        if await element.evaluate("e => e.localName === 'input' && e.type === 'file'"):
            await element.set_input_files(files)
        else:
            async with page.expect_file_chooser() as choosing:
                await element.click()
            await (await choosing.value).set_files(files)
    return await done(window, page, f"Put {', '.join(each.name for each in uploads)} into {target}.")


def payload(upload: Upload) -> dict[str, Any]:
    kind = mimetypes.guess_type(upload.name)[0] or "application/octet-stream"
    return {"name": upload.name, "mimeType": kind, "buffer": upload.content}


# -- downloads -----------------------------------------------------------------------------------------------------


async def download(window: Window, target: str, folder: Path) -> str:
    """Click what leads to a file, or go to its address, and keep the file; its path."""
    page = await window.page()
    element = None if is_address(target) else await (await located(page, target)).element_handle()
    window.wanted = asyncio.get_running_loop().create_future()
    try:
        got = await began(window, page, target, element)
    finally:
        window.wanted = None
    if isinstance(got, bytes):
        return str(kept(folder, target.rsplit("/", 1)[-1].split("?")[0], io.BytesIO(got)))
    try:
        with open(await got.path(), "rb") as content:
            return str(kept(folder, got.suggested_filename, content))
    except window.launch.error as error:
        raise BrowserError(f"The download did not come whole: {reason(error)}") from error
    finally:
        await got.delete()


async def began(window: Window, page: Page, target: str, element: ElementHandle | None) -> Download | bytes:
    """The download; or the content itself, of an address that the browser shows instead."""
    wanted = window.wanted
    assert wanted is not None
    if element is not None:
        with in_words(window, target):
            await element.click()
        return await wanted
    try:
        response = await go(window, page, target)
    except BrowserError:
        if not window.offered.is_set():
            raise
        return await wanted
    return await response.body() if response is not None and not wanted.done() else await wanted


def is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def kept(folder: Path, suggested: str, content: BinaryIO) -> Path:
    """Write a file under a name that is a name and not a path, and that nothing has yet."""
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
