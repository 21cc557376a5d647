"""Windows on macOS, through System Events. Written to its documentation, not tried on a Mac."""

from __future__ import annotations

import json
import subprocess

from interpreter.computer_api.desktop.applications import Application
from interpreter.computer_api.desktop.windows import Window
from interpreter.errors import ComputerError

_LIMIT = 20
_ALL = """
const found = [];
for (const p of Application("System Events").processes.whose({visible: true})()) {
  p.windows().forEach((w, i) => {
    const [x, y] = w.position(), [width, height] = w.size();
    found.push({pid: p.unixId(), application: p.name(), title: w.name() || "", x, y, width, height,
                active: p.frontmost() && i === 0, hidden: false});
  });
}
JSON.stringify(found)
"""
_ONE = """
const p = Application("System Events").processes.whose({{unixId: {pid}}})()[0];
const w = p.windows.whose({{name: {title}}})()[0];
{action}
"""


class MacWindows:
    """A window has no number here: it is counted in the list of all."""

    def all(self) -> list[Window]:
        return [Window(id=number, **each) for number, each in enumerate(json.loads(_script(_ALL)), 1)]

    def focus(self, window: int) -> bool:
        self._tell(window, 'p.frontmost = true; w.actions["AXRaise"].perform();')
        return True

    def place(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None:
        now = self._window(window)
        at = [now.x if x is None else x, now.y if y is None else y]
        size = [now.width if width is None else width, now.height if height is None else height]
        self._tell(window, f"w.position = {at}; w.size = {size};")

    def close(self, window: int) -> bool:
        before = self._window(window)
        self._tell(window, 'w.buttons.whose({subrole: "AXCloseButton"})()[0].click();')
        return not any((each.pid, each.title) == (before.pid, before.title) for each in self.all())

    def launch(self, application: Application, args: list[str]) -> Window:
        # With -W it would wait for the end; without, it waits until the application has started.
        ran = subprocess.run([*application.command, *args], capture_output=True, timeout=_LIMIT * 3, check=False)
        if ran.returncode:
            raise ComputerError(ran.stderr.decode(errors="replace").strip())
        there = self.all()
        found = next((each for each in there if each.active), None)
        if found is None:
            raise ComputerError(f"{application.name} was started, but shows no window.")
        return found

    def _window(self, number: int) -> Window:
        return next(each for each in self.all() if each.id == number)

    def _tell(self, number: int, action: str) -> None:
        window = self._window(number)
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
