"""The screen and the windows of X11: pixels through mss, windows and monitors through the window manager and RandR."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from Xlib import X
from Xlib.error import ConnectionClosedError, XError
from Xlib.ext import damage, res, shape

from interpreter.computer_api.screen.platforms import (
    Box,
    ControlFrame,
    DesktopApplication,
    Monitor,
    NoDisplayError,
    Window,
)
from interpreter.computer_api.screen.platforms.portable import CapturedScreen
from interpreter.computer_api.screen.platforms.x11 import X11Connection
from interpreter.errors import ComputerError
from interpreter.host import processes

# How often a window is asked for its parent before it counts as one without.
_MAX_DEPTH = 10
_TIMEOUT = 5.0
_MOVE_TIMEOUT = 2.0
_START_TIMEOUT = 60.0
_IDLE_TIMEOUT = 1.5  # seconds without work and without a connection to the display: it has no window to show
_NEW_WINDOW_TIMEOUT = 3.0  # for a new window of a program that runs already; it may make a tab instead
_FROM_USER = 2
_FLAGS = (1 << 8, 1 << 9, 1 << 10, 1 << 11)  # x, y, width and height are given
_STATIC_GRAVITY = 10
_CONTROL_COLOR = 0xE0245E
_CONTROL_WIDTH = 3  # pixels


class X11Screen(CapturedScreen):
    """An X display, with one connection for requests and one for pixels."""

    def __init__(self) -> None:
        self._x = X11Connection()
        # The connection closes with the last user of this screen.
        weakref.finalize(self, self._x.close)
        super().__init__(self._x.name)

    def monitors(self) -> list[Monitor]:
        with self._requests() as x:
            outputs = x.root.xrandr_get_monitors(True).monitors if x.display.has_extension("RANDR") else []
            monitors = [
                Monitor(
                    x.atom_name(each.name),
                    Box(each.x, each.y, each.width_in_pixels, each.height_in_pixels),
                    bool(each.primary),
                )
                for each in outputs
            ]
            return sorted(monitors, key=lambda monitor: not monitor.primary) or [Monitor("screen", self._whole(), True)]

    def _whole(self) -> Box:
        size = self._x.root.get_geometry()
        return Box(0, 0, size.width, size.height)

    def windows(self) -> list[Window]:
        with self._requests() as x:
            numbers = x.numbers(x.root, "_NET_CLIENT_LIST_STACKING") or x.numbers(x.root, "_NET_CLIENT_LIST")
            clients = {self._frame(client).id: client for client in map(x.window, numbers)}
            visible_windows = []
            for top in reversed(x.root.query_tree().children):
                try:
                    window = self._visible(top, clients.get(top.id))
                except XError:  # it has gone in the meantime
                    continue
                if window is not None:
                    visible_windows.append(window)
            return visible_windows

    def active_window(self) -> Window | None:
        with self._requests() as x:
            active = x.active_window() or getattr(x.display.get_input_focus().focus, "id", 0)
            if not active or active == x.root.id:
                return None
            wanted = (active, self._frame(x.window(active)).id)
            return next((each for each in self.windows() if each.id in wanted), None)

    def watch(self) -> contextlib.AbstractContextManager[Callable[[float], list[Box]]] | None:
        return _watch() if self._x.display.has_extension("DAMAGE") else None

    def _frame(self, window: Any) -> Any:
        """Return the child of the root that the window is in: its frame, or the window itself."""
        with contextlib.suppress(XError):
            for _ in range(_MAX_DEPTH):
                parent = window.query_tree().parent
                if not parent or parent.id == self._x.root.id:
                    break
                window = parent
        return window

    def _visible(self, top: Any, client: Any) -> Window | None:
        """Describe a child of the root if it is visible; `client` is its window that the window manager handles."""
        attributes = top.get_attributes()
        if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
            return None
        popup = client is None and bool(attributes.override_redirect)
        window = self._x.describe(client or top, top, popup)
        if not window.box.overlaps(self._whole()):
            return None
        if client is not None:
            return window if client.get_attributes().map_state == X.IsViewable else None
        if not (popup or window.title or self._x.text(top, "WM_CLASS")):
            return None
        # A window that clicks pass through covers nothing, and is not a menu.
        has_shape = self._x.display.has_extension("SHAPE")
        return window if not has_shape or top.shape_get_rectangles(shape.SK.Input).rectangles else None

    @contextlib.contextmanager
    def _requests(self) -> Iterator[X11Connection]:
        """Give the connection to one caller at a time; NoDisplayError if the display has gone."""
        with self._lock:
            try:
                yield self._x
            except (ConnectionClosedError, ConnectionError) as error:
                raise NoDisplayError(f"The display {self._x.name} no longer answers: {error}") from error
            finally:
                self.closed = self.closed or self._x.is_lost


@contextlib.contextmanager
def _watch() -> Iterator[Callable[[float], list[Box]]]:
    """Have the server report what changes on the display, over a separate connection."""
    with X11Connection() as x:
        x.display.damage_query_version()
        x.root.damage_create(damage.DamageReportRawRectangles)
        x.display.sync()

        def wait(seconds: float) -> list[Box]:
            boxes = []
            for event in x.events(seconds):
                if event.type == x.display.extension_event.DamageNotify:
                    boxes.append(Box(event.area.x, event.area.y, event.area.width, event.area.height))
                if boxes and not x.display.pending_events():
                    break
            return boxes

        yield wait


class X11Windows:
    """The windows that the window manager handles; each request has its own connection, so any thread may ask."""

    def all(self) -> list[Window]:
        with X11Connection() as x:
            return _all(x)

    def focus(self, window: int) -> bool:
        with X11Connection() as x:
            x.tell_window_manager(window, "_NET_ACTIVE_WINDOW", _FROM_USER)
            return x.wait(lambda: x.active_window() == window, _TIMEOUT)

    def set_geometry(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None:
        given = (x, y, width, height)
        flags = sum(flag for flag, value in zip(_FLAGS, given, strict=True) if value is not None)
        with X11Connection() as connection:
            before = _window(connection, window)
            values = [_FROM_USER << 12 | _STATIC_GRAVITY | flags, *(value or 0 for value in given)]
            connection.tell_window_manager(window, "_NET_MOVERESIZE_WINDOW", *values)

            def there() -> bool:
                now = _window(connection, window)
                return now is None or all(
                    wanted in (None, value) for wanted, value in zip(given, now.inner, strict=True)
                )

            # A window manager may round a size to whole characters, or keep a window on the screen.
            if not connection.wait(there, _MOVE_TIMEOUT) and _window(connection, window) == before:
                raise ComputerError("The window manager left the window where it was.")

    def close(self, window: int) -> bool:
        with X11Connection() as x:
            x.tell_window_manager(window, "_NET_CLOSE_WINDOW", 0, _FROM_USER)
            return x.wait(lambda: window not in _clients(x), _TIMEOUT)

    def launch(self, application: DesktopApplication, args: list[str]) -> Window:
        with X11Connection() as x:
            before, front = set(_clients(x)), x.active_window()
            connected, worked, end = _connected(x), -1, time.monotonic() + _START_TIMEOUT
            runs_already = bool(_windows_of(x, application))
            process = processes.start([*application.command, *args], cwd=os.path.expanduser("~"))

            def shown() -> int:
                """Return a new window; or one that came to the front, of a program that runs already."""
                new = [window for window in _clients(x) if window not in before]
                if new:
                    return new[-1]
                active = x.active_window()
                return active if process.poll() is not None and active != front else 0

            def is_over() -> bool:
                """Return whether waiting is pointless: it failed, or handed over to a process that runs already."""
                ended = process.poll()
                return bool(ended) or (ended == 0 and runs_already)

            exits = os.pidfd_open(process.pid)
            try:
                while not x.wait(lambda: bool(shown()) or is_over(), _IDLE_TIMEOUT, exits) and time.monotonic() < end:
                    before_that, worked = worked, _work_of(process.pid)
                    if connected is not None and worked == before_that and not (_connected(x) or set()) - connected:
                        break
            finally:
                os.close(exits)
            ended = process.poll()
            if ended == 0 and runs_already:
                x.wait(lambda: bool(shown()), _NEW_WINDOW_TIMEOUT)
            # The program stays; a thread waits for its end, so that it leaves no zombie.
            threading.Thread(target=process.wait, daemon=True, name=f"end of {process.pid}").start()
            window = _window(x, shown())
            if window is None and ended == 0:  # the one that runs already opened a tab; the one in front first
                own = _windows_of(x, application)
                window = next((each for each in own if each.active), own[-1] if own else None)
            if window is None and ended:
                raise ComputerError(
                    f"{application.name} exited immediately with {ended}. Start it in the shell to see why."
                )
            if window is None:
                now = "has ended" if ended == 0 else "is still running"
                raise ComputerError(
                    f"{application.name} started but hasn't opened a window. It {now}. Run programs without windows in "
                    "the shell. computer.os.windows() shows whether one has opened since."
                )
            number = window.id
            x.wait(lambda: x.active_window() == number, _TIMEOUT)
            return _window(x, number) or window


def _connected(x: X11Connection) -> set[int] | None:
    """Return the processes that are connected to the display; None if the server does not say."""
    if not x.display.has_extension("X-Resource"):
        return None
    x.display.res_query_version()
    asked = x.display.res_query_client_ids([{"client": 0, "mask": res.LocalClientPIDMask}])
    return {int(number) for each in asked.ids for number in each.value}


def _work_of(session: int) -> int:
    """Return how much the processes of a session have computed so far; waiting for a disk counts as work."""
    work = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            state, _, _, number, *rest = file.read_text().rpartition(")")[2].split()
            if int(number) == session:
                work += int(rest[7]) + int(rest[8]) + (time.monotonic_ns() if state == "D" else 0)
    return work


def _windows_of(x: X11Connection, application: DesktopApplication) -> list[Window]:
    """Return the windows whose class is probably that of the application."""
    command = os.path.basename(application.command[0])
    names = [name.casefold() for name in (application.name, command) if len(name) > 2]
    windows = []
    for window in _all(x):
        kind = window.application.casefold()
        if len(kind) > 2 and any(kind in name or name in kind for name in names):
            windows.append(window)
    return windows


def _clients(x: X11Connection) -> list[int]:
    return x.numbers(x.root, "_NET_CLIENT_LIST")


def _all(x: X11Connection) -> list[Window]:
    described = (_window(x, client) for client in _clients(x))
    return [window for window in described if window is not None]


def _window(x: X11Connection, number: int) -> Window | None:
    """Describe a window; None if it has gone in the meantime."""
    try:
        return x.describe(x.window(number))
    except XError:
        return None


class X11ControlFrame(ControlFrame):
    """Four narrow windows at the edges of the screen; clicks pass through them."""

    def __init__(self) -> None:
        self._x: X11Connection | None = None
        self._windows: list[Any] = []

    def show(self) -> bool:
        try:
            x = self._x = self._x or X11Connection()
            size, width = x.root.get_geometry(), _CONTROL_WIDTH
            edges = (
                (0, 0, size.width, width),
                (0, size.height - width, size.width, width),
                (0, width, width, size.height - 2 * width),
                (size.width - width, width, width, size.height - 2 * width),
            )
            for edge in edges if not self._windows else ():
                window = x.root.create_window(*edge, 0, 0, override_redirect=True, background_pixel=_CONTROL_COLOR)
                window.set_wm_name("Open Interpreter is in control")
                window.shape_rectangles(shape.SO.Set, shape.SK.Input, 0, 0, 0, [])
                window.map()
                self._windows.append(window)
            for window in self._windows:
                window.configure(stack_mode=X.Above)
            x.display.sync()
        except (ComputerError, XError, ConnectionClosedError, OSError, AttributeError):  # no display, or no SHAPE
            self.hide()
            return False
        return True

    def hide(self) -> None:
        if self._x is not None:
            self._x.close()  # its windows go with it
        self._x = None
        self._windows = []
