"""What a system has to tell of its screen, whichever system it is; and which one this is."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from interpreter.computer_api.display.boxes import Box, around
from interpreter.computer_api.display.failures import NoDisplayError

if TYPE_CHECKING:
    from PIL.Image import Image

NOTHING = (
    "There is no display here: neither DISPLAY nor WAYLAND_DISPLAY is set. Start one and name it, for instance "
    "`Xvfb :99 -screen 0 1280x800x24 &` and DISPLAY=:99 in the environment, or run this in a desktop session."
)


@dataclass(frozen=True)
class Monitor:
    """One monitor, and its place on the desktop that all of them make up."""

    name: str
    box: Box
    primary: bool = False


@dataclass(frozen=True)
class Window:
    """A window that is on the screen; `box` is with its frame, `inner` without."""

    id: int
    title: str
    box: Box
    inner: Box
    pid: int | None = None
    # Menus, tips and other windows that no window manager handles.
    popup: bool = False
    application: str = ""


class Watch(Protocol):
    """Tells of changes on the screen as they happen."""

    def wait(self, seconds: float) -> list[Box]:
        """What has changed, as soon as something does; nothing when the time is over."""

    def close(self) -> None: ...


class Screens(Protocol):
    """The screen of one system. All boxes are in pixels of the desktop, as the mouse counts them."""

    closed: bool
    """Whether the connection to it is lost, so that it has to be opened anew."""

    def monitors(self) -> list[Monitor]:
        """All monitors, the primary one first."""

    def windows(self) -> list[Window]:
        """The windows that can be seen, the topmost first; empty where the system does not tell."""

    def active_window(self) -> Window | None:
        """The window that has the keyboard."""

    def grab(self, box: Box) -> Image:
        """The pixels of a box as they are now; `box` is on the desktop."""

    def watch(self) -> Watch | None:
        """Changes as events, where the system has them."""


def desktop_box(screens: Screens) -> Box:
    """The box around all monitors."""
    return around(monitor.box for monitor in screens.monitors())


def desktop_size() -> tuple[int, int]:
    """Width and height of all monitors together."""
    box = desktop_box(open_screens())
    return box.width, box.height


def open_screens() -> Screens:
    """The screen of the system that this runs on, or one sentence on why there is none."""
    if sys.platform == "darwin":
        from interpreter.computer_api.display.quartz import Quartz

        return Quartz()
    if sys.platform == "win32":
        from interpreter.computer_api.display.windows import WindowsDesktop

        return WindowsDesktop()
    if os.environ.get("WAYLAND_DISPLAY") and os.environ.get("XDG_SESSION_TYPE") != "x11":
        from interpreter.computer_api.display.wayland import Wayland

        return Wayland()
    if name := os.environ.get("DISPLAY"):
        from interpreter.computer_api.display.x11 import X11

        return X11(name)
    raise NoDisplayError(NOTHING)
