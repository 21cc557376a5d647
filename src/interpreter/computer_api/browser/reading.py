"""A page as text: its content as Markdown, and its elements, which are found by name and shown in portions.

A line of Playwright's accessibility snapshot is `- role "name" [attribute] [ref=e5]: text`, indented below its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser.boundary import BrowserError, ElementError, clean, framed, quoted

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

    from interpreter.computer_api.browser.window import Window

LONGEST_PAGE = 2_000_000  # characters
MOST_FRAMES = 5
FRAME_LIMIT = 5.0  # seconds
LINE = re.compile(
    r'^(?P<indent> *)- (?P<role>[\w/-]+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?'
    r"(?P<attributes>(?: \[[^\]]*\])*)(?::(?: (?P<text>.*))?)?$"
)
QUOTED_LINE = re.compile(r"^( *)- '((?:[^']|'')*)'(:.*|)$")
REF = re.compile(r"\[ref=([\w]+)\]")
IS_REF = re.compile(r"(?:f\d+)?e\d+")
FIELDS = frozenset(["textbox", "searchbox", "combobox", "spinbutton", "slider"])
CHOICES = frozenset(["combobox", "listbox"])
CONTROLS = FIELDS | CHOICES | {
    *("button", "link", "checkbox", "radio", "switch", "tab", "option", "treeitem", "gridcell"),
    *("menuitem", "menuitemcheckbox", "menuitemradio"),
}  # fmt: skip
NOISE = re.compile(r" \[cursor=pointer\]")
MOST_LISTED = 10
LONGEST_LINE = 500


# -- content -----------------------------------------------------------------------------------------------------------


@cache
def script(name: str) -> str:
    """One of our functions that run in the page."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    return text[text.index("\n") + 1 :] if text.startswith("//") else text


async def markdown(window: Window, start: int, length: int) -> str:
    """A portion of the page, framed; it ends with a line where it can."""
    page = await window.page()
    await window.loaded(page)
    text = clean(await whole(window, page))
    start = min(max(start, 0), len(text))
    end = min(start + max(length, 1), len(text))
    if end < len(text):
        line = text.rfind("\n", start + (end - start) // 2, end)
        end = line + 1 if line > 0 else end
    rest = ""
    if start > 0 or end < len(text):
        more = f"; read(start={end}) goes on" if end < len(text) else ""
        rest = f"characters {start:,} to {end:,} of {len(text):,}{more}"
        text = text[start:end].rstrip("\n")
    return framed(_notices(window) + text, page.url, rest)


def _notices(window: Window) -> str:
    """What happened since the last call; it goes inside the frame, since the words may be the page's."""
    return "".join(f"({notice})\n" for notice in window.take_notices())


async def whole(window: Window, page: Page) -> str:
    """The page and what is in its frames."""
    own = await _converted(page.main_frame)
    parts = [f"# {own['title']}" if own["title"] and not own["main"].startswith("# ") else "", own["main"]]
    if own["rest"]:
        parts += ["---\n\nThe rest of the page:" if own["main"] else "", own["rest"]]
    for frame in page.frames[1 : MOST_FRAMES + 1]:
        with contextlib.suppress(TimeoutError, BrowserError, window.error):
            inner = await asyncio.wait_for(_converted(frame), FRAME_LIMIT)
            if text := "\n\n".join(filter(None, (inner["main"], inner["rest"]))):
                parts.append(f"---\n\nA frame in the page, {frame.url}:\n\n{text}")
    if own["cut"]:
        parts.append(f"(The page is longer than {LONGEST_PAGE:,} characters; the rest was not read.)")
    return "\n\n".join(filter(None, parts)) or "(The page has no text.)"


async def _converted(frame: Frame) -> dict[str, Any]:
    found = await frame.evaluate(script("markdown.js"), LONGEST_PAGE)
    return {
        "title": " ".join(str(found["title"] or "").split())[:200],
        "main": str(found["main"]),
        "rest": str(found["rest"]),
        "cut": bool(found["cut"]),
    }


# -- elements ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """One line of the snapshot."""

    number: int
    depth: int
    role: str
    name: str
    text: str
    ref: str
    line: str

    def is_called(self, wanted: str, exactly: bool) -> bool:
        for own in (plain(self.name), plain(self.text)):
            if own and (own == wanted if exactly else wanted in own):
                return True
        return False

    def __str__(self) -> str:
        return f"{self.ref} ({self.role} {quoted(self.name or self.text, 60)})"


def elements(snapshot: str) -> list[Element]:
    """The lines of a snapshot; a line without a ref has that of its parent."""
    found: list[Element] = []
    parents: list[Element] = []
    for number, line in enumerate(filter(None, snapshot.splitlines())):
        element = _parsed(number, NOISE.sub("", line))
        while parents and parents[-1].depth >= element.depth:
            parents.pop()
        if not element.ref and parents:
            element = replace(element, ref=parents[-1].ref)
        parents.append(element)
        found.append(element)
    return found


def _parsed(number: int, line: str) -> Element:
    if match := QUOTED_LINE.match(line):
        line = f"{match[1]}- {match[2].replace(chr(39) * 2, chr(39))}{match[3]}"
    match = LINE.match(line)
    if match is None:
        return Element(number, len(line) - len(line.lstrip()), "", "", line.strip(), "", line)
    ref = REF.search(match["attributes"] or "")
    name, text = (_unquoted(match[group] or "") for group in ("name", "text"))
    return Element(number, len(match["indent"]), match["role"], name, text, ref[1] if ref else "", line)


def _unquoted(text: str) -> str:
    if not text.startswith('"') or not text.endswith('"') or len(text) < 2:
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def named(found: list[Element], target: str, preferred: Collection[str] = CONTROLS) -> Element:
    """The one element of that name or text; ElementError if there is none, or if there are several."""
    wanted = plain(target)
    for exactly in (True, False):
        called = [each for each in found if each.ref and wanted and each.is_called(wanted, exactly)]
        for roles in (preferred, CONTROLS, None):
            # One per ref: a text and the element around it are one thing.
            by_ref = {each.ref: each for each in called if roles is None or each.role in roles}
            matching = list(by_ref.values())
            if len(matching) == 1:
                return matching[0]
            if matching:
                listed = ", ".join(map(str, matching[:MOST_LISTED]))
                more = f", and {len(matching) - MOST_LISTED} more" if len(matching) > MOST_LISTED else ""
                raise ElementError(
                    f"{len(matching)} elements of the page are called {quoted(target)}: {listed}{more}. "
                    "Use one of these refs."
                )
    names = {plain(each.name): each for each in found if each.name and each.ref}
    close = [str(names[name]) for name in difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)]
    hint = f" Close to it: {', '.join(close)}." if close else ""
    raise ElementError(
        f"Nothing on the page is called {quoted(target)}.{hint} Take a computer.browser.snapshot() for the refs."
    )


async def snapshot(window: Window, find: str | None, start: int, budget: int) -> str:
    """A portion of the page's elements, framed."""
    page = await window.page()
    found = elements(await page.aria_snapshot(mode="ai"))
    lines = [each for each in matching(found, find) if each.number >= start] if find else below(found, start)
    taken, following = fitting(lines, budget)
    rest = f"{len(taken)} of {len(lines)} lines"
    if following is not None:
        how = f"find={find!r}, " if find else ""
        rest += f"; snapshot({how}start={following}) goes on, snapshot(find='text') searches"
    elif len(lines) == len(found):
        rest = ""
    else:
        rest += f", {len(found)} in all"
    shown = [each.line if len(each.line) <= LONGEST_LINE else each.line[:LONGEST_LINE] + "…" for each in taken]
    body = "\n".join(shown) or (f"(Nothing has {find!r} in it.)" if find else "(No elements.)")
    return framed(_notices(window) + body, page.url, rest)


def below(found: list[Element], start: int) -> list[Element]:
    """The lines from one on, after the elements that it is in, the outermost first."""
    if not 0 < start < len(found):
        return found if start <= 0 else []
    path: list[Element] = []
    depth = found[start].depth
    for each in reversed(found[:start]):
        if each.depth < depth:
            path.append(each)
            depth = each.depth
    return [*path[::-1], *found[start:]]


def matching(found: list[Element], text: str) -> list[Element]:
    """The lines with a text in them, and the elements that these are in."""
    wanted = plain(text)
    kept: dict[int, Element] = {}
    path: list[Element] = []
    for each in found:
        while path and path[-1].depth >= each.depth:
            path.pop()
        path.append(each)
        if wanted in plain(each.line):
            kept |= {one.number: one for one in path}
    return list(kept.values())


def fitting(lines: list[Element], budget: int) -> tuple[list[Element], int | None]:
    """As many as the budget of characters allows, at least one; and the number of the first one that is left."""
    taken: list[Element] = []
    for each in lines:
        budget -= min(len(each.line), LONGEST_LINE) + 1
        if budget < 0 and taken:
            return taken, each.number
        taken.append(each)
    return taken, None
