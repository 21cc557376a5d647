"""The part of `computer.display` that sees: pictures, monitors, windows, and what changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from interpreter.computer_api.display import settling
from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.failures import NotFoundOnScreenError
from interpreter.computer_api.display.finding import Match, View
from interpreter.computer_api.display.pictures import numbered, quadrant_of, scaled
from interpreter.computer_api.display.reading import Reading
from interpreter.computer_api.display.screens import Monitor, Screens, Window, desktop_box, open_screens
from interpreter.computer_api.tool import Picture, Tool


class Seeing(Tool):
    """The screen as one sees it."""

    def __init__(self, computer: Any) -> None:
        super().__init__(computer)
        self._opened: tuple[tuple[str | None, ...], Screens] | None = None
        self._reading = Reading()

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
        if not show:
            return picture
        self.computer.show(picture)
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
            box = Box.given(region).within(whole)
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
            box = self._view().region()
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

    # -- what there is ---------------------------------------------------------------------------------------------

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

    # -- changes ---------------------------------------------------------------------------------------------------

    def wait_until_still(self, seconds: float = 0.3, timeout: float = 10, region: Sequence[int] | None = None) -> bool:
        """Wait until nothing has changed for some seconds; False if it has not come to rest in time."""
        box = Box.given(region) if region is not None else desktop_box(self._screens)
        return settling.wait_until_still(self._screens, box, seconds, timeout)

    def changed_since(self, picture: Picture) -> list[list[int]]:
        """The boxes [left, top, width, height] of the screen that are not any more as in a picture from view()."""
        return [list(box) for box in settling.changed_since(self._screens, picture)]

    # -- the screen ------------------------------------------------------------------------------------------------

    @property
    def _screens(self) -> Screens:
        """The screen that the environment names now."""
        named = tuple(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
        if self._opened is None or self._opened[0] != named or self._opened[1].closed:
            self._opened = (named, open_screens())
        return self._opened[1]

    def _view(self) -> View:
        return View(self._screens, self._reading)

    def _terminate(self) -> None:
        self._opened = None  # with it the connection goes


def _told(window: Window) -> dict[str, Any]:
    return {"id": window.id, "title": window.title, "application": window.application, "box": list(window.box)}


def _box_of(match: Match | dict[str, Any]) -> Box:
    return match.box if isinstance(match, Match) else Box(*match["box"])
