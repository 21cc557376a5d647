"""`computer.display`: seeing the screen and finding things on it, on this machine alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from interpreter.computer_api.at_session import called_from_sandbox, read_bytes
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.screen.display import pictures
from interpreter.computer_api.screen.display.accessibility import (
    AccessibilityBus,
    AccessibilityError,
    AccessibilityTree,
    Key,
    ScreenElement,
    query,
)
from interpreter.computer_api.screen.display.finding import (
    Match,
    ScreenView,
    as_text,
    equally_good,
    icon_matches,
    read_matches,
    text_on_screen,
    unquoted,
)
from interpreter.computer_api.screen.display.pictures import (
    Line,
    PlacedPixels,
    ScreenText,
    in_reading_order,
    pixels_of,
    placed_pixels,
    read,
)
from interpreter.computer_api.screen.platforms import Box, NotFoundOnScreenError, Screen, Window, open_screen
from interpreter.computer_api.tool import ComputerTool, Picture, acts

if TYPE_CHECKING:
    from PIL.Image import Image

Result = TypeVar("Result")
HIDDEN = "not visible: nothing is drawn there"
# Roles that may be empty, but are visible by their edges.
FRAMES = frozenset("text, entry, password, document text, terminal, spin button, combo box, icon, image".split(", "))


class Display(ComputerTool):
    """The screen: pictures of it, the text on it, and the elements that programs report."""

    def __init__(self, computer: Computer) -> None:
        super().__init__(computer)
        self._opened: tuple[tuple[str | None, ...], Screen] | None = None
        self._text = ScreenText()
        self._refs: dict[str, tuple[ScreenElement, Box]] = {}
        self._names: dict[Key, str] = {}  # the refs that elements have had
        self._tree = AccessibilityTree()

    # -- pictures --------------------------------------------------------------------------------------------------

    def view(
        self,
        show: bool = True,
        quadrant: int | None = None,
        screen: int = 0,
        combine_screens: bool = True,
        active_app_only: bool = True,
        region: Sequence[int] | None = None,
        window: str | int | None = None,
        full_size: bool = False,
    ) -> Picture | list[Picture]:
        """See the active window; or a screen (-1: all), quadrant (1-4), region [left, top, width, height] or window."""
        whole = self._screen.desktop()
        if region is not None:
            box = Box.given(region).within(whole)
            if not box.area:
                raise ValueError(
                    f"The region is not on the screen, which is {list(whole)} as [left, top, width, height]."
                )
        elif window is not None:
            box = self._window(window).box.within(whole)
        elif screen == -1:
            if not combine_screens:
                return [self._picture(each.box, show, quadrant, full_size) for each in self._screen.monitors()]
            box = whole
        elif screen == 0 and active_app_only:
            box = self._view().region()
            box = box if box.area else whole
        else:
            monitors = self._screen.monitors()
            if not 0 <= screen < len(monitors):
                raise ValueError(f"There is no screen {screen}. Use 0 to {len(monitors) - 1}, or -1 for all.")
            box = monitors[screen].box
        return self._picture(box, show, quadrant, full_size)

    def screenshot(
        self,
        screen: int = 0,
        show: bool = True,
        quadrant: int | None = None,
        active_app_only: bool = True,
        combine_screens: bool = True,
        region: Sequence[int] | None = None,
        window: str | int | None = None,
        full_size: bool = False,
    ) -> Image | list[Image]:
        """Do the same as view, but return a Pillow image, with the parameters in the order of 0.4.3."""
        taken = self.view(show, quadrant, screen, combine_screens, active_app_only, region, window, full_size)
        return [each.pil() for each in taken] if isinstance(taken, list) else taken.pil()

    def numbered(self, matches: Sequence[Match | dict[str, Any]], picture: Picture | None = None) -> Picture:
        """Draw a numbered frame around each match or element, in a picture (by default, of the whole desktop)."""
        if picture is None:
            picture = self._picture(self._screen.desktop(), show=False)
        boxes = [match.box if isinstance(match, Match) else Box(*match["box"]) for match in matches]
        return pictures.numbered(picture, boxes)

    def _picture(self, box: Box, show: bool, quadrant: int | None = None, full_size: bool = False) -> Picture:
        if quadrant is not None:
            if quadrant not in (1, 2, 3, 4):
                raise ValueError("quadrant is 1 (upper left), 2 (upper right), 3 (lower left) or 4 (lower right).")
            x, y = box.center
            left, right = (x, box.right) if quadrant in (2, 4) else (box.left, x)
            top, bottom = (y, box.bottom) if quadrant in (3, 4) else (box.top, y)
            box = Box.between(left, top, right, bottom)
        longest = None if full_size else self.computer.screenshot_size
        picture = replace(pictures.scaled(self._screen.grab(box), box, longest), about={"box": list(box)})
        if not show:
            return picture
        self.computer.show(picture)
        # It is shown already, and not once more as the value of the last line.
        return replace(picture, about={**picture.about, "shown": True})

    def _window(self, window: str | int) -> Window:
        windows = [each for each in self._screen.windows() if not each.popup]
        matching = [each for each in windows if each.id == window]
        if isinstance(window, str):
            wanted = window.casefold()
            matching = [each for each in windows if each.title.casefold() == wanted]
            matching = matching or [each for each in windows if wanted in f"{each.title} {each.application}".casefold()]
        if not matching:
            titles = ", ".join(repr(each.title) for each in windows) or "none"
            raise NotFoundOnScreenError(
                f"There is no window {window!r} on the screen. Available: {titles}. computer.os.windows() also lists "
                "those that are minimised, and computer.os.focus(...) brings one back."
            )
        return matching[0]

    # -- what there is ---------------------------------------------------------------------------------------------

    def size(self) -> tuple[int, int]:
        """Return width and height of the desktop that all monitors make up, in pixels."""
        box = self._screen.desktop()
        return box.width, box.height

    @property
    def width(self) -> int:
        return self.size()[0]

    @property
    def height(self) -> int:
        return self.size()[1]

    def center(self) -> tuple[int, int]:
        """Return the middle of the desktop."""
        return self._screen.desktop().center

    def info(self) -> dict[str, Any]:
        """Return the monitors, windows (topmost first) and active window; boxes are [left, top, width, height]."""

        def as_dict(window: Window) -> dict[str, Any]:
            box = list(window.box)
            return {"id": window.id, "title": window.title, "application": window.application, "box": box}

        active = self._screen.active_window()
        return {
            "box": list(self._screen.desktop()),
            "monitors": [
                {"screen": number, "name": each.name, "box": list(each.box), "primary": each.primary or number == 0}
                for number, each in enumerate(self._screen.monitors())
            ],
            "windows": [as_dict(each) for each in self._screen.windows() if not each.popup],
            "active_window": as_dict(active) if active else None,
        }

    # -- changes ---------------------------------------------------------------------------------------------------

    def wait_until_still(self, seconds: float = 0.3, timeout: float = 10, region: Sequence[int] | None = None) -> bool:
        """Wait until nothing has changed for some seconds; False if it has not come to rest in time."""
        box = Box.given(region) if region is not None else self._screen.desktop()
        return pictures.wait_until_still(self._screen, box, seconds, timeout)

    def changed_since(self, picture: Picture) -> list[list[int]]:
        """Return the boxes [left, top, width, height] that have changed since a picture from view()."""
        return [list(box) for box in pictures.changed_since(self._screen, picture)]

    # -- finding ---------------------------------------------------------------------------------------------------

    def find(self, description: Any, screenshot: Any = None) -> list[dict[str, Any]]:
        """Find where a text, a described element ("Save button") or an icon (a picture of it) is."""
        return self._relative(self.locate(description, screenshot), screenshot)

    def find_text(self, text: str, screenshot: Any = None) -> list[dict[str, Any]]:
        """Find where a text can be read on the screen or in a picture, the best match first."""
        return self._relative(self._read_matches(text, screenshot), screenshot)

    def get_text_as_list_of_lists(self, screenshot: Any = None) -> list[list[str]]:
        """Read the text on the screen or in a picture: lines from top to bottom, each a list of words."""
        return [[word.text for word in line.words] for line in self._lines(screenshot)]

    def locate(self, target: Any, screenshot: Any = None) -> list[Match]:
        """Return all equally good matches of a text, a description, an element, or the picture of an icon."""
        return sorted(self._located(target, screenshot), key=lambda match: (match.y, match.x))

    def _located(self, target: Any, screenshot: Any) -> list[Match]:
        if isinstance(target, Match):
            return [target]
        if isinstance(target, dict):
            return [self._element(target)]
        if isinstance(target, str) and target.strip() in self._refs:
            return [self._element({"ref": target.strip()})]
        is_image = isinstance(target, str) and target.lower().endswith(
            (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
        )
        if is_image and not called_from_sandbox():  # in a sandbox, the file is looked up from inside it
            is_image = os.path.isfile(os.path.expanduser(target))
        if is_image or not isinstance(target, str):
            if screenshot is not None:
                picture = self._pixels(screenshot)
            else:
                whole = self._screen.desktop()
                picture = PlacedPixels(pixels_of(self._screen.grab(whole)), whole.left, whole.top)
            return icon_matches(picture, self._pixels(target))
        if not target.strip():
            raise ValueError("Say what to look for: text on the screen, an element, or an image of an icon.")
        if screenshot is not None:
            return equally_good(self._read_matches(target, screenshot))
        return text_on_screen(self._view(), target)

    def _pixels(self, picture: Any) -> PlacedPixels:
        """Return the pixels of the caller's picture; for code in a sandbox, a file is read in there and not by us."""
        if isinstance(picture, str) and pictures.is_file_name(picture) and called_from_sandbox():
            picture = read_bytes(self.computer, picture)
        return placed_pixels(picture)

    def _lines(self, screenshot: Any) -> list[Line]:
        if screenshot is not None:
            return in_reading_order(read(self._pixels(screenshot).pixels))
        view = self._view()
        return view.lines(view.desktop)

    def _read_matches(self, text: str, screenshot: Any) -> list[Match]:
        picture = self._pixels(screenshot) if screenshot is not None else None
        return read_matches(self._lines(screenshot), unquoted(text)[0], picture)

    def _relative(self, matches: list[Match], screenshot: Any) -> list[dict[str, Any]]:
        """Describe matches with coordinates as parts of the picture's (or desktop's) size, as 0.4.3 did."""
        if screenshot is not None:
            picture = self._pixels(screenshot)
            high, wide = picture.pixels.shape[:2]
            whole = picture.on_screen(Box(0, 0, wide, high))
        else:
            whole = self._screen.desktop()
        rows = []
        for match in matches:
            relative = ((match.x - whole.left) / max(1, whole.width), (match.y - whole.top) / max(1, whole.height))
            rows.append({"coordinates": relative, **match.as_dict()})
        return rows

    # -- elements --------------------------------------------------------------------------------------------------

    def elements(self, window: str | int | None = None, limit: int = 200, read: bool = False) -> list[dict[str, Any]]:
        """List the elements of the active window (or another) and its menus: ref, role, name, value, states, x, y, box.

        With `read`, also readable text that belongs to no element, with the role "read".
        """
        elements, lines, _, _ = self._outline(window, limit, read)
        texts = [(line.text, *line.box.center, list(line.box)) for line in lines]
        return elements + [{"role": "read", "name": name, "x": x, "y": y, "box": box} for name, x, y, box in texts]

    def summary(self, window: str | int | None = None, limit: int = 80, read: bool = True) -> str:
        """Describe the elements of the active window and its menus as text; with `read`, also its other text."""
        elements, lines, more, owner = self._outline(window, limit, read)
        return as_text(elements, lines[:limit], owner.title if owner else "", more)

    def get_text(self, element: Any) -> str:
        """Return the text of an element that elements() or find() gave."""
        return self._ask(element, lambda bus, key: bus.text(key))

    @acts
    def set_text(self, element: Any, text: str) -> bool:
        """Replace the text in an element; returns whether the program accepted it."""
        return self._ask(element, lambda bus, key: bus.write(key, text))

    @acts
    def activate(self, element: Any, action: str | None = None) -> bool:
        """Have an element do its action (its first, such as click or press, or the one named) without the mouse."""
        return self._ask(element, lambda bus, key: bus.act(key, action))

    def _ask(self, element: Any, question: Callable[[AccessibilityBus, Key], Coroutine[Any, Any, Result]]) -> Result:
        key = self._key(element)
        try:
            return query(lambda bus: question(bus, key))
        except AccessibilityError as error:
            raise NotFoundOnScreenError(f"{error} Use the mouse and the keyboard instead.") from error

    def _outline(
        self, window: str | int | None, limit: int, read: bool
    ) -> tuple[list[dict[str, Any]], list[Line], int, Window | None]:
        view = self._view()
        owner = self._window(window) if window is not None else view.active
        placed, more = view.outline(owner, limit)
        self._tree, listed = view.tree, []
        self._refs = {}
        for element, box in placed:
            # An element keeps its ref as long as it exists.
            ref = self._names.setdefault(element.key, f"e{len(self._names) + 1}")
            self._refs[ref] = (element, box)
            row = replace(element, box=box).as_dict(ref)
            if element.role in FRAMES:
                is_hidden = bool(str(row.get("value", "")).strip()) and view.is_blank_field(box)
            else:
                is_hidden = view.is_blank(box)
            if is_hidden:
                row["states"] = [*row.get("states", ()), HIDDEN]
            top = view.tree.top(element)
            listed.append({**row, "popup": True} if top is not None and top.role == "window" and not top.name else row)
        return listed, view.unnamed_lines(owner, placed) if read else [], more, owner

    def _element(self, given: dict[str, Any]) -> Match:
        """Return the element at its present position, or at its last one if the program does not answer."""
        known = self._refs.get(str(given.get("ref")))
        if known is None:
            if {"x", "y"} <= given.keys():
                box = Box(*given["box"]) if given.get("box") else Box(int(given["x"]), int(given["y"]), 1, 1)
                text, role = given.get("name") or given.get("text") or "", given.get("role", "")
                return Match(int(given["x"]), int(given["y"]), box, text, "accessibility", role)
            raise NotFoundOnScreenError(f"There is no element {given!r}. Call elements() again and use one from there.")
        element, box = known
        for each in (element, *self._tree.ancestors(element)):
            each.box = None  # it may have moved
        placed = ScreenView(self._screen, self._text, self._tree).locate([element])
        box = placed[0][1] if placed else box
        return Match.at(box, element.name, "accessibility", element.role, 1.0, element.key)

    def _key(self, element: Any) -> Key:
        ref = element.get("ref") if isinstance(element, dict) else element
        if isinstance(element, Match) and element.key is not None:
            return element.key
        if isinstance(ref, str) and ref in self._refs:
            return self._refs[ref][0].key
        if isinstance(element, str):
            keys = [match.key for match in self.locate(element) if match.key is not None]
            if len(keys) == 1:
                return keys[0]
        raise NotFoundOnScreenError(f"{element!r} is not an element. Call elements() and use a ref from there.")

    # -- the screen ------------------------------------------------------------------------------------------------

    @property
    def _screen(self) -> Screen:
        """Return the screen that the environment names now."""
        names = tuple(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
        if self._opened is None or self._opened[0] != names or self._opened[1].closed:
            self._opened = (names, open_screen())
        return self._opened[1]

    def _view(self) -> ScreenView:
        return ScreenView(self._screen, self._text)

    def terminate(self) -> None:
        self._opened = None  # the connection closes with it


def screen_of(display: Display) -> Screen:
    """Return the screen of a display, for other tools; its public names are what code can call."""
    return display._screen
