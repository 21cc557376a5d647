"""A frame around the screen as long as the model has the mouse, so that nobody mistakes whose hand it is."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

COLOR = 0xE0245E
WIDTH = 3  # pixels


class Sign:
    """Four narrow windows at the edges of the screen, which no click ever hits; on X11, where it can be drawn."""

    def __init__(self) -> None:
        self._display: Any = None
        self._windows: list[Any] = []

    def show(self) -> bool:
        """Draw it, above all else; whether it is there."""
        if sys.platform in ("darwin", "win32") or not os.environ.get("DISPLAY"):
            return False
        if self._display is None:
            try:
                self._draw()
            except _x_errors():
                self.hide()
                return False
        for window in self._windows:
            window.configure(stack_mode=0)  # above
        self._display.sync()
        return True

    def hide(self) -> None:
        """Take it away: nobody sees it any more when this returns."""
        display, windows = self._display, self._windows
        self._display, self._windows = None, []
        if display is not None:
            with contextlib.suppress(*_x_errors()):  # the screen may be gone
                for window in windows:
                    window.destroy()
                display.sync()
            display.close()

    def _draw(self) -> None:
        from Xlib import display as xlib
        from Xlib.ext import shape

        self._display = xlib.Display()
        root = self._display.screen().root
        size = root.get_geometry()
        edges = (
            (0, 0, size.width, WIDTH),
            (0, size.height - WIDTH, size.width, WIDTH),
            (0, WIDTH, WIDTH, size.height - 2 * WIDTH),
            (size.width - WIDTH, WIDTH, WIDTH, size.height - 2 * WIDTH),
        )
        for edge in edges:
            window = root.create_window(*edge, 0, 0, override_redirect=True, background_pixel=COLOR)
            window.set_wm_name("Open Interpreter is in control")
            window.shape_rectangles(shape.SO.Set, shape.SK.Input, 0, 0, 0, [])  # clicks go through it
            window.map()
            self._windows.append(window)


def _x_errors() -> tuple[type[Exception], ...]:
    try:
        from Xlib import error
    except ImportError:
        return (ImportError,)
    return (error.DisplayError, error.XError, OSError, AttributeError)
