"""Windows of an X display, as the window manager tells and handles them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

from interpreter.computer_api.desktop.applications import Application
from interpreter.computer_api.desktop.windows import Window
from interpreter.computer_api.input.x11.connection import Connection
from interpreter.errors import ComputerError

_LIMIT = 5.0
_MOVE_LIMIT = 2.0
_START_LIMIT = 60.0
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
            before, front = set(_clients(x)), _active(x)
            process = subprocess.Popen(
                [*application.command, *args],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd=os.path.expanduser("~"),
            )
            found = 0

            def shown() -> bool:
                nonlocal found
                new = [window for window in _clients(x) if window not in before]
                # A program that runs already may come to the front instead.
                found = new[-1] if new else _active(x) if process.poll() is not None and _active(x) != front else 0
                return bool(found) or process.poll() not in (None, 0)

            return self._launched(x, application, process, shown, lambda: found)

    def _launched(
        self,
        x: Connection,
        application: Application,
        process: subprocess.Popen[bytes],
        shown: Callable[[], bool],
        found: Callable[[], int],
    ) -> Window:
        from interpreter.computer_api.desktop.applications import leave

        exits = os.pidfd_open(process.pid)
        try:
            x.wait(shown, _START_LIMIT, exits)
        finally:
            os.close(exits)
        ended = process.poll()
        leave(process)
        window = _window(x, found()) if found() else None
        if window is None and ended:
            raise ComputerError(f"{application.name} ended at once with {ended}. Start it in the shell to see why.")
        if window is None:
            raise ComputerError(f"{application.name} was started, but has shown no window in {_START_LIMIT:g} seconds.")
        x.wait(lambda: _active(x) == window.id, _LIMIT)
        return _window(x, window.id) or window


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
