"""Pixels and monitors through mss, which Windows, macOS and X11 share."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.failures import NoDisplayError, needed
from interpreter.computer_api.display.screens import Monitor

if TYPE_CHECKING:
    from PIL.Image import Image


class Grabber:
    """One mss for all threads, used by one at a time."""

    def __init__(self, display: str | None = None) -> None:
        self._lock = threading.Lock()
        module = needed("mss", "Seeing the screen")
        self._error = module.exception.ScreenShotError
        try:
            self._mss: Any = module.MSS(display=display) if display else module.MSS()
        except self._error as error:
            raise NoDisplayError(f"The screen cannot be seen: {error}") from error
        weakref.finalize(self, self._mss.close)

    def grab(self, box: Box) -> Image:
        """The pixels of a box, one for each pixel of the box also where the screen has more."""
        image = needed("PIL.Image", "Seeing the screen")
        with self._lock:
            try:
                shot = self._mss.grab({"left": box.left, "top": box.top, "width": box.width, "height": box.height})
            except self._error as error:
                raise NoDisplayError(f"The screen cannot be seen any more: {error}") from error
        found: Image = image.frombytes("RGB", (shot.width, shot.height), bytes(shot.bgra), "raw", "BGRX")
        return found if found.size == (box.width, box.height) else found.resize((box.width, box.height))

    def monitors(self) -> list[Monitor]:
        with self._lock:
            found = self._mss.monitors[1:]
        return [
            Monitor(f"screen {number}", Box(each["left"], each["top"], each["width"], each["height"]), number == 0)
            for number, each in enumerate(found)
        ]


class GrabbedScreen:
    """A screen that mss sees, and that says nothing of what changes on it."""

    closed = False

    def __init__(self) -> None:
        self._grabber = Grabber()

    def monitors(self) -> list[Monitor]:
        return self._grabber.monitors()

    def grab(self, box: Box) -> Image:
        return self._grabber.grab(box)

    def watch(self) -> None:
        return None
