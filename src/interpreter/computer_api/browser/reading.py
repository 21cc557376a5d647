"""A page as text: its content as Markdown, and its elements, which are found by name and shown in portions.

page.js reads the page; it runs in each of its frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.browser.boundary import BrowserError, ElementError, clean, framed, quoted
from interpreter.computer_api.browser.launch import ENGINE

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

    from interpreter.computer_api.browser.window import BrowserWindow

HIDDEN = f"{ENGINE}=hidden"
MAX_PAGE_LENGTH = 2_000_000  # characters
MAX_FRAMES = 20
FRAME_TIMEOUT = 5.0  # seconds
IS_REF = re.compile(r"(?:f\d+)?e\d+")
FIELDS = frozenset(["textbox", "searchbox", "combobox", "spinbutton", "slider"])
CHOICES = frozenset(["combobox", "listbox"])
CONTROLS = FIELDS | CHOICES | {
    *("button", "link", "checkbox", "radio", "switch", "tab", "option", "treeitem", "gridcell", "clickable"),
    *("menuitem", "menuitemcheckbox", "menuitemradio"),
}  # fmt: skip
MAX_LISTED = 10
MAX_LINE_LENGTH = 500
MAX_ELEMENTS = 200_000
MAX_COMPARED = 5000  # elements
MAX_REMOVED = 10  # lines


# -- content -----------------------------------------------------------------------------------------------------------


def portion(window: BrowserWindow, text: str, url: str, start: int, length: int) -> str:
    """Frame a part of a text; it ends with a line where it can."""
    text = clean(text)
    start = min(max(start, 0), len(text))
    end = min(start + max(length, 1), len(text))
    if end < len(text):
        line = text.rfind("\n", start + (end - start) // 2, end)
        end = line + 1 if line > 0 else end
    rest = ""
    if start > 0 or end < len(text):
        more = f"; continue with read(start={end})" if end < len(text) else ""
        rest = f"characters {start:,} to {end:,} of {len(text):,}{more}"
        text = text[start:end].rstrip("\n")
    return framed(_notices(window) + text, url, rest)


def _notices(window: BrowserWindow) -> str:
    """Report what happened since the last call, inside the frame, since the text may be the page's."""
    return "".join(f"({notice})\n" for notice in window.take_notices())


async def whole(
    window: BrowserWindow, page: Page, whole_page: bool = False, hidden: bool = False, ref: str = ""
) -> str:
    """Read the page with its frames, or one element."""
    await window.expose_closed_shadow_roots(page)
    asked = {"longest": MAX_PAGE_LENGTH, "whole": whole_page, "hidden": hidden}
    if ref:
        frame, own_ref = window.frame_of(ref)
        part = await window.ask(frame, "markdown", **asked, ref=own_ref)
        return str(part["main"]) or "(There is no text in it.)"
    own = await window.ask(page.main_frame, "markdown", **asked)
    title = " ".join(str(own["title"] or "").split())[:200]
    parts = [f"# {title}" if title and not own["main"].startswith("# ") else "", own["main"]]
    if own["rest"]:
        parts += ["---\n\nThe rest of the page:" if own["main"] else "", own["rest"]]
    unseen = set()
    for frame in page.frames[1 : MAX_FRAMES + 1]:
        with contextlib.suppress(TimeoutError, BrowserError, window.error):
            async with asyncio.timeout(FRAME_TIMEOUT):
                inner = await window.ask(frame, "markdown", **asked)
                # The frame is inside an invisible one, or the page around it hides it.
                if frame.parent_frame in unseen or await (await frame.frame_element()).query_selector(HIDDEN):
                    unseen.add(frame)
            own["hidden"] += inner["hidden"]
            text = "\n\n".join(filter(None, (inner["main"], inner["rest"])))
            if frame in unseen and not hidden:
                own["hidden"] += len(text)
            elif text:
                kind = "A frame that is not seen" if frame in unseen else "A frame"
                parts.append(f"---\n\n{kind} in the page, {frame.url}:\n\n{text}")
    if own["left_out"]:
        parts.append(f"(Left out: {', '.join(own['left_out'])}. read(whole_page=True) has everything.)")
    if own["hidden"] and not hidden:
        parts.append(f"({own['hidden']:,} characters cannot be seen on the page. read(hidden=True) marks them.)")
    if own["cut"]:
        parts.append(f"(The page is longer than {MAX_PAGE_LENGTH:,} characters; the rest was not read.)")
    return "\n\n".join(filter(None, parts)) or "(The page has no text.)"


# -- elements ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Element:
    """An element of the page that has a role, or a text."""

    number: int
    depth: int
    role: str
    name: str
    attributes: tuple[str, ...]
    ref: str
    text: str
    is_used: bool  # it can be clicked or filled, so its ref is shown
    parent: Element | None = field(repr=False, compare=False)

    @property
    def ancestors(self) -> list[Element]:
        """Return the elements around it, the outermost first."""
        return [*self.parent.ancestors, self.parent] if self.parent is not None else []

    @property
    def line(self) -> str:
        name = f" {json.dumps(self.name, ensure_ascii=False)}" if self.name else ""
        marks = [*self.attributes, *([f"ref={self.ref}"] if self.is_used else [])]
        line = "  " * self.depth + f"- {self.role}{name}" + "".join(f" [{mark}]" for mark in marks)
        line += f": {' '.join(self.text.split())}" if self.text else ""
        return line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + "…"

    def __str__(self) -> str:
        mark = " [unseen]" if "unseen" in self.attributes else ""
        return f"{self.ref} ({self.role} {quoted(self.name or self.text, 60)}{mark})"


def elements(rows: Iterable[list[Any]]) -> list[Element]:
    """Convert rows from the page: depth, role, name, attributes, ref, text, and whether it is used."""
    page_elements: list[Element] = []
    path: list[Element] = []
    for number, (depth, role, name, attributes, ref, text, is_used) in enumerate(rows):
        while path and path[-1].depth >= depth:
            path.pop()
        parent = path[-1] if path else None
        page_elements.append(Element(number, depth, role, name, tuple(attributes), ref, text, is_used, parent))
        path.append(page_elements[-1])
    return page_elements


async def look(
    window: BrowserWindow, most: int = MAX_ELEMENTS, wanted: str = "", interactive: bool = False
) -> list[Element]:
    """Return the elements of the current page and its frames: the first ones, or on a long page those with a text."""
    page = await window.page()
    await window.expose_closed_shadow_roots(page)
    asked = {"most": most, "wanted": wanted, "interactive": interactive}
    return elements(await _rows(window, page.main_frame, asked, 0, [MAX_FRAMES]))


async def _rows(
    window: BrowserWindow, frame: Frame, asked: dict[str, Any], depth: int, left: list[int]
) -> list[list[Any]]:
    answer = await window.ask(frame, "elements", base=window.last_ref, **asked)
    window.last_ref = max(window.last_ref, int(answer["last"]))
    if depth == 0:
        window.document = str(answer["document"])
    prefix = window.prefix(frame)
    rows: list[list[Any]] = []
    for row in answer["rows"]:
        row[0], row[4] = row[0] + depth, prefix + row[4]
        rows.append(row)
        if row[1] == "iframe" and left[0] > 0:
            left[0] -= 1
            with contextlib.suppress(TimeoutError, BrowserError, window.error):
                async with asyncio.timeout(FRAME_TIMEOUT):
                    handle = await window.located(row[4]).element_handle()
                    if (child := await handle.content_frame()) is not None:
                        rows += await _rows(window, child, asked, row[0] + 1, left)
    return rows


def plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def named(
    candidates: list[Element], target: str, preferred: Collection[str] = CONTROLS, certainly: bool = False
) -> Element | None:
    """Return the one element of that name or text; with `certainly` only a control of exactly that name.

    ElementError if there are several.
    """
    wanted = plain(target)
    names = [(each, plain(each.name), plain(each.text)) for each in candidates if each.ref and wanted]
    for exactly in (True,) if certainly else (True, False):
        called = [
            each
            for each, name, text in names
            if (wanted in (name, text) if exactly else wanted in name or wanted in text)
        ]
        for roles in (preferred, CONTROLS, *(() if certainly else (None,))):
            # One per ref: a text and the element around it are one thing.
            matching = list({each.ref: each for each in called if roles is None or each.role in roles}.values())
            if len(matching) == 1:
                return matching[0]
            if matching:
                listed = ", ".join(map(str, matching[:MAX_LISTED]))
                more = f", and {len(matching) - MAX_LISTED} more" if len(matching) > MAX_LISTED else ""
                raise ElementError(
                    f"{len(matching)} elements on the page are called {quoted(target)}: {listed}{more}. Use one of "
                    f"these refs."
                )
    return None


def missing(candidates: list[Element], target: str, waited: float) -> ElementError:
    """Build the error for a name that no element has, with similar names or else the page's elements."""
    names = {plain(each.name): each for each in candidates if each.name and each.ref}
    close = [str(names[name]) for name in difflib.get_close_matches(plain(target), names, n=3, cutoff=0.6)]
    there = [str(each) for each in candidates if each.role in CONTROLS and each.name][:MAX_LISTED]
    hint = f"Similar: {', '.join(close)}." if close else ""
    if not close:
        hint = f"Available: {', '.join(there)}." if there else "There is nothing to click or fill on the page."
    return ElementError(
        f"Nothing on the page is called {quoted(target)}, even after {waited:g} seconds. {hint} "
        "Take a computer.browser.snapshot() for the refs."
    )


async def snapshot(window: BrowserWindow, find: str | None, start: int, budget: int, interactive: bool = False) -> str:
    """Return a portion of the page's elements, framed."""
    page = await window.page()
    most = MAX_ELEMENTS if find or interactive else max(start, 0) + MAX_COMPARED  # more than a portion has
    page_elements = await look(window, most, find or "", interactive)
    if not find and not interactive:
        window.shown = (window.document, [each.line for each in page_elements[:MAX_COMPARED]])
    lines = (
        [each for each in matching(page_elements, find) if each.number >= start]
        if find
        else below(page_elements, start)
    )
    taken, following = fitting(lines, budget)
    rest = f"{len(taken)} of {'more than ' if len(page_elements) >= most else ''}{len(lines)} lines"
    options = "interactive=True, " if interactive else ""
    if following is not None:
        options += f"find={find!r}, " if find else ""
        rest += f"; continue with snapshot({options}start={following}), search with snapshot(find='text')"
    elif len(lines) == len(page_elements):
        rest = ""
    else:
        rest += f", {len(page_elements)} in all"
    body = "\n".join(each.line.lstrip() if interactive else each.line for each in taken)
    return framed(
        _notices(window) + (body or (f"(Nothing has {find!r} in it.)" if find else "(No elements.)")), page.url, rest
    )


async def changes(window: BrowserWindow, budget: int) -> str:
    """Return what is new on the page since the model last saw its elements, framed; our own text if nothing is."""
    before, lines = window.shown
    if budget <= 0:
        return ""
    page = await window.page()
    page_elements = await look(window, MAX_COMPARED)
    window.shown = (window.document, [each.line for each in page_elements])
    if len(page_elements) >= MAX_COMPARED and window.document == before:
        return "The page is too long to say what has changed: snapshot(find='text') searches it."
    if window.document != before:
        taken, following = fitting(page_elements, budget)
        rest = "snapshot() has all of them" if following is not None else ""
        return framed("\n".join(each.line for each in taken) or "(No elements.)", page.url, rest)
    body, left = [], budget
    for line in difference(lines, window.shown[1]):
        left -= len(line) + 1
        if left < 0:
            body.append("…")
            break
        body.append(line)
    return framed("\n".join(body), page.url, "+ is new, - has gone") if body else "Nothing on the page has changed yet."


def difference(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the lines that are new, and some of those that have gone, regardless of their order."""
    before, after = ([line.strip() for line in lines] for lines in (before, after))
    old, new = Counter(before), Counter(after)
    added, gone = new - old, old - new
    for line in after:
        if added[line] > 0:
            added[line] -= 1
            yield f"+ {line}"
    left = MAX_REMOVED
    for line in before:
        if gone[line] > 0 and left >= 0:
            gone[line] -= 1
            left -= 1
            yield f"- {line}" if left >= 0 else "- …"


def below(page_elements: list[Element], start: int) -> list[Element]:
    """Return the lines from one on, after the elements that it is in, the outermost first."""
    rest = [each for each in page_elements if each.number >= start]
    return [*rest[0].ancestors, *rest] if rest and start > 0 else rest


def matching(page_elements: list[Element], text: str) -> list[Element]:
    """Return the lines with a text in them, and the elements that these are in."""
    wanted = plain(text)
    kept: dict[int, Element] = {}
    for each in page_elements:
        if wanted in plain(each.line):
            kept |= {one.number: one for one in (*each.ancestors, each)}
    return list(kept.values())


def fitting(lines: list[Element], budget: int) -> tuple[list[Element], int | None]:
    """Return as many as the budget of characters allows, at least one; and the number of the first one left."""
    taken: list[Element] = []
    for each in lines:
        budget -= len(each.line) + 1
        if budget < 0 and taken:
            return taken, each.number
        taken.append(each)
    return taken, None
