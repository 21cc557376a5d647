"""The screen of macOS, through mss and Quartz. Written by its documentation; not tested on a machine yet."""

from __future__ import annotations

from typing import Any

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.failures import NoDisplayError, needed
from interpreter.computer_api.display.grabbing import GrabbedScreen
from interpreter.computer_api.display.screens import Window

PERMISSIONS = (
    "macOS does not let this program see the screen. Open System Settings > Privacy & Security, allow your terminal "
    "under Screen & System Audio Recording (to see) and under Accessibility (to use mouse and keyboard), and start it "
    "anew."
)


class Quartz(GrabbedScreen):
    """The screen of the signed-in user, counted in points as the mouse does."""

    def __init__(self) -> None:
        self._quartz: Any = needed("Quartz", "Seeing the screen of macOS")
        if not self._quartz.CGPreflightScreenCaptureAccess():
            self._quartz.CGRequestScreenCaptureAccess()
            raise NoDisplayError(PERMISSIONS)
        super().__init__()

    def windows(self) -> list[Window]:
        quartz = self._quartz
        which = quartz.kCGWindowListOptionOnScreenOnly | quartz.kCGWindowListExcludeDesktopElements
        found = quartz.CGWindowListCopyWindowInfo(which, quartz.kCGNullWindowID) or ()
        return [window for each in found if (window := _window(each)).box.area]

    def active_window(self) -> Window | None:
        return next((window for window in self.windows() if not window.popup), None)


def _window(told: Any) -> Window:
    bounds = told.get("kCGWindowBounds", {})
    box = Box(*(int(bounds.get(name, 0)) for name in ("X", "Y", "Width", "Height")))
    owner = str(told.get("kCGWindowOwnerName", ""))
    title = str(told.get("kCGWindowName", "") or owner)
    # The layer of ordinary windows is 0; menus, the bar and the dock are above.
    popup = told.get("kCGWindowLayer", 0) != 0
    return Window(int(told["kCGWindowNumber"]), title, box, box, told.get("kCGWindowOwnerPID"), popup, owner)
