"""`computer.display`: seeing the screen and finding things on it, on this machine alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from interpreter.computer_api.display import settling
from interpreter.computer_api.display.atspi import AccessibilityError, Asking, look
from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.elements import Element, Key
from interpreter.computer_api.display.failures import NotFoundOnScreenError
from interpreter.computer_api.display.finding import (
    Match,
    View,
    equally_good,
    icon_matches,
    read_matches,
    text_on_screen,
)
from interpreter.computer_api.display.ocr import Line, in_reading_order
from interpreter.computer_api.display.outline import as_text, outline
from interpreter.computer_api.display.pictures import Sight, numbered, pixels_of, quadrant_of, scaled, sight_of
from interpreter.computer_api.display.reading import Reading, read
from interpreter.computer_api.display.screens import Monitor, Screens, Window, desktop_box, open_screens
from interpreter.computer_api.display.wording import unquoted
from interpreter.computer_api.tool import Picture, Tool, acts

Result = TypeVar("Result")
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


class Display(Tool):
    """The screen: pictures of it, the text on it, and the elements that programs tell of."""

    def __init__(self, computer: Any) -> None:
        super().__init__(computer)
        self._opened: tuple[tuple[str | None, ...], Screens] | None = None
        self._reading = Reading()
        self._refs: dict[str, tuple[Element, Box]] = {}

    # -- pictures ------------------------------------------------------------------------------------------------

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
        if screen == -1 and not combine_screens and region is None and window is None:
            boxes = [monitor.box for monitor in self._screens.monitors()]
            return [self._picture(box, show, quadrant, full_size) for box in boxes]
        return self._picture(self._wanted(screen, active_app_only, region, window), show, quadrant, full_size)

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
    ) -> Picture | list[Picture]:
        """The same as view, with the parameters in the order of 0.4.3."""
        return self.view(show, quadrant, screen, combine_screens, active_app_only, region, window, full_size)

    def numbered(self, matches: Sequence[Match | dict[str, Any]], picture: Picture | None = None) -> Picture:
        """A picture (of the whole desktop, if none is given) with a numbered frame around each match or element."""
        if picture is None:
            picture = self._taken(desktop_box(self._screens), full_size=False)
        return numbered(picture, [_box_of(match) for match in matches])

    def _picture(self, box: Box, show: bool, quadrant: int | None, full_size: bool) -> Picture:
        if quadrant is not None:
            box = quadrant_of(box, quadrant)
        picture = self._taken(box, full_size)
        shower = getattr(self.computer, "show", None)
        if not show or shower is None:
            return picture
        shower(picture)
        # What is shown already is not shown once more as the value of the last line.
        return replace(picture, about={**picture.about, "shown": True})

    def _taken(self, box: Box, full_size: bool) -> Picture:
        longest = None if full_size else self.computer.screenshot_size
        return replace(scaled(self._screens.grab(box), box, longest), about={"box": list(box)})

    def _wanted(
        self, screen: int, active_app_only: bool, region: Sequence[int] | None, window: str | int | None
    ) -> Box:
        whole = desktop_box(self._screens)
        if region is not None:
            box = Box(*(round(number) for number in region)).within(whole)
            if not box.area:
                raise ValueError(
                    f"The region is not on the screen, which is {list(whole)} as [left, top, width, height]."
                )
            return box
        if window is not None:
            return self._window(window).box.within(whole)
        if screen == -1:
            return whole
        if screen == 0 and active_app_only:
            box = View(self._screens, self._reading).region()
            return box if box.area else whole
        return self._monitor(screen).box

    def _monitor(self, screen: int) -> Monitor:
        monitors = self._screens.monitors()
        if not 0 <= screen < len(monitors):
            raise ValueError(f"There is no screen {screen}: they are 0 to {len(monitors) - 1}, or -1 for all.")
        return monitors[screen]

    def _window(self, window: str | int) -> Window:
        windows = [each for each in self._screens.windows() if not each.popup]
        found = [each for each in windows if each.id == window]
        if isinstance(window, str):
            wanted = window.casefold()
            found = [each for each in windows if each.title.casefold() == wanted]
            found = found or [each for each in windows if wanted in f"{each.title} {each.application}".casefold()]
        if not found:
            titles = ", ".join(repr(each.title) for each in windows) or "none"
            raise NotFoundOnScreenError(f"There is no window {window!r} on the screen. There are: {titles}.")
        return found[0]

    # -- what there is -------------------------------------------------------------------------------------------

    def size(self) -> tuple[int, int]:
        """Width and height of the desktop that all monitors make up, in pixels."""
        box = desktop_box(self._screens)
        return box.width, box.height

    @property
    def width(self) -> int:
        return self.size()[0]

    @property
    def height(self) -> int:
        return self.size()[1]

    def center(self) -> tuple[int, int]:
        """The middle of the desktop."""
        return desktop_box(self._screens).center

    def info(self) -> dict[str, Any]:
        """The monitors, the windows (topmost first) and the active window; boxes are [left, top, width, height]."""
        active = self._screens.active_window()
        return {
            "box": list(desktop_box(self._screens)),
            "monitors": [
                {"screen": number, "name": each.name, "box": list(each.box), "primary": each.primary or number == 0}
                for number, each in enumerate(self._screens.monitors())
            ],
            "windows": [_told(each) for each in self._screens.windows() if not each.popup],
            "active_window": _told(active) if active else None,
        }

    # -- finding -------------------------------------------------------------------------------------------------

    def find(self, description: Any, screenshot: Any = None) -> list[dict[str, Any]]:
        """Where a text, a described element ("Save button") or an icon (a picture of it) is."""
        return [self._relative(match, screenshot) for match in self.locate(description, screenshot)]

    def find_text(self, text: str, screenshot: Any = None) -> list[dict[str, Any]]:
        """Where a text can be read on the screen or in a picture, the best match first."""
        wanted = unquoted(text)[0]
        if screenshot is not None:
            sight = sight_of(screenshot)
            matches = read_matches(read(sight.pixels), wanted, sight)
        else:
            view = View(self._screens, self._reading)
            matches = read_matches(view.lines(view.desktop), wanted)
        return [self._relative(match, screenshot) for match in matches]

    def get_text_as_list_of_lists(self, screenshot: Any = None) -> list[list[str]]:
        """The text on the screen or in a picture: lines from top to bottom, each a list of words."""
        return [[word.text for word in line.words] for line in self._lines(screenshot)]

    def locate(self, target: Any, screenshot: Any = None) -> list[Match]:
        """All places that are equally good for a text, a description, an element, or the picture of an icon."""
        if isinstance(target, Match):
            return [target]
        if isinstance(target, dict):
            return [self._element(target)]
        if isinstance(target, str) and target.strip() in self._refs:
            return [self._element({"ref": target.strip()})]
        if not isinstance(target, str) or _is_image_file(target):
            return icon_matches(self._sight(screenshot), sight_of(target))
        if not target.strip():
            raise ValueError("Name what to look for: a text on the screen, an element, or the picture of an icon.")
        if screenshot is not None:
            sight = sight_of(screenshot)
            return equally_good(read_matches(read(sight.pixels), unquoted(target)[0], sight))
        return text_on_screen(View(self._screens, self._reading), target)

    def _sight(self, screenshot: Any) -> Sight:
        if screenshot is not None:
            return sight_of(screenshot)
        whole = desktop_box(self._screens)
        return Sight(pixels_of(self._screens.grab(whole)), whole.left, whole.top)

    def _lines(self, screenshot: Any) -> list[Line]:
        if screenshot is not None:
            return in_reading_order(read(sight_of(screenshot).pixels))
        view = View(self._screens, self._reading)
        return view.lines(view.desktop)

    def _relative(self, match: Match, screenshot: Any) -> dict[str, Any]:
        """A match with its place as parts of the picture's size, as 0.4.3 had it; of the desktop's if there is none."""
        if screenshot is not None:
            sight = sight_of(screenshot)
            high, wide = sight.pixels.shape[:2]
            whole = sight.on_screen(Box(0, 0, wide, high))
        else:
            whole = desktop_box(self._screens)
        relative = ((match.x - whole.left) / max(1, whole.width), (match.y - whole.top) / max(1, whole.height))
        return {"coordinates": relative, **match.told()}

    # -- elements ------------------------------------------------------------------------------------------------

    def elements(self, window: str | int | None = None, limit: int = 200) -> list[dict[str, Any]]:
        """The elements of the active window (or another): ref, role, name, value, states, x, y, box of each."""
        return self._outline(window, limit)[0]

    def summary(self, window: str | int | None = None, limit: int = 80) -> str:
        """The elements of the active window in words, or the text on it where the program tells of none."""
        told, left, found = self._outline(window, limit)
        title = found.title if found else ""
        if told:
            return as_text(told, title, left)
        view = View(self._screens, self._reading)
        lines = view.lines(found.box.within(view.desktop) if found else view.desktop)[:limit]
        texts = [f'text "{line.text}" at {line.box.center[0]},{line.box.center[1]}' for line in lines]
        return "\n".join([f"Window: {title}", *texts] if title else texts)

    def get_text(self, element: Any) -> str:
        """What is written in an element that elements() or find() gave."""
        key = self._key(element)
        return _asked(lambda asking: asking.text(key))

    @acts
    def set_text(self, element: Any, text: str) -> bool:
        """Write a text into an element, instead of what is there; whether the program took it."""
        key = self._key(element)
        return _asked(lambda asking: asking.write(key, text))

    @acts
    def activate(self, element: Any, action: str | None = None) -> bool:
        """Have an element do its action (its first, such as click or press, or the one named) without the mouse."""
        key = self._key(element)
        return _asked(lambda asking: asking.act(key, action))

    def _outline(self, window: str | int | None, limit: int) -> tuple[list[dict[str, Any]], int, Window | None]:
        view = View(self._screens, self._reading)
        found = self._window(window) if window is not None else view.active
        placed, left = outline(view, found, limit)
        self._refs = {f"e{number}": each for number, each in enumerate(placed, 1)}
        return [replace(element, box=box).told(ref) for ref, (element, box) in self._refs.items()], left, found

    def _element(self, told: dict[str, Any]) -> Match:
        """The element where it is now; where it was, if the program cannot be asked."""
        known = self._refs.get(str(told.get("ref")))
        if known is None:
            if {"x", "y"} <= told.keys():
                box = Box(*told["box"]) if told.get("box") else Box(int(told["x"]), int(told["y"]), 1, 1)
                text, role = told.get("name") or told.get("text") or "", told.get("role", "")
                return Match(int(told["x"]), int(told["y"]), box, text, "accessibility", role)
            raise NotFoundOnScreenError(f"There is no element {told!r}: call elements() anew and take one from there.")
        element, box = known
        try:
            box = look(lambda asking: asking.box(element.key)) or box
        except AccessibilityError:
            pass
        return Match.at(box, element.name, "accessibility", element.role, 1.0, element.key)

    def _key(self, element: Any) -> Key:
        ref = element.get("ref") if isinstance(element, dict) else element
        if isinstance(element, Match) and element.key is not None:
            return element.key
        if isinstance(ref, str) and ref in self._refs:
            return self._refs[ref][0].key
        if isinstance(element, str):
            found = [match for match in self.locate(element) if match.key is not None]
            if len(found) == 1 and found[0].key is not None:
                return found[0].key
        raise NotFoundOnScreenError(f"{element!r} is not one element: call elements() and take its ref from there.")

    # -- changes -------------------------------------------------------------------------------------------------

    def wait_until_still(self, seconds: float = 0.3, timeout: float = 10, region: Sequence[int] | None = None) -> bool:
        """Wait until nothing has changed for some seconds; False if it has not come to rest in time."""
        box = Box(*region) if region is not None else desktop_box(self._screens)
        return settling.wait_until_still(self._screens, box, seconds, timeout)

    def changed_since(self, picture: Picture) -> list[list[int]]:
        """The boxes [left, top, width, height] of the screen that are not any more as in a picture from view()."""
        return [list(box) for box in settling.changed_since(self._screens, picture)]

    @property
    def _screens(self) -> Screens:
        """The screen that the environment names now."""
        named = tuple(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
        if self._opened is None or self._opened[0] != named or self._opened[1].closed:
            self._opened = (named, open_screens())
        return self._opened[1]


def _told(window: Window) -> dict[str, Any]:
    return {"id": window.id, "title": window.title, "application": window.application, "box": list(window.box)}


def _box_of(match: Match | dict[str, Any]) -> Box:
    return match.box if isinstance(match, Match) else Box(*match["box"])


def _is_image_file(target: str) -> bool:
    return target.lower().endswith(_IMAGES) and os.path.isfile(os.path.expanduser(target))


def _asked(question: Callable[[Asking], Coroutine[Any, Any, Result]]) -> Result:
    try:
        return look(question)
    except AccessibilityError as error:
        raise NotFoundOnScreenError(f"{error} Use the mouse and the keyboard instead.") from error
