"""Finding what is meant on the screen: in the accessibility tree, else by reading it, else by an icon's picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from interpreter.computer_api.display.atspi import AccessibilityError, Asking, look
from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.elements import Element, Key, Tree
from interpreter.computer_api.display.icons import icon_in
from interpreter.computer_api.display.pictures import Sight, pixels_of
from interpreter.computer_api.display.reading import Reading
from interpreter.computer_api.display.roles import INTERACTIVE, KINDS, STRUCTURE, TOPS
from interpreter.computer_api.display.screens import Screens, Window, desktop_box
from interpreter.computer_api.display.visibility import involved, seen
from interpreter.computer_api.display.wording import NEAR, SAME_LETTERS, in_lines, likeness, plain, unquoted

# Differences smaller than this tell nothing.
_EQUAL = 0.005
# Of a page with thousands of equal controls, so many are asked where they are.
_MOST_PLACED = 400


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

    def told(self) -> dict[str, Any]:
        """It as a value."""
        told = asdict(self) | {"box": list(self.box)}
        del told["key"]
        return told


class View:
    """The screen at one moment; each thing about it is asked once, when it is first needed."""

    def __init__(self, screens: Screens, reading: Reading) -> None:
        self._screens, self._reading = screens, reading

    @cached_property
    def desktop(self) -> Box:
        return desktop_box(self._screens)

    @cached_property
    def windows(self) -> list[Window]:
        return self._screens.windows()

    @cached_property
    def active(self) -> Window | None:
        return self._screens.active_window()

    @cached_property
    def tree(self) -> Tree:
        """What the programs tell; nothing if they cannot be asked."""
        known = {window.pid for window in self.windows if not window.popup}
        pids = frozenset(pid for pid in known if pid is not None)
        try:
            return look(lambda asking: asking.tree(frozenset() if None in known else pids))
        except AccessibilityError:
            return Tree()

    def region(self) -> Box:
        """The active window and the menus that are open; the whole desktop if none is active."""
        if self.active is None:
            return self.desktop
        from interpreter.computer_api.display.boxes import around

        popups = [window.box for window in self.windows if window.popup]
        return around([self.active.box, *popups]).within(self.desktop)

    def lines(self, region: Box) -> list[Any]:
        pixels = pixels_of(self._screens.grab(region))
        return self._reading.read(pixels, region, self.desktop)

    def place(self, elements: Sequence[Element]) -> list[tuple[Element, Box]]:
        """Those of the elements that can be seen, and where."""
        asked = involved(self.tree, elements)

        async def ask(asking: Asking) -> None:
            await asking.boxes(asked)

        if elements:
            try:
                look(ask)
            except AccessibilityError:
                return []
        placed = ((element, seen(self.tree, element, self.windows, self.desktop)) for element in elements)
        return [(element, box) for element, box in placed if box is not None]


def text_on_screen(view: View, target: str) -> list[Match]:
    """All places that are equally good for a text or a description; none if there is nothing like it."""
    wanted, quoted = unquoted(target)
    ways: list[Callable[[], list[Match]]] = [lambda: named(view, wanted, SAME_LETTERS)]
    if not quoted:
        ways.append(lambda: described(view, wanted))
    ways += [
        lambda: written(view, wanted, view.region(), SAME_LETTERS),
        lambda: written(view, wanted, view.desktop, SAME_LETTERS),
        lambda: named(view, wanted, NEAR),
        lambda: written(view, wanted, view.desktop, NEAR),
    ]
    if not quoted:
        ways.append(lambda: mentioned(view, wanted))
    return next((found for way in ways if (found := way())), [])


def _candidates(view: View) -> list[Element]:
    hollow = TOPS | {"application"}
    return [
        element
        for element in view.tree.elements.values()
        if element.showing and element.role not in hollow and (element.name or element.description)
    ]


def named(view: View, wanted: str, least: float, roles: frozenset[str] | None = None) -> list[Match]:
    """Elements of that name; of those without a name, what describes them counts."""
    rated = [
        (element, likeness(wanted, element.name or element.description))
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
    """The best of them that can be seen, and of these the ones to click on, and in the active window, if there are."""
    rated = sorted(rated, key=lambda each: -each[1])[:_MOST_PLACED]
    rates = {element.key: rate for element, rate in rated}
    placed = view.place([element for element, _ in rated])
    if not placed:
        return []
    top = max(rates[element.key] for element, _ in placed)
    placed = [(element, box) for element, box in placed if rates[element.key] >= top - _EQUAL]
    placed = _preferred(placed, lambda element, box: element.role in INTERACTIVE)
    placed = _preferred(placed, lambda element, box: element.role not in STRUCTURE)
    placed = _preferred(placed, lambda element, box: _is_active(view, element, box))
    return [
        Match.at(box, element.name or element.description, "accessibility", element.role, top, element.key)
        for element, box in _outermost(view.tree, placed)
    ]


def _preferred(placed: list[tuple[Element, Box]], good: Callable[[Element, Box], bool]) -> list[tuple[Element, Box]]:
    return [each for each in placed if good(*each)] or placed


def _is_active(view: View, element: Element, box: Box) -> bool:
    upper = next((window for window in view.windows if window.box.has(*box.center)), None)
    return upper is not None and (upper.popup or (view.active is not None and upper.id == view.active.id))


def _outermost(tree: Tree, placed: Iterable[tuple[Element, Box]]) -> list[tuple[Element, Box]]:
    """Without those that are inside another one: the text of a button is the button."""
    placed = list(placed)
    keys = {element.key for element, _ in placed}
    return [(e, box) for e, box in placed if not any(a.key in keys for a in tree.ancestors(e))]


def written(view: View, wanted: str, region: Box, least: float) -> list[Match]:
    """Words that can be read in a region."""
    return equally_good([match for match in read_matches(view.lines(region), wanted) if match.similarity >= least])


def read_matches(lines: Sequence[Any], wanted: str, sight: Sight | None = None) -> list[Match]:
    found = in_lines(wanted, lines)
    place = sight.on_screen if sight is not None else (lambda box: box)
    return [Match.at(place(each.box), each.text, "ocr", "", each.similarity) for each in found]


def equally_good(matches: list[Match]) -> list[Match]:
    best = max((match.similarity for match in matches), default=0)
    return [match for match in matches if match.similarity >= best - _EQUAL]


def icon_matches(sight: Sight, icon: Sight) -> list[Match]:
    """The places of an icon in a picture, the equally good ones."""
    spots = icon_in(sight.pixels, icon.pixels)
    found = [Match.at(sight.on_screen(spot.box), "", "icon", "icon", spot.similarity) for spot in spots]
    best = max((match.similarity for match in found), default=0)
    return [match for match in found if match.similarity >= best - 0.05]
