"""Which window the model has in front: the user goes to the terminal in between, to approve a block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.computer_api.desktop.windows import open_windows
from interpreter.computer_api.display.screens import Window
from interpreter.computer_api.input.hands import is_terminal

if TYPE_CHECKING:
    from interpreter.computer_api.display import Display

OWN_TERMINAL = (
    "The window in front is the terminal that this conversation is held in, and what you type there would be taken for "
    "the user's words. Bring the window that you mean to the front first: computer.os.focus(...), or a click into it."
)


class Front:
    """Remembers the window in front, and gives the keyboard back to it."""

    def __init__(self, display: Display) -> None:
        self._display = display  # whose connection is open: one that is interrupted while it opens leaves its socket
        self._window: int | None = None
        self._is_fresh = True  # since the last look, the model has done nothing

    def note(self) -> None:
        """This is how the model sees the screen: what is in front now is what it means."""
        self._is_fresh = True
        self._window = self._active()

    def acts(self) -> None:
        """The model does something, from which on it says itself what is in front."""
        self._is_fresh = False

    def types(self) -> None:
        """The model is about to type; an error if that would go to our own terminal."""
        windows, active = self._display._screens.windows(), self._active()
        if self._is_fresh and active != self._window and active in _ours(windows):
            self._give_back(windows)
            active = self._active()
        self.acts()
        if active is not None and active == _own_terminal(windows):
            raise PermissionError(OWN_TERMINAL)

    def _active(self) -> int | None:
        active = self._display._screens.active_window()
        return active.id if active is not None else None

    def _give_back(self, windows: list[Window]) -> None:
        if self._window is not None and any(window.id == self._window for window in windows):
            open_windows().focus(self._window)


def _ours(windows: list[Window]) -> list[int]:
    """Those that we may run in: a program may have several."""
    above = set(_ancestors())
    return [window.id for window in windows if window.pid in above or str(window.id) == os.environ.get("WINDOWID")]


def _own_terminal(windows: list[Window]) -> int | None:
    """The one that we run in, if that is certain and a terminal."""
    told = os.environ.get("WINDOWID")
    if any(str(window.id) == told for window in windows):
        return int(told or 0)
    ours = [window for window in windows if not window.popup and window.id in _ours(windows)]
    return ours[0].id if len(ours) == 1 and is_terminal(ours[0].application) else None


def _ancestors() -> Iterator[int]:
    """The processes that this one descends from."""
    pid = os.getpid()
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        yield pid
