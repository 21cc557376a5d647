"""The accessibility tree of one window in short: what a model needs to know, so that it can work without seeing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interpreter.computer_api.display.atspi import AccessibilityError, Asking, look
from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.elements import Element, Tree
from interpreter.computer_api.display.finding import View
from interpreter.computer_api.display.roles import INTERACTIVE, STRUCTURE, TOPS, WRITABLE
from interpreter.computer_api.display.screens import Window
from interpreter.computer_api.display.visibility import seen

_LONGEST_NAME = 100


def outline(view: View, window: Window | None, limit: int) -> tuple[list[tuple[Element, Box]], int]:
    """What can be seen of a window's elements, and how many of them there was no room for."""
    top = _top_of(view.tree, window)
    if top is None:
        return [], 0
    asked: list[Element] = []
    left = 0

    async def ask(asking: Asking) -> None:
        nonlocal asked, left
        await asking.boxes(view.tree.uncounted()[:limit])
        telling = [element for element in view.tree.below(top) if _tells(view.tree, element)]
        asked, left = telling[:limit], len(telling) - limit
        await asking.boxes([top, *asked])
        await asking.values([element for element in asked if _has_value(element)])

    try:
        look(ask)
    except AccessibilityError:
        return [], 0
    placed = ((element, seen(view.tree, element, view.windows, view.desktop)) for element in asked)
    return [(element, box) for element, box in placed if box is not None], max(0, left)


def _top_of(tree: Tree, window: Window | None) -> Element | None:
    tops = [e for e in tree.elements.values() if e.role in TOPS and e.showing and tree.top(e) is e]
    if window is not None:
        mine = [top for top in tops if top.pid == window.pid] if window.pid else tops
        titled = [top for top in mine if top.name == window.title]
        tops = titled or (mine if window.pid else [])
    return next((top for top in tops if "active" in top.states), tops[0] if tops else None)


def _tells(tree: Tree, element: Element) -> bool:
    if not element.showing or element.role in TOPS:
        return False
    if element.role in INTERACTIVE:
        return bool(element.name or element.description or "Text" in element.interfaces or element.role == "combo box")
    if element.role in STRUCTURE or not (element.name.strip() or element.description):
        return element.role in WRITABLE
    # The text of a button is told with the button, and that of a heading with the heading.
    parent = tree.elements.get(element.parent)
    mere = element.role in ("static", "label")
    return parent is None or parent.name != element.name or not (mere or parent.role in INTERACTIVE)


def _has_value(element: Element) -> bool:
    return element.role in WRITABLE or element.role in ("slider", "progress bar", "scroll bar")


def as_text(told: Sequence[dict[str, Any]], title: str, left: int) -> str:
    """The elements one a line: ref, role, name, value, states, and where to click."""
    lines = [f"Window: {title}"] if title else []
    for each in told:
        name = " ".join(each["name"].split())[:_LONGEST_NAME]
        words = [f"{each['ref']} {each['role']}", f'"{name}"' if name else ""]
        if "value" in each:
            words.append(f"= {str(each['value'])[:80]!r}")
        if "description" in each:
            words.append(f"({' '.join(each['description'].split())[:_LONGEST_NAME]})")
        words.append(", ".join(each.get("states", ())))
        words.append(f"at {each['x']},{each['y']}")
        lines.append(" ".join(word for word in words if word))
    if left:
        lines.append(f"... and {left} more; elements(limit=...) shows them.")
    return "\n".join(lines)
