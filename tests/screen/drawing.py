"""Drawing on the root window of the desktop, where nothing else draws."""

from __future__ import annotations

from typing import Any

from screen.desktop import Desktop


class Canvas:
    """The root window as something to draw on; `clear` leaves it black."""

    def __init__(self, desktop: Desktop) -> None:
        self._x = desktop.x
        self._root = desktop.x.screen().root
        self._size = desktop.width, desktop.height

    def fill(self, colour: int, left: int, top: int, width: int, height: int) -> None:
        pen = self._root.create_gc(foreground=colour)
        self._root.fill_rectangle(pen, left, top, width, height)
        pen.free()
        self._x.sync()

    def put(self, image: Any, left: int, top: int) -> None:
        """Draw a Pillow image."""
        pen = self._root.create_gc()
        self._root.put_pil_image(pen, left, top, image.convert("RGB"))
        pen.free()
        self._x.sync()

    def clear(self) -> None:
        self.fill(0, 0, 0, *self._size)
