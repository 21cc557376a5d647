"""`computer.os`: the windows and applications of the desktop."""

from __future__ import annotations

from typing import Any

from interpreter.computer_api.desktop.applications import find
from interpreter.computer_api.desktop.notices import notice
from interpreter.computer_api.desktop.windows import Window, Windows, open_windows
from interpreter.computer_api.input.clips import open_clips
from interpreter.computer_api.tool import Tool, acts
from interpreter.errors import ComputerError

_LONGEST_NOTICE = 200


class WindowError(ComputerError, ValueError):
    """A window that is not there, not one, or does not do as it is told."""


class Os(Tool):
    """The desktop. A window is told by its id, a part of its title, or what `windows` gave."""

    def get_selected_text(self) -> str:
        """The text that is marked on the screen; empty if none is."""
        marked = open_clips().marked()
        if marked is None and self.computer.clipboard.modifier_key == "command":
            # macOS tells it to nobody, so it is copied.
            copied = self.computer.clipboard.copy()
            marked = copied if isinstance(copied, str) else ""
        return marked or ""

    def notify(self, text: str) -> bool:
        """Show the user a short notice on the desktop; whether it could be shown."""
        told = str(text)
        return notice(told if len(told) <= _LONGEST_NOTICE else told[: _LONGEST_NOTICE - 1] + "…")

    def windows(self) -> list[dict[str, Any]]:
        """All windows: id, title, application, place and size, which is active, which is hidden."""
        return [window.told() for window in open_windows().all()]

    def active_window(self) -> dict[str, Any] | None:
        """The window that has the keyboard."""
        return next((window.told() for window in open_windows().all() if window.active), None)

    @acts
    def focus(self, window: Any) -> dict[str, Any]:
        """Bring a window to the front and give it the keyboard."""
        windows = open_windows()
        found = one_window(windows, window)
        if not windows.focus(found.id):
            raise WindowError(f"The window {found.title!r} did not come to the front.")
        return _again(windows, found).told()

    @acts
    def move_window(
        self,
        window: Any,
        x: int | None = None,
        y: int | None = None,
        width: int | None = None,
        height: int | None = None,
    ) -> dict[str, Any]:
        """Move a window, or change its size; what is not given stays as it is. Returns where it is now."""
        windows = open_windows()
        found = one_window(windows, window)
        windows.place(found.id, x, y, width, height)
        return _again(windows, found).told()

    @acts
    def close_window(self, window: Any) -> bool:
        """Ask a window to close; false if it is still there, most likely with a question."""
        windows = open_windows()
        return windows.close(one_window(windows, window).id)

    @acts
    def launch(self, name: str, *args: str) -> dict[str, Any]:
        """Start an application by its name, such as "firefox" or "Text Editor", and wait for its window."""
        return open_windows().launch(find(name), [str(arg) for arg in args]).told()


def one_window(windows: Windows, meant: Any) -> Window:
    """The window that is meant; an error that lists what there is, if it is not one."""
    there = windows.all()
    if isinstance(meant, dict):
        meant = meant.get("id")
    if isinstance(meant, str):
        wanted = meant.casefold()
        by_title = [window for window in there if wanted == window.title.casefold()]
        found = by_title or [w for w in there if wanted in w.title.casefold() or wanted == w.application.casefold()]
    else:
        found = [window for window in there if window.id == meant]
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"id {window.id}: {window.title!r} of {window.application}" for window in found or there)
    what = f"{len(found)} windows are" if found else "No window is"
    raise WindowError(f"{what} {meant!r}. There are:\n{listed or '(no windows at all)'}")


def _again(windows: Windows, before: Window) -> Window:
    """The window as it is now."""
    return next((window for window in windows.all() if window.id == before.id), before)
