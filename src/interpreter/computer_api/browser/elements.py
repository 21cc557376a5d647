"""The elements of a page, read from its accessibility snapshot: found by name, and shown in portions.

A line of the snapshot is `- role "name" [attribute] [ref=e5]: text`, indented below what it is in.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from interpreter.computer_api.browser.errors import ElementError
from interpreter.computer_api.browser.frame import quoted

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
        said = self.name or self.text
        return f"{self.ref} ({self.role} {quoted(said, 60)})"


def elements(snapshot: str) -> list[Element]:
    """The lines of a snapshot; what has no ref of its own has that of what it is in."""
    found: list[Element] = []
    above: list[Element] = []
    for number, line in enumerate(filter(None, snapshot.splitlines())):
        element = parsed(number, NOISE.sub("", line))
        while above and above[-1].depth >= element.depth:
            above.pop()
        if not element.ref and above:
            element = Element(**{**vars(element), "ref": above[-1].ref})
        above.append(element)
        found.append(element)
    return found


def parsed(number: int, line: str) -> Element:
    if match := QUOTED_LINE.match(line):
        line = f"{match[1]}- {match[2].replace(chr(39) * 2, chr(39))}{match[3]}"
    match = LINE.match(line)
    if match is None:
        return Element(number, len(line) - len(line.lstrip()), "", "", line.strip(), "", line)
    ref = REF.search(match["attributes"] or "")
    return Element(
        number,
        len(match["indent"]),
        match["role"],
        unquoted(match["name"] or ""),
        unquoted(match["text"] or ""),
        ref[1] if ref else "",
        line,
    )


def unquoted(text: str) -> str:
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text


def plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def is_ref(target: str) -> bool:
    return IS_REF.fullmatch(target) is not None


def named(found: list[Element], target: str, preferred: Collection[str] = CONTROLS) -> Element:
    """The one element of that name or text; ElementError if there is none, or if there are several."""
    wanted = plain(target)
    for exactly in (True, False):
        called = [each for each in found if each.ref and wanted and each.is_called(wanted, exactly)]
        for roles in (preferred, CONTROLS, None):
            matching = innermost([each for each in called if roles is None or each.role in roles])
            if len(matching) == 1:
                return matching[0]
            if matching:
                raise ElementError(several(target, matching))
    raise ElementError(nothing(target, found))


def innermost(matching: list[Element]) -> list[Element]:
    """One per ref: a text and what it is in are one thing."""
    return list({each.ref: each for each in matching}.values())


def several(target: str, matching: list[Element]) -> str:
    listed = ", ".join(map(str, matching[:MOST_LISTED]))
    more = f", and {len(matching) - MOST_LISTED} more" if len(matching) > MOST_LISTED else ""
    return f"{len(matching)} elements of the page are called {quoted(target)}: {listed}{more}. Use one of these refs."


def nothing(target: str, found: list[Element]) -> str:
    names = {plain(each.name): each for each in found if each.name and each.ref}
    close = [names[name] for name in difflib.get_close_matches(plain(target), names, n=3, cutoff=0.6)]
    hint = f" Close to it: {', '.join(map(str, close))}." if close else ""
    return f"Nothing on the page is called {quoted(target)}.{hint} Take a computer.browser.snapshot() for the refs."


# -- portions ----------------------------------------------------------------------------------------------------------


def below(found: list[Element], start: int) -> list[Element]:
    """From a line on, after what that line is in."""
    if not 0 < start < len(found):
        return found if start <= 0 else []
    return [*above(found, found[start]), *found[start:]]


def above(found: list[Element], element: Element) -> list[Element]:
    """What an element is in, the outermost first."""
    path: list[Element] = []
    depth = element.depth
    for each in reversed(found[: element.number]):
        if each.depth < depth:
            path.append(each)
            depth = each.depth
    return path[::-1]


def matching(found: list[Element], text: str) -> list[Element]:
    """The lines with a text in them, and what these are in."""
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


def shown(lines: list[Element]) -> Iterator[str]:
    for each in lines:
        yield each.line if len(each.line) <= LONGEST_LINE else each.line[:LONGEST_LINE] + "…"
