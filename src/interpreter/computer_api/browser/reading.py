"""A page as text: Markdown for its content, lines with refs for its elements, results for a search."""

from __future__ import annotations

import asyncio
import contextlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from interpreter.computer_api.browser import elements
from interpreter.computer_api.browser.errors import BrowserError
from interpreter.computer_api.browser.frame import clean, framed, marked
from interpreter.computer_api.browser.going import go
from interpreter.errors import SettingValueError

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

    from interpreter.computer_api.browser.window import Window

LONGEST_PAGE = 2_000_000  # characters
MOST_FRAMES = 5
FRAME_PATIENCE = 5.0
MOST_RESULTS = 10


@cache
def script(name: str) -> str:
    """A function of ours that runs in the page."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    return text[text.index("\n") + 1 :] if text.startswith("//") else text


def with_notices(body: str, window: Window) -> str:
    """What happened since the last call, before the page's text: the words may be the page's."""
    notices = window.take_notices()
    told = "".join(f"({notice})\n" for notice in notices)
    return told + body


async def markdown(window: Window, start: int, length: int) -> str:
    """A portion of the page, framed."""
    page = await window.page()
    await window.loaded(page)
    text = await whole(page)
    portion, rest = cut(text, start, length)
    return framed(with_notices(portion, window), page.url, rest)


async def whole(page: Page) -> str:
    """The page and what is in its frames."""
    own = await converted(page.main_frame)
    parts = [f"# {own['title']}" if own["title"] and not own["main"].startswith("# ") else "", own["main"]]
    if own["rest"]:
        parts += ["---\n\nThe rest of the page:" if own["main"] else "", own["rest"]]
    for frame in page.frames[1 : MOST_FRAMES + 1]:
        with contextlib.suppress(TimeoutError, BrowserError, window_error()):
            inner = await asyncio.wait_for(converted(frame), FRAME_PATIENCE)
            if text := "\n\n".join(filter(None, (inner["main"], inner["rest"]))):
                parts.append(f"---\n\nA frame in the page, {frame.url}:\n\n{text}")
    if own["cut"]:
        parts.append(f"(The page is longer than {LONGEST_PAGE:,} characters; the rest was not read.)")
    return "\n\n".join(filter(None, parts)) or "(The page has no text.)"


def window_error() -> type[Exception]:
    from playwright.async_api import Error

    return Error


async def converted(frame: Frame) -> dict[str, Any]:
    found = await frame.evaluate(script("markdown.js"), LONGEST_PAGE)
    return {
        "title": " ".join(str(found["title"] or "").split())[:200],
        "main": str(found["main"]),
        "rest": str(found["rest"]),
        "cut": bool(found["cut"]),
    }


def cut(text: str, start: int, length: int) -> tuple[str, str]:
    """A portion that ends with a line where it can, and how to see what is left out."""
    text = clean(text)
    start = min(max(start, 0), len(text))
    end = min(start + max(length, 1), len(text))
    if end < len(text):
        line = text.rfind("\n", start + (end - start) // 2, end)
        end = line + 1 if line > 0 else end
    if start == 0 and end == len(text):
        return text, ""
    more = f"; read(start={end}) goes on" if end < len(text) else ""
    return text[start:end].rstrip("\n"), f"characters {start:,} to {end:,} of {len(text):,}{more}"


async def snapshot(window: Window, find: str | None, start: int, budget: int) -> str:
    """A portion of the page's elements, framed."""
    page = await window.page()
    found = elements.elements(await page.aria_snapshot(mode="ai"))
    lines = elements.matching(found, find) if find else elements.below(found, start)
    if find:
        lines = [each for each in lines if each.number >= start]
    taken, following = elements.fitting(lines, budget)
    how = f"find={find!r}, " if find else ""
    rest = f"{len(taken)} of {len(lines)} lines"
    if following is None:
        rest = "" if len(lines) == len(found) else f"{rest}, {len(found)} in all"
    else:
        rest += f"; snapshot({how}start={following}) goes on, snapshot(find='text') searches"
    body = "\n".join(elements.shown(taken)) or (f"(Nothing has {find!r} in it.)" if find else "(No elements.)")
    return framed(with_notices(body, window), page.url, rest)


def search_address(pattern: str, query: str) -> str:
    if "{query}" not in pattern:
        raise SettingValueError("The setting computer.search_url needs {query} in it, where the words go.")
    return pattern.replace("{query}", quote(query, safe=""))


async def results(window: Window, url: str) -> dict[str, Any]:
    """What a search page finds, in a tab of its own, so that the current page stays."""
    before = await window.page()
    page = await window.context.new_page()
    try:
        await go(window, page, url)
        found = await page.evaluate(script("results.js"), MOST_RESULTS)
        listed = [{name: clean(str(each[name])) for name in ("title", "url", "snippet")} for each in found]
        told = marked(page.url, results=listed)
        if not listed:
            told["text"] = clean(await whole(page))[:4000]
        return window.with_notices(told)
    finally:
        with contextlib.suppress(window_error()):
            await page.close()
            await window.show(before)
