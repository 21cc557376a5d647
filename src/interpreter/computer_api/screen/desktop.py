"""`computer.os`: the windows, applications and notifications of the desktop."""

from __future__ import annotations

import configparser
import difflib
import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from interpreter.computer_api.screen.platforms import (
    DesktopApplication,
    Window,
    WindowManager,
    open_clipboard,
    open_windows,
    run_async,
)
from interpreter.computer_api.tool import ComputerTool, acts
from interpreter.errors import ComputerError
from interpreter.host.exposure import is_exposed
from interpreter.host.processes import run, which

_MAX_NOTIFICATION_LENGTH = 200
_TITLE = "Open Interpreter"
_TIMEOUT = 5


class WindowError(ComputerError, ValueError):
    """Raised for a window that doesn't exist, is ambiguous, or doesn't do what it should."""


class NoApplication(ComputerError, ValueError):
    """No application has that name; the message has the nearest names."""


class Os(ComputerTool):
    """The desktop. Windows are given by id, part of the title, or an entry from `windows`."""

    def get_selected_text(self) -> str:
        """Return the selected text on the screen; empty if there is none."""
        selected = open_clipboard().selected_text()
        if selected is None and self.computer.clipboard.modifier_key == "command":
            # macOS has no selection to read, so it is copied.
            copied = self.computer.clipboard.copy()
            selected = copied if isinstance(copied, str) else ""
        return selected or ""

    def notify(self, text: str) -> bool:
        """Show the user a short notice on the desktop; returns whether it could be shown."""
        text = str(text)
        if len(text) > _MAX_NOTIFICATION_LENGTH:
            text = text[: _MAX_NOTIFICATION_LENGTH - 1] + "…"
        if sys.platform == "darwin":
            message, title = (json.dumps(part, ensure_ascii=False) for part in (text, _TITLE))
            return _runs(["osascript", "-e", f"display notification {message} with title {title}"])
        with suppress(Exception):  # a notification never fails loudly
            if run_async(lambda: _notify(text), _TIMEOUT):
                return True
        return _runs(["notify-send", "--app-name", _TITLE, _TITLE, text])

    def windows(self) -> list[dict[str, Any]]:
        """List all windows: id, title, application, position (None if hidden), size, and which is active or hidden."""
        return [_as_dict(window) for window in open_windows().all()]

    def active_window(self) -> dict[str, Any] | None:
        """Return the window that has the keyboard."""
        return next((_as_dict(window) for window in open_windows().all() if window.active), None)

    @acts
    def focus(self, window: Any) -> dict[str, Any]:
        """Bring a window to the front and give it the keyboard."""
        windows = open_windows()
        match = find_window(windows, window)
        if not windows.focus(match.id):
            raise WindowError(f"The window {match.title!r} did not come to the front.")
        return _now(windows, match)

    @acts
    def move_window(
        self,
        window: Any,
        x: int | None = None,
        y: int | None = None,
        width: int | None = None,
        height: int | None = None,
    ) -> dict[str, Any]:
        """Move a window, or change its size; omitted values stay the same. Returns its new position and size."""
        windows = open_windows()
        match = find_window(windows, window)
        windows.set_geometry(match.id, x, y, width, height)
        return _now(windows, match)

    @acts
    def close_window(self, window: Any) -> bool:
        """Ask a window to close; returns False if it is still there, most likely with a question."""
        windows = open_windows()
        return windows.close(find_window(windows, window).id)

    @acts
    def launch(self, name: str, *args: str) -> dict[str, Any]:
        """Start an application by its name, such as "firefox" or "Text Editor", and wait for its window."""
        return _as_dict(open_windows().launch(find_application(name), [str(arg) for arg in args]))


def _as_dict(window: Window) -> dict[str, Any]:
    x, y, width, height = window.inner
    geometry: dict[str, int | None] = {"x": x, "y": y, "width": width, "height": height}
    if window.hidden:
        geometry |= {"x": None, "y": None}  # a click there would hit another window
    return {
        "id": window.id,
        "title": window.title,
        "application": window.application,
        **geometry,
        "active": window.active,
        "hidden": window.hidden,
        "pid": window.pid,
    }


def _now(windows: WindowManager, before: Window) -> dict[str, Any]:
    return _as_dict(next((window for window in windows.all() if window.id == before.id), before))


def find_window(windows: WindowManager, target: Any) -> Window:
    """Return the window that matches; WindowError lists the windows if there is not exactly one."""
    there = windows.all()
    if isinstance(target, dict):
        target = target.get("id")
    if isinstance(target, str):
        wanted = target.casefold()
        by_title = [window for window in there if wanted == window.title.casefold()]
        matching = by_title or [w for w in there if wanted in w.title.casefold() or wanted == w.application.casefold()]
    else:
        matching = [window for window in there if window.id == target]
    if len(matching) == 1:
        return matching[0]
    listed = "\n".join(f"id {window.id}: {window.title!r} of {window.application}" for window in matching or there)
    what = f"{len(matching)} windows are" if matching else "No window is"
    raise WindowError(f"{what} {target!r}. Open windows:\n{listed or '(none)'}")


# -- applications ------------------------------------------------------------------------------------------------------


def find_application(name: str) -> DesktopApplication:
    """Find an application by the name of its desktop entry, of the entry's file, or of its program."""
    wanted = name.strip().casefold()
    if sys.platform == "darwin":
        return DesktopApplication(name, ("open", "-a", name))
    installed = {spelling: application for application, spellings in _entries() for spelling in spellings}
    if wanted in installed:
        return installed[wanted]
    if program := which(name.strip()):
        return DesktopApplication(name, (program,))
    holding = [spelling for spelling in installed if wanted and wanted in spelling]
    if len({installed[spelling] for spelling in holding}) == 1:
        return installed[holding[0]]
    near = holding or difflib.get_close_matches(wanted, installed, 5, 0.5)
    names = dict.fromkeys(installed[spelling].name for spelling in near)
    raise NoApplication(f"No application is called {name!r}." + (f" Similar: {', '.join(names)}." if names else ""))


def names_of(application: DesktopApplication, called: str, workspace: str) -> tuple[str, ...]:
    """Return the names by which `os_apps` may allow an application: its names, and the path of its program.

    A path does not count as a name, unless the program's name also leads there. Programs in the workspace have no name,
    because code can put anything there.
    """
    if sys.platform == "darwin":  # `open` finds it, by name or path
        return (os.path.realpath(called) if "/" in called else called,)
    program = os.path.realpath(which(application.command[0]) or application.command[0])
    folder, bare = os.path.realpath(workspace), os.path.basename(application.command[0])
    is_in_workspace = folder != "/" and Path(program).is_relative_to(folder)
    if is_in_workspace or ("/" in called and os.path.realpath(which(bare) or "") != program):
        return (program,)
    return called.strip(), application.name, bare, program


def _entries() -> Iterator[tuple[DesktopApplication, list[str]]]:
    """Yield the desktop entries with the names by which each is known; the user's own first."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    files: dict[str, Path] = {}
    for folder in (home, *shared.split(":")):
        for file in sorted(Path(folder, "applications").glob("**/*.desktop")):
            if not is_exposed(str(file)):  # else its command would be that of code in a sandbox
                files.setdefault(file.name, file)
    for file in files.values():
        parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters=("=",))
        try:
            parser.read(file, encoding="utf-8")
            entry = parser["Desktop Entry"]
            # Placeholders for files to open are left out: %f, %U and the like.
            command = [word for word in shlex.split(entry["Exec"]) if not word.startswith("%")]
        except (configparser.Error, KeyError, ValueError, OSError):
            continue
        if entry.get("Hidden") == "true" or entry.get("Type") != "Application" or not command or not which(command[0]):
            continue
        if entry.get("Terminal") == "true":
            command = ["x-terminal-emulator", "-e", *command]
        names = [
            entry.get("Name", file.stem),
            file.stem,
            file.stem.rpartition(".")[2],
            Path(command[0]).name,
            *([entry["GenericName"]] if "GenericName" in entry else []),
        ]
        yield DesktopApplication(names[0], tuple(command)), [name.casefold() for name in dict.fromkeys(names)]


# -- notifications -----------------------------------------------------------------------------------------------------


def _runs(command: list[str]) -> bool:
    try:
        return run(command, timeout=_TIMEOUT).returncode == 0
    except OSError:
        return False


async def _notify(text: str) -> bool:
    """Ask the desktop's notification service over D-Bus."""
    from dbus_fast import BusType, Message, MessageType
    from dbus_fast.aio import MessageBus

    message = Message(
        destination="org.freedesktop.Notifications",
        path="/org/freedesktop/Notifications",
        interface="org.freedesktop.Notifications",
        member="Notify",
        signature="susssasa{sv}i",
        body=[_TITLE, 0, "", _TITLE, text, [], {}, -1],
    )
    bus = await MessageBus(bus_type=BusType.SESSION).connect()
    try:
        answer = await bus.call(message)
    finally:
        bus.disconnect()
    return answer is not None and answer.message_type == MessageType.METHOD_RETURN
