"""Which elements of the accessibility tree can really be seen, and so clicked: programs tell of many that cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.roles import CLIPPING, POPPING

# Less than this cannot be hit.
_LEAST = 4

if TYPE_CHECKING:
    from interpreter.computer_api.display.elements import Element, Tree
    from interpreter.computer_api.display.screens import Window


def involved(tree: Tree, elements: Iterable[Element]) -> list[Element]:
    """The elements and those around them whose boxes decide whether they are seen."""
    found = {}
    for element in elements:
        found[element.key] = element
        for ancestor in tree.ancestors(element):
            if ancestor.role in CLIPPING or ancestor is tree.top(element):
                found[ancestor.key] = ancestor
    return list(found.values())


def seen(tree: Tree, element: Element, windows: Sequence[Window], desktop: Box) -> Box | None:
    """The part of an element that can be seen; None if it is hidden, shut in something closed, or scrolled away."""
    if element.box is None or not element.showing:
        return None
    box = _shifted(tree, element, windows).within(desktop)
    parent = tree.elements.get(element.parent)
    # The menus of a bar stand in the window, also while one of them is open.
    popping = element.role in POPPING and (parent is None or parent.role != "menu bar")
    for ancestor in tree.ancestors(element):
        if ancestor.role == "combo box" and "expanded" not in ancestor.states:
            return None
        if ancestor.role in POPPING:
            popping = True
        if not popping and ancestor.role in CLIPPING and ancestor.box is not None:
            box = box.within(_shifted(tree, ancestor, windows))
    return _uncovered(tree, element, box, windows, popping) if box.area else None


def _uncovered(tree: Tree, element: Element, box: Box, windows: Sequence[Window], popping: bool) -> Box | None:
    """The largest part of the box that no other window lies over."""
    if not windows:  # the system does not tell
        return box
    home = _window_of(tree, element, windows)
    for window in windows:
        if window is home or (popping and window.popup and window.pid in (None, element.pid)):
            return box if window.box.meets(box) else None
        if window.box.meets(box):
            box = max(_beside(box, window.box), key=lambda part: part.area)
            if box.width < _LEAST or box.height < _LEAST:
                return None
    return None


def _beside(box: Box, cover: Box) -> tuple[Box, ...]:
    """What of a box is left of, right of, above and below another one."""
    return (
        Box.between(box.left, box.top, min(box.right, cover.left), box.bottom),
        Box.between(max(box.left, cover.right), box.top, box.right, box.bottom),
        Box.between(box.left, box.top, box.right, min(box.bottom, cover.top)),
        Box.between(box.left, max(box.top, cover.bottom), box.right, box.bottom),
    )


def _window_of(tree: Tree, element: Element, windows: Sequence[Window]) -> Window | None:
    """The window of the screen that is the element's window in the tree; None if that is on another workspace."""
    top = tree.top(element)
    own = [window for window in windows if window.pid == element.pid is not None]
    if top is None:
        return own[0] if own else None
    titled = [window for window in own or windows if window.title == top.name and top.name]
    # Without its process number, which a sandbox may change, only the title tells which window it is.
    likely = titled or [window for window in own if not window.popup] or own
    box = top.box or Box(0, 0, 0, 0)
    return max(likely, key=lambda w: max(w.box.likeness(box), w.inner.likeness(box)), default=None)


def _shifted(tree: Tree, element: Element, windows: Sequence[Window]) -> Box:
    """The box on the screen: some toolkits count from their window, and then say that it is at 0, 0."""
    assert element.box is not None
    top = tree.top(element)
    if top is None or top.box is None or (top.box.left, top.box.top) != (0, 0):
        return element.box
    titled = [w for w in windows if w.pid in (None, element.pid) and w.title == top.name and not w.popup]
    if len(titled) != 1 or titled[0].inner.has(0, 0) or titled[0].box.has(0, 0):
        return element.box
    return element.box.moved(titled[0].inner.left, titled[0].inner.top)
