"""Windows of an X display, as the window manager tells and handles them."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from interpreter.computer_api.desktop.applications import Application
from interpreter.computer_api.desktop.windows import Window
from interpreter.computer_api.input.x11.connection import Connection
from interpreter.errors import ComputerError

_LIMIT = 5.0
_MOVE_LIMIT = 2.0
_START_LIMIT = 60.0
_HANDED_OVER = 3.0  # for a new window of a program that runs already; it may make a tab instead
_FROM_USER = 2
_FLAGS = {"x": 1 << 8, "y": 1 << 9, "width": 1 << 10, "height": 1 << 11}
_STATIC_GRAVITY = 10


class X11Windows:
    """Each question has a connection of its own, so that any thread may ask."""

    def all(self) -> list[Window]:
        with Connection() as x:
            return _all(x)

    def focus(self, window: int) -> bool:
        with Connection() as x:
            x.tell_window_manager(window, "_NET_ACTIVE_WINDOW", _FROM_USER)
            return x.wait(lambda: _active(x) == window, _LIMIT)

    def place(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None:
        given = {"x": x, "y": y, "width": width, "height": height}
        wanted = {name: value for name, value in given.items() if value is not None}
        flags = _FROM_USER << 12 | _STATIC_GRAVITY | sum(_FLAGS[name] for name in wanted)
        with Connection() as connection:
            before = _window(connection, window)
            values = [value or 0 for value in given.values()]
            connection.tell_window_manager(window, "_NET_MOVERESIZE_WINDOW", flags, *values)

            def there() -> bool:
                now = _window(connection, window)
                return now is None or all(getattr(now, name) == value for name, value in wanted.items())

            # A window manager may round a size to whole characters, or keep a window on the screen.
            if not connection.wait(there, _MOVE_LIMIT) and _window(connection, window) == before:
                raise ComputerError("The window manager left the window where it was.")

    def close(self, window: int) -> bool:
        with Connection() as x:
            x.tell_window_manager(window, "_NET_CLOSE_WINDOW", 0, _FROM_USER)
            return x.wait(lambda: window not in _clients(x), _LIMIT)

    def launch(self, application: Application, args: list[str]) -> Window:
        with Connection() as x:
            return _Launch(x, application, args).window()


class _Launch:
    """A program that has been started, and the window that comes of it."""

    def __init__(self, x: Connection, application: Application, args: list[str]) -> None:
        self._x, self._application = x, application
        self._before, self._front = set(_clients(x)), _active(x)
        self._runs_already = any(_is_of(window, application) for window in _all(x))
        self._process = subprocess.Popen(
            [*application.command, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=os.path.expanduser("~"),
        )

    def window(self) -> Window:
        """The window, when it is there; an error in words if none comes."""
        from interpreter.computer_api.desktop.applications import leave

        x, name = self._x, self._application.name
        exits = os.pidfd_open(self._process.pid)
        try:
            x.wait(lambda: bool(self._shown()) or self._is_over(), _START_LIMIT, exits)
        finally:
            os.close(exits)
        ended = self._process.poll()
        if ended == 0 and self._runs_already:
            x.wait(lambda: bool(self._shown()), _HANDED_OVER)
        leave(self._process)
        found = self._shown() or (self._the_running_one() if ended == 0 else 0)
        window = _window(x, found) if found else None
        if window is None and ended:
            raise ComputerError(f"{name} ended at once with {ended}. Start it in the shell to see why.")
        if window is None:
            raise ComputerError(f"{name} was started, but has shown no window in {_START_LIMIT:g} seconds.")
        x.wait(lambda: _active(x) == window.id, _LIMIT)
        return _window(x, window.id) or window

    def _shown(self) -> int:
        """A new window; or one that came to the front, of a program that runs already."""
        new = [window for window in _clients(self._x) if window not in self._before]
        if new:
            return new[-1]
        active = _active(self._x)
        return active if self._process.poll() is not None and active != self._front else 0

    def _is_over(self) -> bool:
        """Whether nothing is to be waited for: it failed, or left it to one that runs already."""
        ended = self._process.poll()
        return bool(ended) or (ended == 0 and self._runs_already)

    def _the_running_one(self) -> int:
        """The window of the one that runs already and shows what was asked for in a tab; the one in front first."""
        own = [window for window in _all(self._x) if _is_of(window, self._application)]
        return next((window.id for window in own if window.active), own[-1].id if own else 0)


def _is_of(window: Window, application: Application) -> bool:
    """Whether a window is, as far as its class tells, one of an application."""
    kind = window.application.casefold()
    names = (application.name.casefold(), os.path.basename(application.command[0]).casefold())
    return len(kind) > 2 and any(kind in name or name in kind for name in names if len(name) > 2)


def _clients(x: Connection) -> list[int]:
    return x.numbers(x.root, "_NET_CLIENT_LIST")


def _active(x: Connection) -> int:
    return next(iter(x.numbers(x.root, "_NET_ACTIVE_WINDOW")), 0)


def _all(x: Connection) -> list[Window]:
    found = (_window(x, client) for client in _clients(x))
    return [window for window in found if window is not None]


def _window(x: Connection, number: int) -> Window | None:
    """What is known of a window; None if it has gone meanwhile."""
    from Xlib.error import XError

    window = x.window(number)
    try:
        size, place = window.get_geometry(), x.root.translate_coords(window, 0, 0)
    except XError:
        return None
    title = _text(x, window, "_NET_WM_NAME") or _text(x, window, "WM_NAME")
    kind = _text(x, window, "WM_CLASS").rstrip("\0").rpartition("\0")[2]
    hidden = x.atom("_NET_WM_STATE_HIDDEN") in x.numbers(window, "_NET_WM_STATE")
    pid = next(iter(x.numbers(window, "_NET_WM_PID")), None)
    return Window(number, title, kind, place.x, place.y, size.width, size.height, _active(x) == number, hidden, pid)


def _text(x: Connection, window: Any, name: str) -> str:
    found = x.property(window, name)
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found or "")
