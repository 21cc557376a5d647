"""Finding things on the screen: in the accessibility tree, by reading it, or by the picture of an icon."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.screen.display.accessibility import (
    CLIPPING,
    INTERACTIVE,
    KINDS,
    POPPING,
    STRUCTURE,
    TOPS,
    WRITABLE,
    AccessibilityBus,
    AccessibilityError,
    AccessibilityTree,
    Key,
    ScreenElement,
    query,
)
from interpreter.computer_api.screen.display.pictures import Line, PlacedPixels, ScreenText, pixels_of
from interpreter.computer_api.screen.platforms import Box, Screen, Window, around
from interpreter.console_text import visible_line
from interpreter.errors import InterpreterError

if TYPE_CHECKING:
    from interpreter.computer_api.screen.display.pictures import Pixels

    Placed = list[tuple[ScreenElement, Box]]

_NOWHERE = Box(0, 0, 0, 0)
EXACT, SAME_LETTERS, NEAR = 1.0, 0.97, 0.78
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
# Characters around names on the screen that people leave out: dots of menus, colons of labels, marks of shortcuts.
_AROUND = re.compile(r"^[\s*•·>_]+|[\s:….,*_]+$")
# Colours that differ less, all three taken together, look the same.
_CONTRAST = 48
# Smaller differences in similarity mean nothing.
_EQUAL, _EQUAL_ICONS = 0.005, 0.05
# On a page with thousands of equal controls, only so many positions are requested.
_MAX_PLACED = 400
_MIN_WINDOW_SIMILARITY = 0.15  # of a window in the tree and one on the screen; below it, they count as two windows
_UNEVEN = 0.04  # width and height of a window have one scale, but for rounding
_MIN_CLICKABLE = 4  # pixels that can be clicked
_EDGE, _CURSOR = 4, 2  # pixels of a field that are not its text
_MAX_NAME_LENGTH = 100
# Characters of a value: of a field, and of what holds much text.
_MAX_VALUE_LENGTH, _MAX_TEXT_LENGTH = 80, {"terminal": 1500, "text": 300, "document text": 300}
# Letters that reading mixes up: the line under a mnemonic makes a Q of an O.
_CONFUSED = frozenset("oq 0o 0q il 1i 1l ef cg ce".split())
_MISREAD = 0.9
_MIN_WRAPPED_LENGTH, _MAX_WRAPPED_LINES = 8, 3  # letters, and lines below the first
# Names that people and programs have for one thing.
SYNONYMS = [
    frozenset(group.split(", "))
    for group in (
        "back, previous, go back, left, back arrow",
        "forward, next, forw, go forward, right",
        "up, parent, open parent, parent folder",
        "reload, refresh",
        "settings, preferences, options, gear, cog",
        "search, find, magnifier, magnifying glass",
        "delete, trash, remove, bin",
        "close, x, quit, exit",
        "add, new, plus, create",
        "save, floppy, disk",
        "home, house",
        "menu, hamburger, more",
        "print, printer",
        "cut, scissors",
    )
]

# Icons: a lower similarity is another icon.
_SAME_ICON = 0.85
_MAX_ICONS = 50
# A larger screen is made smaller for the search among many sizes.
_COARSE = 640


@dataclass(frozen=True)
class Match:
    """A match: its middle and its box in pixels of the screen, and how it was found."""

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
        return {name: value for name, value in asdict(self).items() if name != "key"} | {"box": list(self.box)}


class ScreenView:
    """The screen at one moment; each part of it is read once, when it is first needed."""

    def __init__(self, screen: Screen, text: ScreenText, tree: AccessibilityTree | None = None) -> None:
        self._screen, self._text = screen, text
        self._placements: dict[Key, Placement] = {}
        if tree is not None:
            self.tree = tree

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
    def tree(self) -> AccessibilityTree:
        """Return the elements of the programs; empty if they cannot be read."""
        known = {window.pid for window in self.windows if not window.popup}
        pids = frozenset(pid for pid in known if pid is not None)
        try:
            return query(lambda bus: bus.tree(frozenset() if None in known else pids))
        except AccessibilityError:
            return AccessibilityTree()

    def region(self) -> Box:
        """Return the box of the active window and the open menus, or of the desktop if no window is active."""
        if self.active is None:
            return self.desktop
        popups = [window.box for window in self.windows if window.popup]
        return around([self.active.box, *popups]).within(self.desktop)

    def lines(self, region: Box) -> list[Line]:
        return self._text.read(pixels_of(self._screen.grab(region)), region, self.desktop)

    def unnamed_lines(self, window: Window | None, placed: Placed) -> list[Line]:
        """Return the text in a window and its popups that belongs to no element, unless other windows cover it."""
        own = [window, *self.popups(window)] if window is not None else self.windows
        # The frame is left out: its title is known, and its buttons have no letters.
        region = around(each.inner for each in own).within(self.desktop) if window is not None else self.desktop
        element_texts = [(box, element.role, plain(f"{element.name} {element.value or ''}")) for element, box in placed]
        unnamed = []
        for line in self.lines(region) if region.area else ():
            x, y = line.box.center
            top = next((each for each in self.windows if each.box.has(x, y)), None)
            is_own = window is None or any(top is not None and top.id == each.id for each in own)
            text_read = plain(line.text)
            is_icon = len(text_read) == 1 and text_read > "\u2e7f"  # which looks like a Chinese sign
            if (
                is_own
                and not is_icon
                and not any(box.has(x, y) and is_covered(text_read, role, text) for box, role, text in element_texts)
            ):
                unnamed.append(line)
        return unnamed

    def popups(self, window: Window | None) -> list[Window]:
        """Return the open menus and other popups of a window's program; all of them, if their owner is unknown."""
        pid = window.pid if window is not None else None
        return [each for each in self.windows if each.popup and (pid is None or each.pid in (None, pid))]

    @cached_property
    def _pixels(self) -> Pixels:
        return pixels_of(self._screen.grab(self.desktop))

    def is_blank(self, box: Box) -> bool:
        """Return whether nothing visible is drawn there: text in the color of its background, for instance."""
        if min(box.width, box.height) < _MIN_CLICKABLE:
            return True
        part = self._part(box)
        return (
            bool(part.size) and int(part.max(axis=(0, 1)).astype(int).sum() - part.min(axis=(0, 1)).sum()) < _CONTRAST
        )

    def is_blank_field(self, box: Box) -> bool:
        """Return whether the inside of a field is blank, apart from an edge and a cursor."""
        part = self._part(Box(box.left + _EDGE, box.top + _EDGE, box.width - 2 * _EDGE, box.height - 2 * _EDGE))
        if min(part.shape[:2]) < _MIN_CLICKABLE:
            return False
        differs = abs(part.astype(int) - part[0, 0]).sum(axis=2) >= _CONTRAST
        return int(differs.any(axis=0).sum()) <= _CURSOR

    def _part(self, box: Box) -> Pixels:
        inside = box.moved(-self.desktop.left, -self.desktop.top)
        return self._pixels[max(0, inside.top) : max(0, inside.bottom), max(0, inside.left) : max(0, inside.right)]

    def locate(self, elements: Sequence[ScreenElement]) -> Placed:
        """Return those of the elements that are visible, with their boxes."""
        # The boxes of these decide whether an element is seen.
        involved = {element.key: element for element in elements}
        for element in elements:
            top = self.tree.top(element)
            for ancestor in self.tree.ancestors(element):
                if ancestor.role in CLIPPING or ancestor is top:
                    involved[ancestor.key] = ancestor
        involved |= {each.key: each for each in self.tree.tops()}
        if elements:
            try:
                query(lambda bus: bus.boxes(involved.values()))
            except AccessibilityError:
                return []
        return self.visible(elements)

    def visible(self, elements: Iterable[ScreenElement]) -> Placed:
        """Return the visible part of each element, among those whose boxes are known."""
        placed = ((element, self.visible_part(element)) for element in elements)
        return [(element, box) for element, box in placed if box is not None]

    def outline(self, window: Window | None, limit: int) -> tuple[Placed, int]:
        """Return the visible, meaningful elements of a window and its popups, and how many more there are.

        Those of popups come first.
        """
        tree = self.tree
        tops = [each for each in tree.tops() if tree.top(each) is each]
        popups = []
        if window is not None:
            own = [top for top in tops if top.pid == window.pid] if window.pid else tops
            titled = [top for top in own if top.name == window.title]
            tops = titled or (own if window.pid else [])
            popups = [top for top in own if top.role == "window" and not top.name and top not in titled]
        tops = [top for top in tops if top not in popups]
        top = next((top for top in tops if "active" in top.states), tops[0] if tops else None)
        roots = [*popups, *([top] if top is not None else [])]
        if not roots:
            return [], 0

        async def read(bus: AccessibilityBus) -> tuple[list[ScreenElement], int]:
            # If a program doesn't number the children of an element, their positions give the order.
            unnumbered = {element.parent for element in tree.elements.values() if element.index < 0}
            await bus.boxes([e for e in tree.elements.values() if e.showing and e.parent in unnumbered][:limit])
            worth_listing = [each for root in roots for each in tree.below(root) if _is_worth_listing(tree, each)]
            listed = worth_listing[:limit]
            await bus.boxes([*roots, *listed, *tree.tops()])
            with_value = WRITABLE | {"slider", "progress bar", "scroll bar"}
            await bus.values([element for element in listed if element.role in with_value])
            return listed, max(0, len(worth_listing) - limit)

        try:
            listed, more = query(read)
        except AccessibilityError:
            return [], 0
        placed = self.visible(listed)
        for element, box in placed:
            if element.role in ("text", "entry") and element.value is None:  # it draws its text itself
                with suppress(InterpreterError):  # no OCR is installed
                    element.value = "\n".join(line.text for line in self.lines(box)) or None
        return placed, more

    # -- visible elements, which can be clicked: programs also list many that can't -----------------------------------

    def visible_part(self, element: ScreenElement) -> Box | None:
        """Return the visible part of an element; None if it is hidden, in something closed, or scrolled away."""
        if element.box is None or not element.showing:
            return None
        placement = self._placement(element)
        box = placement.on_screen(element.box).within(self.desktop)
        parent = self.tree.elements.get(element.parent)
        # The menus of a bar are in the window, also while one of them is open.
        popping = element.role in POPPING and (parent is None or parent.role != "menu bar")
        for ancestor in self.tree.ancestors(element):
            if ancestor.role == "combo box" and "expanded" not in ancestor.states:
                return None
            popping = popping or ancestor.role in POPPING
            if not popping and ancestor.role in CLIPPING and ancestor.box is not None:
                box = box.within(placement.on_screen(ancestor.box))
        if not box.area or not self.windows:  # without windows, the system does not say what covers it
            return box if box.area else None
        for window in self.windows:
            if window is placement.window or (popping and window.popup and window.pid in (None, element.pid)):
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
                if box.width < _MIN_CLICKABLE or box.height < _MIN_CLICKABLE:
                    return None
        return None

    def _placement(self, element: ScreenElement) -> Placement:
        """Return where the program's window of this element is on the screen."""
        top = self.tree.top(element)
        key = top.key if top is not None else element.key
        if key not in self._placements:
            self._placements[key] = self._place_top(element, top)
        return self._placements[key]

    def _place_top(self, element: ScreenElement, top: ScreenElement | None) -> Placement:
        own = [window for window in self.windows if window.pid == element.pid is not None]
        if top is None:
            return Placement(own[0] if own else None)
        titled = [window for window in own or self.windows if window.title == top.name and top.name]
        # Without its process number, which a sandbox may change, only the title identifies the window.
        popup = top.role == "window" and not top.name
        # A different window of the program doesn't count: this one may be minimised.
        others = [each for each in self.tree.tops() if each.pid == top.pid and each is not top]
        taken = {each.name for each in others}
        likely = titled or [each for each in own if each.popup == popup and (popup or each.title not in taken)]
        fits = [Placement.fit(top.box, window) for window in likely] if top.box is not None else []
        best = max(fits, key=lambda fit: fit.similarity, default=Placement(likely[0] if likely else None))
        if popup and best.similarity < _MIN_WINDOW_SIMILARITY:  # it has the scale of its program
            scale = max((self._placement(each).scale for each in others if each.box and each.name), default=1.0)
            return Placement(best.window, scale=scale)
        return best


@dataclass(frozen=True)
class Placement:
    """A program's window: its position in the accessibility tree and on the screen.

    Trees count in pixels of the program. Where a desktop is scaled (HiDPI), one of those is more than one of the
    screen, and each program has its own scale, and its own position for the corner of a second monitor. Some
    toolkits count from their window, and then report that it is at 0, 0.
    """

    window: Window | None
    told: Box = _NOWHERE  # in pixels of the program
    real: Box = _NOWHERE
    scale: float = 1.0
    similarity: float = 0.0

    @classmethod
    def fit(cls, told: Box, window: Window) -> Placement:
        """Return the better of two: with the frame that the window manager draws, as GTK reports it, and without."""
        tried = []
        for real in (window.inner, window.box):
            across, down = real.width / max(1, told.width), real.height / max(1, told.height)
            scale = (across + down) / 2
            near = round(scale * 4) / 4
            # A program reports its box in whole pixels at its scale, so its size is not exact.
            scale = near if near and abs(real.width - told.width * near) <= 2 * near + 2 else scale
            if not 0.5 <= scale <= 5 or abs(across - down) > _UNEVEN * scale:
                tried.append(cls(window, told, real, 1.0, 0.1 * max(real.similarity(told), 0.01)))
                continue
            there = Box.between(*(scale * edge for edge in (told.left, told.top, told.right, told.bottom)))
            similarity = max(real.similarity(there), real.similarity(told), 0.2)
            tried.append(cls(window, told, real, scale, similarity - abs(across - down) / scale))
        return max(tried, key=lambda each: each.similarity)

    def on_screen(self, box: Box) -> Box:
        counts_from_window = (self.told.left, self.told.top) == (0, 0) and not self.real.has(0, 0)
        if self.scale == 1 and not (counts_from_window and self.real.area):
            return box
        left, top = self.real.left - self.told.left * self.scale, self.real.top - self.told.top * self.scale
        edges = (box.left, box.top, box.right, box.bottom)
        return Box.between(
            *(scale_at + self.scale * edge for scale_at, edge in zip((left, top) * 2, edges, strict=True))
        )


def _is_worth_listing(tree: AccessibilityTree, element: ScreenElement) -> bool:
    if not element.showing or element.role in TOPS:
        return False
    if element.role in INTERACTIVE:
        return bool(element.name or element.description or "Text" in element.interfaces or element.role in WRITABLE)
    if element.role in STRUCTURE or not (element.name.strip() or element.description):
        return element.role in WRITABLE
    # The text of a button or a heading is listed with the button or the heading.
    parent = tree.elements.get(element.parent)
    mere = element.role in ("static", "label")
    return parent is None or parent.name != element.name or not (mere or parent.role in INTERACTIVE)


def is_covered(text_read: str, role: str, text: str) -> bool:
    """Return whether an element contains text that OCR found in it. For a button or a field, any text will do."""
    if role in INTERACTIVE:
        return bool(text)
    known = set(text.split())
    text_words = text_read.split()
    return 2 * sum(word in known for word in text_words) >= len(text_words) or text_read.replace(
        " ", ""
    ) in text.replace(" ", "")


def as_text(elements: Sequence[dict[str, Any]], lines: Sequence[Line], title: str, more: int) -> str:
    """Describe the elements one a line: ref, role, name, value, states, and where to click; then other text."""
    rows = [f"Window: {_named(title)}"] if title else []
    popped = [each for each in elements if each.get("popup")]
    for each in elements:
        if popped and each is popped[0]:
            rows.append("In front, a menu or popup:")
        elif popped and not each.get("popup"):
            rows.append("Behind it:")
            popped = []
        name = _named(each["name"])
        fields = [f"{each['ref']} {each['role']}", f'"{name}"' if name else ""]
        if "value" in each:
            value, most = str(each["value"]), _MAX_TEXT_LENGTH.get(each["role"], _MAX_VALUE_LENGTH)
            # The end of a terminal's text is the newest.
            fields.append(f"= {value[-most:] if each['role'] == 'terminal' else value[:most]!r}")
        if "description" in each:
            fields.append(f"({_named(each['description'])})")
        fields.append(", ".join(each.get("states", ())))
        fields.append(f"at {each['x']},{each['y']}")
        rows.append(" ".join(word for word in fields if word))
    if more:
        rows.append(f"... and {more} more; elements(limit=...) shows them.")
    if elements and lines:
        rows.append("Also to be read there:")
    rows += [f'text "{_named(line.text)}" at {line.box.center[0]},{line.box.center[1]}' for line in lines]
    return "\n".join(rows)


def _named(name: str) -> str:
    """Return a name on one line, in which nothing hides and which cannot end its quotation marks."""
    return visible_line(" ".join(name.split())).replace('"', "'")[:_MAX_NAME_LENGTH]


# -- by name or description --------------------------------------------------------------------------------------------


def text_on_screen(view: ScreenView, target: str) -> list[Match]:
    """Return all equally good matches of a text or a description; none if there is nothing like it."""
    wanted, quoted = unquoted(target)
    searches: list[Callable[[], list[Match]]] = [
        lambda: named(view, wanted, SAME_LETTERS),
        lambda: [] if quoted else described(view, wanted),
        lambda: written(view, wanted, view.region(), SAME_LETTERS),
        lambda: written(view, wanted, view.desktop, SAME_LETTERS),
        lambda: [] if quoted else described(view, wanted, reads=True),
        lambda: named(view, wanted, NEAR),
        lambda: written(view, wanted, view.desktop, NEAR),
        lambda: [] if quoted else mentioned(view, wanted),
    ]
    return next((matches for search in searches if (matches := search())), [])


def _candidates(view: ScreenView) -> list[ScreenElement]:
    return [
        element
        for element in view.tree.elements.values()
        if element.showing and element.role not in TOPS | {"application"} and (element.name or element.description)
    ]


def named(view: ScreenView, wanted: str, least: float, roles: frozenset[str] | None = None) -> list[Match]:
    """Return the elements with this name; without a name, the description counts."""
    rated = [
        (element, name_similarity(wanted, element.name or element.description))
        for element in _candidates(view)
        if roles is None or element.role in roles
    ]
    return _best(view, [(element, rate) for element, rate in rated if rate >= least])


def described(view: ScreenView, wanted: str, reads: bool = False) -> list[Match]:
    """Find elements by name and kind, such as `the Save button` or `gear icon`; or (`reads`) text of that name."""
    phrase = plain(wanted).removeprefix("the ")
    for kind in sorted(KINDS, key=len, reverse=True):
        if not phrase.endswith(" " + kind):
            continue
        name = phrase.removesuffix(" " + kind)
        # Synonyms count only if nothing has that name, and only for elements that show no text.
        others = sorted({other for group in SYNONYMS if name in group for other in group} - {name})
        for called in [name, *(others if kind in ("icon", "image", "arrow", "button") else ())]:
            if reads:
                matches = written(view, called, view.desktop, SAME_LETTERS)
            else:
                matches = named(view, called, SAME_LETTERS, KINDS[kind])
            if matches:
                return matches
        if kind in ("icon", "image", "arrow") and not reads:
            return mentioned(view, name, KINDS[kind])
    return []


def mentioned(view: ScreenView, wanted: str, roles: frozenset[str] = INTERACTIVE) -> list[Match]:
    """Return elements to click on whose name or description has all the words."""
    wanted_words = set(plain(wanted).split())
    return _best(
        view,
        [
            (element, 0.7)
            for element in _candidates(view)
            if element.role in roles and wanted_words <= set(plain(f"{element.name} {element.description}").split())
        ],
    )


def _best(view: ScreenView, rated: list[tuple[ScreenElement, float]]) -> list[Match]:
    """Return the best visible ones; if there are any, those to click on, and those in the active window."""
    rated = sorted(rated, key=lambda each: -each[1])[:_MAX_PLACED]
    rates = {element.key: rate for element, rate in rated}
    placed = view.locate([element for element, _ in rated])
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
        # Elements inside another match are left out: the text of a button is the button.
        if not any(ancestor.key in keys for ancestor in view.tree.ancestors(element))
    ]


def _is_active(view: ScreenView, box: Box) -> bool:
    upper = next((window for window in view.windows if window.box.has(*box.center)), None)
    return upper is not None and (upper.popup or (view.active is not None and upper.id == view.active.id))


# -- by words that can be read -----------------------------------------------------------------------------------------


def written(view: ScreenView, wanted: str, region: Box, least: float) -> list[Match]:
    return equally_good([match for match in read_matches(view.lines(region), wanted) if match.similarity >= least])


def read_matches(lines: Sequence[Line], wanted: str, picture: PlacedPixels | None = None) -> list[Match]:
    """Return where these words are in the lines, the best match of each position, the best first."""
    on_screen = picture.on_screen if picture is not None else (lambda box: box)
    matches = [
        Match.at(on_screen(box), text, "ocr", "", similarity)
        for line in lines
        for text, box, similarity in words_in_line(wanted, line)
    ]
    if not matches:
        matches = [
            Match.at(on_screen(box), wanted, "ocr", "", similarity) for box, similarity in wrapped(wanted, lines)
        ]
    return sorted(matches, key=lambda match: -match.similarity)


def wrapped(wanted: str, lines: Sequence[Line]) -> Iterator[tuple[Box, float]]:
    """Find a name that continues over several lines, one below the other, as those of icons do."""
    here = plain(wanted).replace(" ", "")
    for first in lines if len(here) > _MIN_WRAPPED_LENGTH else ():
        text, box = plain(first.text).replace(" ", ""), first.box
        for _ in range(_MAX_WRAPPED_LINES):
            if not here.startswith(text[: len(here) // 3]):
                break
            last, high = box, first.box.height
            below = [
                line
                for line in lines
                if -high / 2 < line.box.top - last.bottom < high / 2
                and (abs(line.box.center[0] - last.center[0]) < high or abs(line.box.left - last.left) < high / 2)
            ]
            if not below:
                break
            text, box = text + plain(below[0].text).replace(" ", ""), around((box, below[0].box))
            if (similarity := min(0.96, name_similarity(here, text))) >= NEAR:
                yield box, similarity
                break


def equally_good(matches: list[Match], difference: float = _EQUAL) -> list[Match]:
    best = max((match.similarity for match in matches), default=0)
    return [match for match in matches if match.similarity >= best - difference]


def unquoted(text: str) -> tuple[str, bool]:
    """Return a text without its quotation marks, and whether it had any."""
    text = text.strip()
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1].strip(), True
    return text, False


def plain(text: str) -> str:
    """Normalize a text for comparison: one case, single spaces, nothing around it."""
    folded = " ".join(text.casefold().replace("’", "'").split())
    return _AROUND.sub("", folded) or folded


def name_similarity(wanted: str, name: str) -> float:
    """Rate a name: 1 if it is the same, 0.97 apart from case and dots, less if it is only similar."""
    if wanted == name:
        return EXACT
    here, there = plain(wanted), plain(name)
    if here and here == there:
        return SAME_LETTERS
    # Only near misses count: a short name with one letter more or less is another word.
    if min(len(here), len(there)) < 4 or abs(len(here) - len(there)) > 1 + len(here) // 6:
        return 0.0
    return min(0.96, SequenceMatcher(None, here, there, autojunk=False).ratio())


def _misread(wanted: str, text: str) -> float:
    """Rate a text of which one letter may have been misread."""
    here, there = plain(wanted), plain(text)
    differing = ["".join(sorted(pair)) for pair in zip(here, there, strict=False) if pair[0] != pair[1]]
    is_same = len(here) == len(there) > 1 and len(differing) == 1 and differing[0] in _CONFUSED
    return _MISREAD if is_same else 0.0


def words_in_line(wanted: str, line: Line) -> list[tuple[str, Box, float]]:
    """Find the best matches in a line for these words, with their similarity."""
    line_words, count, here = line.words, len(wanted.split()), plain(wanted).replace(" ", "")
    candidates: list[tuple[float, str, Box, set[int]]] = []
    for size in {count, max(1, count - 1), count + 1}:
        for start in range(len(line_words) - size + 1):
            run = line_words[start : start + size]
            text = " ".join(word.text for word in run)
            # A space too many or too few is a mistake of the OCR.
            similarity = min(0.96, name_similarity(here, plain(text).replace(" ", "")))
            if size == count:
                similarity = max(name_similarity(wanted, text), similarity, _misread(wanted, text))
            if similarity >= NEAR:
                candidates.append((similarity, text, around(w.box for w in run), set(range(start, start + size))))
    taken: set[int] = set()
    kept = []
    for similarity, text, box, positions in sorted(candidates, key=lambda candidate: -candidate[0]):
        if not positions & taken:
            taken |= positions
            kept.append((text, box, similarity))
    if kept:
        return kept
    for word in line_words:  # the OCR joined it with its neighbors into one word, such as `[Save]` or `FileEdit`
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
    """Find the equally good matches of an icon in a picture, at its size or else at some others."""
    if icon.pixels.std() < 1:
        raise ValueError("The image of the icon has only one colour, so it can't be found.")
    spots = _spots(picture.pixels, icon.pixels) or _in_other_sizes(picture.pixels, icon.pixels)
    matches = [Match.at(picture.on_screen(box), "", "icon", "icon", similarity) for box, similarity in spots]
    return equally_good(matches, _EQUAL_ICONS)


def _in_other_sizes(pixels: Pixels, icon: Pixels) -> list[tuple[Box, float]]:
    import cv2

    def resized(image: Pixels, factor: float) -> Pixels:
        interpolation = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
        made: Pixels = cv2.resize(image, None, fx=factor, fy=factor, interpolation=interpolation)
        return made

    coarse = max(1.0, max(pixels.shape[:2]) / _COARSE)
    small = resized(pixels, 1 / coarse)
    tried = []
    for size in (0.5, 0.67, 0.75, 1.25, 1.5, 2.0):
        factor, screen = size / coarse, small
        if min(icon.shape[:2]) * factor < 6:
            factor, screen = size, pixels
        spots_at_size = _spots(screen, resized(icon, factor), _SAME_ICON - 0.2)
        tried += [(similarity, size) for _, similarity in spots_at_size[:1]]
    for _, size in sorted(tried, reverse=True)[:2]:
        if spots := _spots(pixels, resized(icon, size), _SAME_ICON - 0.05):
            return spots
    return []


def _spots(pixels: Pixels, icon: Pixels, least: float = _SAME_ICON) -> list[tuple[Box, float]]:
    """Find where the icon is in this size, with the similarity, the best first."""
    import cv2
    import numpy

    high, wide = icon.shape[:2]
    if high > pixels.shape[0] or wide > pixels.shape[1]:
        return []
    scores = cv2.matchTemplate(pixels, icon, cv2.TM_CCOEFF_NORMED)
    # An area of one color has nothing to compare, so its score is not a number.
    scores = numpy.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0)
    spots: list[tuple[Box, float]] = []
    while len(spots) < _MAX_ICONS:
        _, best, _, (x, y) = cv2.minMaxLoc(scores)
        if best < least or best > 1.01:
            break
        spots.append((Box(x, y, wide, high), min(1.0, float(best))))
        top, left = max(0, y - high // 2), max(0, x - wide // 2)
        scores[top : y + high // 2 + 1, left : x + wide // 2 + 1] = 0
    return spots
