"""macOS: the screen through mss and Quartz, windows through System Events.

Written from their documentation; not tested on a machine yet.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from interpreter.computer_api.platforms import Application, Box, NoDisplayError, Window, needed
from interpreter.computer_api.platforms.portable import CapturedScreen, CommandClipboard
from interpreter.errors import ComputerError

PERMISSIONS = (
    "macOS does not let this program see the screen. Open System Settings > Privacy & Security, allow your terminal "
    "under Screen & System Audio Recording (to see) and under Accessibility (to use mouse and keyboard), and start it "
    "anew."
)
_LIMIT = 20
_ALL = """
const found = [];
for (const p of Application("System Events").processes.whose({visible: true})()) {
  p.windows().forEach((w, i) => {
    found.push({pid: p.unixId(), application: p.name(), title: w.name() || "", box: [...w.position(), ...w.size()],
                active: p.frontmost() && i === 0});
  });
}
JSON.stringify(found)
"""
_ONE = """
const p = Application("System Events").processes.whose({{unixId: {pid}}})()[0];
const w = p.windows.whose({{name: {title}}})()[0];
{action}
"""


class MacScreen(CapturedScreen):
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
        found = []
        for each in quartz.CGWindowListCopyWindowInfo(which, quartz.kCGNullWindowID) or ():
            bounds = each.get("kCGWindowBounds", {})
            box = Box(*(int(bounds.get(name, 0)) for name in ("X", "Y", "Width", "Height")))
            owner = str(each.get("kCGWindowOwnerName", ""))
            title = str(each.get("kCGWindowName", "") or owner)
            # The layer of ordinary windows is 0; menus, the bar and the dock are above.
            popup = each.get("kCGWindowLayer", 0) != 0
            pid = each.get("kCGWindowOwnerPID")
            if box.area:
                found.append(Window(int(each["kCGWindowNumber"]), title, owner, box, box, pid, popup))
        return found

    def active_window(self) -> Window | None:
        return next((window for window in self.windows() if not window.popup), None)


class MacWindows:
    """The windows of all applications. A window has no number here: its id is its place in the list of all."""

    def all(self) -> list[Window]:
        found = []
        for number, each in enumerate(json.loads(_script(_ALL)), 1):
            box = Box(*each["box"])
            found.append(
                Window(number, each["title"], each["application"], box, box, each["pid"], active=each["active"])
            )
        return found

    def focus(self, window: int) -> bool:
        self._tell(self._window(window), 'p.frontmost = true; w.actions["AXRaise"].perform();')
        return True

    def place(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None:
        now = self._window(window)
        wanted = [
            given if given is not None else old for given, old in zip((x, y, width, height), now.box, strict=True)
        ]
        self._tell(now, f"w.position = {wanted[:2]}; w.size = {wanted[2:]};")

    def close(self, window: int) -> bool:
        before = self._window(window)
        self._tell(before, 'w.buttons.whose({subrole: "AXCloseButton"})()[0].click();')
        return not any((each.pid, each.title) == (before.pid, before.title) for each in self.all())

    def launch(self, application: Application, args: list[str]) -> Window:
        # With -W it would wait for the end; without, it waits until the application has started.
        ran = subprocess.run([*application.command, *args], capture_output=True, timeout=_LIMIT * 3, check=False)
        if ran.returncode:
            raise ComputerError(ran.stderr.decode(errors="replace").strip())
        found = next((each for each in self.all() if each.active), None)
        if found is None:
            raise ComputerError(f"{application.name} was started, but shows no window.")
        return found

    def _window(self, number: int) -> Window:
        return next(each for each in self.all() if each.id == number)

    def _tell(self, window: Window, action: str) -> None:
        _script(_ONE.format(pid=window.pid, title=json.dumps(window.title), action=action))


def _script(source: str) -> str:
    ran = subprocess.run(
        ["osascript", "-l", "JavaScript", "-e", source], capture_output=True, text=True, timeout=_LIMIT, check=False
    )
    if ran.returncode:
        raise ComputerError(
            f"macOS did not let us: {ran.stderr.strip()}. Allow it under System Settings, Privacy & Security, "
            "Accessibility."
        )
    return ran.stdout


class MacClipboard(CommandClipboard):
    package = "macOS"
    text_command = ("pbpaste",)
    put_text_command = ("pbcopy",)
