"""Finding things on the screen: in the accessibility tree, else by reading it, else by the picture of an icon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.accessibility import (
    CLIPPING,
    INTERACTIVE,
    KINDS,
    POPPING,
    STRUCTURE,
    TOPS,
    WRITABLE,
    AccessibilityBus,
    AccessibilityError,
    Element,
    Key,
    Tree,
    query,
)
from interpreter.computer_api.display.pictures import Line, PlacedPixels, ScreenText, pixels_of
from interpreter.computer_api.platforms import Box, Screen, Window, around

if TYPE_CHECKING:
    from interpreter.computer_api.display.pictures import Pixels

    Placed = list[tuple[Element, Box]]

EXACT, SAME_LETTERS, NEAR = 1.0, 0.97, 0.78
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
# What surrounds names on the screen and is not said: dots of menus, colons of labels, marks of shortcuts.
_AROUND = re.compile(r"^[\s*•·>_]+|[\s:….,*_]+$")
# Smaller differences in similarity mean nothing.
_EQUAL, _EQUAL_ICONS = 0.005, 0.05
# Of a page with thousands of equal controls, so many are asked where they are.
_MOST_PLACED = 400
_SMALLEST = 4  # pixels that can be clicked
_LONGEST_NAME = 100

# Icons: a lower similarity is another icon.
_SAME_ICON = 0.85
_ICON_SIZES = (0.5, 0.67, 0.75, 1.25, 1.5, 2.0)
_MOST_ICONS = 50
# A larger screen is made smaller for the search among many sizes.
_COARSE = 640


@dataclass(frozen=True)
class Match:
    """Something found: its middle and its box in pixels of the screen, and how it was found."""

    x: int
    y: int
    box: Box
    text: str
    source: str  # "accessibility", "ocr" or "icon"
    role: str = ""
    similarity: float = 1.0
    key: Key | None = field(default=None, repr=False)

    @classmethod
    def at(
        cls, box: Box, text: str, source: str, role: str = "", similarity: float = 1.0, key: Key | None = None
    ) -> Match:
        return cls(*box.center, box, text, source, role, round(similarity, 3), key)

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self) | {"box": list(self.box)}
        del found["key"]
        return found


class View:
    """The screen at one moment; each thing about it is read once, when it is first needed."""

    def __init__(self, screen: Screen, text: ScreenText) -> None:
        self._screen, self._text = screen, text

    @cached_property
    def desktop(self) -> Box:
        return self._screen.desktop()

    @cached_property
    def windows(self) -> list[Window]:
        return self._screen.windows()

    @cached_property
    def active(self) -> Window | None:
        return self._screen.active_window()

    @cached_property
    def tree(self) -> Tree:
        """The elements of the programs; empty if they cannot be read."""
        known = {window.pid for window in self.windows if not window.popup}
        pids = frozenset(pid for pid in known if pid is not None)
        try:
            return query(lambda bus: bus.tree(frozenset() if None in known else pids))
        except AccessibilityError:
            return Tree()

    def region(self) -> Box:
        """The active window and the open menus; the whole desktop if none is active."""
        if self.active is None:
            return self.desktop
        popups = [window.box for window in self.windows if window.popup]
        return around([self.active.box, *popups]).within(self.desktop)

    def lines(self, region: Box) -> list[Line]:
        return self._text.read(pixels_of(self._screen.grab(region)), region, self.desktop)

    def place(self, elements: Sequence[Element]) -> Placed:
        """Those of the elements that can be seen, and where."""
        # The boxes of these decide whether an element is seen.
        involved = {element.key: element for element in elements}
        for element in elements:
            top = self.tree.top(element)
            for ancestor in self.tree.ancestors(element):
                if ancestor.role in CLIPPING or ancestor is top:
                    involved[ancestor.key] = ancestor
        if elements:
            try:
                query(lambda bus: bus.boxes(involved.values()))
            except AccessibilityError:
                return []
        return self.visible(elements)

    def visible(self, elements: Iterable[Element]) -> Placed:
        """The visible part of each element that can be seen, of those whose boxes are known."""
        placed = ((element, visible_part(self.tree, element, self.windows, self.desktop)) for element in elements)
        return [(element, box) for element, box in placed if box is not None]

    def outline(self, window: Window | None, limit: int) -> tuple[Placed, int]:
        """The visible elements of a window that mean something, and how many more there are."""
        tree = self.tree
        tops = [e for e in tree.elements.values() if e.role in TOPS and e.showing and tree.top(e) is e]
        if window is not None:
            own = [top for top in tops if top.pid == window.pid] if window.pid else tops
            titled = [top for top in own if top.name == window.title]
            tops = titled or (own if window.pid else [])
        top = next((top for top in tops if "active" in top.states), tops[0] if tops else None)
        if top is None:
            return [], 0

        async def read(bus: AccessibilityBus) -> tuple[list[Element], int]:
            # Where a program does not number the children of an element, their places tell the order.
            unnumbered = {element.parent for element in tree.elements.values() if element.index < 0}
            await bus.boxes([e for e in tree.elements.values() if e.showing and e.parent in unnumbered][:limit])
            found = [element for element in tree.below(top) if _is_worth_listing(tree, element)]
            listed = found[:limit]
            await bus.boxes([top, *listed])
            with_value = WRITABLE | {"slider", "progress bar", "scroll bar"}
            await bus.values([element for element in listed if element.role in with_value])
            return listed, max(0, len(found) - limit)

        try:
            listed, more = query(read)
        except AccessibilityError:
            return [], 0
        return self.visible(listed), more


# -- which elements can be seen, and so clicked: programs list many that cannot ----------------------------------------


def visible_part(tree: Tree, element: Element, windows: Sequence[Window], desktop: Box) -> Box | None:
    """The part of an element that can be seen; None if it is hidden, in something closed, or scrolled away."""
    if element.box is None or not element.showing:
        return None
    box = _on_screen(tree, element, element.box, windows).within(desktop)
    parent = tree.elements.get(element.parent)
    # The menus of a bar are in the window, also while one of them is open.
    popping = element.role in POPPING and (parent is None or parent.role != "menu bar")
    for ancestor in tree.ancestors(element):
        if ancestor.role == "combo box" and "expanded" not in ancestor.states:
            return None
        popping = popping or ancestor.role in POPPING
        if not popping and ancestor.role in CLIPPING and ancestor.box is not None:
            box = box.within(_on_screen(tree, ancestor, ancestor.box, windows))
    if not box.area or not windows:  # without windows, the system does not say what covers it
        return box if box.area else None
    home = _window_of(tree, element, windows)
    for window in windows:
        if window is home or (popping and window.popup and window.pid in (None, element.pid)):
            return box if window.box.overlaps(box) else None
        if window.box.overlaps(box):
            cover = window.box
            uncovered = (
                Box.between(box.left, box.top, min(box.right, cover.left), box.bottom),
                Box.between(max(box.left, cover.right), box.top, box.right, box.bottom),
                Box.between(box.left, box.top, box.right, min(box.bottom, cover.top)),
                Box.between(box.left, max(box.top, cover.bottom), box.right, box.bottom),
            )
            box = max(uncovered, key=lambda part: part.area)
            if box.width < _SMALLEST or box.height < _SMALLEST:
                return None
    return None


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
    return max(likely, key=lambda w: max(w.box.similarity(box), w.inner.similarity(box)), default=None)


def _on_screen(tree: Tree, element: Element, box: Box, windows: Sequence[Window]) -> Box:
    """The box on the screen: some toolkits count from their window, and then say that it is at 0, 0."""
    top = tree.top(element)
    if top is None or top.box is None or (top.box.left, top.box.top) != (0, 0):
        return box
    titled = [w for w in windows if w.pid in (None, element.pid) and w.title == top.name and not w.popup]
    if len(titled) != 1 or titled[0].inner.has(0, 0) or titled[0].box.has(0, 0):
        return box
    return box.moved(titled[0].inner.left, titled[0].inner.top)


def _is_worth_listing(tree: Tree, element: Element) -> bool:
    if not element.showing or element.role in TOPS:
        return False
    if element.role in INTERACTIVE:
        return bool(element.name or element.description or "Text" in element.interfaces or element.role == "combo box")
    if element.role in STRUCTURE or not (element.name.strip() or element.description):
        return element.role in WRITABLE
    # The text of a button is listed with the button, and that of a heading with the heading.
    parent = tree.elements.get(element.parent)
    mere = element.role in ("static", "label")
    return parent is None or parent.name != element.name or not (mere or parent.role in INTERACTIVE)


def as_text(elements: Sequence[dict[str, Any]], title: str, more: int) -> str:
    """The elements one a line: ref, role, name, value, states, and where to click."""
    lines = [f"Window: {title}"] if title else []
    for each in elements:
        name = " ".join(each["name"].split())[:_LONGEST_NAME]
        words = [f"{each['ref']} {each['role']}", f'"{name}"' if name else ""]
        if "value" in each:
            words.append(f"= {str(each['value'])[:80]!r}")
        if "description" in each:
            words.append(f"({' '.join(each['description'].split())[:_LONGEST_NAME]})")
        words.append(", ".join(each.get("states", ())))
        words.append(f"at {each['x']},{each['y']}")
        lines.append(" ".join(word for word in words if word))
    if more:
        lines.append(f"... and {more} more; elements(limit=...) shows them.")
    return "\n".join(lines)


# -- by name or description --------------------------------------------------------------------------------------------


def text_on_screen(view: View, target: str) -> list[Match]:
    """All places that are equally good for a text or a description; none if there is nothing like it."""
    wanted, quoted = unquoted(target)
    searches: list[Callable[[], list[Match]]] = [
        lambda: named(view, wanted, SAME_LETTERS),
        lambda: [] if quoted else described(view, wanted),
        lambda: written(view, wanted, view.region(), SAME_LETTERS),
        lambda: written(view, wanted, view.desktop, SAME_LETTERS),
        lambda: named(view, wanted, NEAR),
        lambda: written(view, wanted, view.desktop, NEAR),
        lambda: [] if quoted else mentioned(view, wanted),
    ]
    return next((found for search in searches if (found := search())), [])


def _candidates(view: View) -> list[Element]:
    return [
        element
        for element in view.tree.elements.values()
        if element.showing and element.role not in TOPS | {"application"} and (element.name or element.description)
    ]


def named(view: View, wanted: str, least: float, roles: frozenset[str] | None = None) -> list[Match]:
    """Elements of that name; without a name, the description counts."""
    rated = [
        (element, name_similarity(wanted, element.name or element.description))
        for element in _candidates(view)
        if roles is None or element.role in roles
    ]
    return _best(view, [(element, rate) for element, rate in rated if rate >= least])


def described(view: View, wanted: str) -> list[Match]:
    """Elements given by name and kind, such as `the Save button` or `gear icon`."""
    words = plain(wanted).removeprefix("the ")
    for kind in sorted(KINDS, key=len, reverse=True):
        if not words.endswith(" " + kind):
            continue
        name = words.removesuffix(" " + kind)
        if found := named(view, name, SAME_LETTERS, KINDS[kind]):
            return found
        if kind in ("icon", "image"):
            return mentioned(view, name, KINDS[kind])
    return []


def mentioned(view: View, wanted: str, roles: frozenset[str] = INTERACTIVE) -> list[Match]:
    """Elements to click on whose name or description has all the words."""
    words = set(plain(wanted).split())
    rated = [
        (element, 0.7)
        for element in _candidates(view)
        if element.role in roles and words <= set(plain(f"{element.name} {element.description}").split())
    ]
    return _best(view, rated)


def _best(view: View, rated: list[tuple[Element, float]]) -> list[Match]:
    """The best that can be seen; if there are any, those to click on, and those in the active window."""
    rated = sorted(rated, key=lambda each: -each[1])[:_MOST_PLACED]
    rates = {element.key: rate for element, rate in rated}
    placed = view.place([element for element, _ in rated])
    if not placed:
        return []
    best = max(rates[element.key] for element, _ in placed)
    placed = [(element, box) for element, box in placed if rates[element.key] >= best - _EQUAL]
    placed = [each for each in placed if each[0].role in INTERACTIVE] or placed
    placed = [each for each in placed if each[0].role not in STRUCTURE] or placed
    placed = [each for each in placed if _is_active(view, each[1])] or placed
    keys = {element.key for element, _ in placed}
    return [
        Match.at(box, element.name or element.description, "accessibility", element.role, best, element.key)
        for element, box in placed
        # Not those inside another one: the text of a button is the button.
        if not any(ancestor.key in keys for ancestor in view.tree.ancestors(element))
    ]


def _is_active(view: View, box: Box) -> bool:
    upper = next((window for window in view.windows if window.box.has(*box.center)), None)
    return upper is not None and (upper.popup or (view.active is not None and upper.id == view.active.id))


# -- by words that can be read -----------------------------------------------------------------------------------------


def written(view: View, wanted: str, region: Box, least: float) -> list[Match]:
    """Words that can be read in a region."""
    return equally_good([match for match in read_matches(view.lines(region), wanted) if match.similarity >= least])


def read_matches(lines: Sequence[Line], wanted: str, picture: PlacedPixels | None = None) -> list[Match]:
    """Where these words are in the lines, the best of each place, the best first."""
    place = picture.on_screen if picture is not None else (lambda box: box)
    found = [
        Match.at(place(box), text, "ocr", "", similarity)
        for line in lines
        for text, box, similarity in words_in_line(wanted, line)
    ]
    return sorted(found, key=lambda match: -match.similarity)


def equally_good(matches: list[Match], difference: float = _EQUAL) -> list[Match]:
    best = max((match.similarity for match in matches), default=0)
    return [match for match in matches if match.similarity >= best - difference]


def unquoted(text: str) -> tuple[str, bool]:
    """A text without its quotation marks, and whether it had some."""
    text = text.strip()
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1].strip(), True
    return text, False


def plain(text: str) -> str:
    """A text as it is compared: one case, single spaces, nothing around it."""
    folded = " ".join(text.casefold().replace("’", "'").split())
    return _AROUND.sub("", folded) or folded


def name_similarity(wanted: str, name: str) -> float:
    """How similar a name is: 1 if it is the same, 0.97 apart from case and dots, less if it is only like it."""
    if wanted == name:
        return EXACT
    here, there = plain(wanted), plain(name)
    if here and here == there:
        return SAME_LETTERS
    # Only near misses: in short words, one letter more or less makes another word.
    if min(len(here), len(there)) < 4 or abs(len(here) - len(there)) > 1 + len(here) // 6:
        return 0.0
    return min(0.96, SequenceMatcher(None, here, there, autojunk=False).ratio())


def words_in_line(wanted: str, line: Line) -> list[tuple[str, Box, float]]:
    """The best places in a line for these words, with their similarity."""
    words, count, here = line.words, len(wanted.split()), plain(wanted).replace(" ", "")
    candidates: list[tuple[float, str, Box, set[int]]] = []
    for size in {count, max(1, count - 1), count + 1}:
        for start in range(len(words) - size + 1):
            run = words[start : start + size]
            text = " ".join(word.text for word in run)
            # A space too many or too few is a mistake of the OCR.
            similarity = min(0.96, name_similarity(here, plain(text).replace(" ", "")))
            if size == count:
                similarity = max(name_similarity(wanted, text), similarity)
            if similarity >= NEAR:
                candidates.append((similarity, text, around(w.box for w in run), set(range(start, start + size))))
    taken: set[int] = set()
    kept = []
    for similarity, text, box, places in sorted(candidates, key=lambda candidate: -candidate[0]):
        if not places & taken:
            taken |= places
            kept.append((text, box, similarity))
    if kept:
        return kept
    for word in words:  # the OCR took it for one word with what is beside it, such as `[Save]` or `FileEdit`
        there = word.text.casefold()
        begin = there.find(here)
        if len(here) >= 4 and begin >= 0 and len(here) * 2 >= len(there):
            wide = word.box.width / len(there)
            left = word.box.left + begin * wide
            box = Box.between(left, word.box.top, left + len(here) * wide, word.box.bottom)
            return [(word.text, box, 0.9 * SAME_LETTERS)]
    return []


# -- by the picture of an icon -----------------------------------------------------------------------------------------


def icon_matches(picture: PlacedPixels, icon: PlacedPixels) -> list[Match]:
    """The equally good places of an icon in a picture; as large as it is, or else in some other sizes."""
    if icon.pixels.std() < 1:
        raise ValueError("The picture of the icon has only one colour: nothing can be found by it.")
    spots = _spots(picture.pixels, icon.pixels) or _in_other_sizes(picture.pixels, icon.pixels)
    found = [Match.at(picture.on_screen(box), "", "icon", "icon", similarity) for box, similarity in spots]
    return equally_good(found, _EQUAL_ICONS)


def _in_other_sizes(pixels: Pixels, icon: Pixels) -> list[tuple[Box, float]]:
    import cv2

    coarse = max(1.0, max(pixels.shape[:2]) / _COARSE)
    small = cv2.resize(pixels, None, fx=1 / coarse, fy=1 / coarse, interpolation=cv2.INTER_AREA)
    tried = []
    for size in _ICON_SIZES:
        factor, screen = size / coarse, small
        if min(icon.shape[:2]) * factor < 6:
            factor, screen = size, pixels
        found = _spots(screen, _resized(icon, factor), _SAME_ICON - 0.2)
        tried += [(similarity, size) for _, similarity in found[:1]]
    for _, size in sorted(tried, reverse=True)[:2]:
        if spots := _spots(pixels, _resized(icon, size), _SAME_ICON - 0.05):
            return spots
    return []


def _resized(icon: Pixels, factor: float) -> Pixels:
    import cv2

    interpolation = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    resized: Pixels = cv2.resize(icon, None, fx=factor, fy=factor, interpolation=interpolation)
    return resized


def _spots(pixels: Pixels, icon: Pixels, least: float = _SAME_ICON) -> list[tuple[Box, float]]:
    """Where the icon is in this size, with the similarity, the best first."""
    import cv2
    import numpy

    high, wide = icon.shape[:2]
    if high > pixels.shape[0] or wide > pixels.shape[1]:
        return []
    scores = cv2.matchTemplate(pixels, icon, cv2.TM_CCOEFF_NORMED)
    # Over one colour there is nothing to compare, and the sum is no number.
    scores = numpy.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0)
    found: list[tuple[Box, float]] = []
    while len(found) < _MOST_ICONS:
        _, best, _, (x, y) = cv2.minMaxLoc(scores)
        if best < least or best > 1.01:
            break
        found.append((Box(x, y, wide, high), min(1.0, float(best))))
        top, left = max(0, y - high // 2), max(0, x - wide // 2)
        scores[top : y + high // 2 + 1, left : x + wide // 2 + 1] = 0
    return found
