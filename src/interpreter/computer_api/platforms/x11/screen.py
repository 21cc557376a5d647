"""The screen and the windows of X11: pixels through mss, windows and monitors through the window manager and RandR."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from Xlib import X
from Xlib.error import ConnectionClosedError, XError
from Xlib.ext import damage, shape

from interpreter.computer_api.platforms import Application, Box, ControlFrame, Monitor, NoDisplayError, Screen, Window
from interpreter.computer_api.platforms.portable import CapturedScreen
from interpreter.computer_api.platforms.x11 import Connection, close
from interpreter.errors import ComputerError
from interpreter.host import processes

if TYPE_CHECKING:
    from PIL.Image import Image

# How often a window is asked for its parent before it counts as one without.
_DEPTH = 10
_LIMIT = 5.0
_MOVE_LIMIT = 2.0
_START_LIMIT = 60.0
_HANDED_OVER = 3.0  # for a new window of a program that runs already; it may make a tab instead
_FROM_USER = 2
_FLAGS = (1 << 8, 1 << 9, 1 << 10, 1 << 11)  # x, y, width and height are given
_STATIC_GRAVITY = 10
_CONTROL_COLOR = 0xE0245E
_CONTROL_WIDTH = 3  # pixels


class X11Screen(Screen):
    """An X display, with one connection for requests and one for pixels."""

    def __init__(self) -> None:
        self.closed = False
        self._lock = threading.RLock()
        self._x = Connection()
        # The connection closes with the last user of this screen.
        weakref.finalize(self, close, self._x.display)
        self._capture = CapturedScreen(self._x.name)

    def monitors(self) -> list[Monitor]:
        with self._requests() as x:
            found = x.root.xrandr_get_monitors(True).monitors if x.display.has_extension("RANDR") else []
            monitors = [
                Monitor(
                    x.atom_name(each.name),
                    Box(each.x, each.y, each.width_in_pixels, each.height_in_pixels),
                    bool(each.primary),
                )
                for each in found
            ]
            return sorted(monitors, key=lambda monitor: not monitor.primary) or [Monitor("screen", self._whole(), True)]

    def _whole(self) -> Box:
        size = self._x.root.get_geometry()
        return Box(0, 0, size.width, size.height)

    def windows(self) -> list[Window]:
        with self._requests() as x:
            numbers = x.numbers(x.root, "_NET_CLIENT_LIST_STACKING") or x.numbers(x.root, "_NET_CLIENT_LIST")
            clients = {self._frame(client).id: client for client in map(x.window, numbers)}
            found = []
            for top in reversed(x.root.query_tree().children):
                try:
                    window = self._visible(top, clients.get(top.id))
                except XError:  # it has gone meanwhile
                    continue
                if window is not None:
                    found.append(window)
            return found

    def active_window(self) -> Window | None:
        with self._requests() as x:
            active = x.active_window() or getattr(x.display.get_input_focus().focus, "id", 0)
            if not active or active == x.root.id:
                return None
            wanted = (active, self._frame(x.window(active)).id)
            return next((each for each in self.windows() if each.id in wanted), None)

    def grab(self, box: Box) -> Image:
        try:
            return self._capture.grab(box)
        except NoDisplayError:
            self.closed = True
            raise

    def watch(self) -> Damage | None:
        return Damage() if self._x.display.has_extension("DAMAGE") else None

    def _frame(self, window: Any) -> Any:
        """The child of the root that the window is in: its frame, or the window itself."""
        with contextlib.suppress(XError):
            for _ in range(_DEPTH):
                parent = window.query_tree().parent
                if not parent or parent.id == self._x.root.id:
                    break
                window = parent
        return window

    def _visible(self, top: Any, client: Any) -> Window | None:
        """A child of the root, if it can be seen; `client` is the window in it, if the window manager knows one."""
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
        # One that clicks pass through covers nothing, and is no menu.
        has_shape = self._x.display.has_extension("SHAPE")
        return window if not has_shape or top.shape_get_rectangles(shape.SK.Input).rectangles else None

    @contextlib.contextmanager
    def _requests(self) -> Iterator[Connection]:
        """The connection for one caller at a time; NoDisplayError if the display has gone."""
        with self._lock:
            try:
                yield self._x
            except KeyboardInterrupt:
                self.closed = True
                raise
            except (ConnectionClosedError, ConnectionError) as error:
                self.closed = True
                raise NoDisplayError(f"The display {self._x.name} does not answer any more: {error}") from error


class Damage:
    """What changes on an X display, as the server reports it."""

    def __init__(self) -> None:
        self._x = Connection()
        display = self._x.display
        display.damage_query_version()
        self._x.root.damage_create(damage.DamageReportRawRectangles)
        display.sync()
        self._event = display.extension_event.DamageNotify
        self.close = self._x.close

    def wait(self, seconds: float) -> list[Box]:
        found = []
        for event in self._x.events(seconds):
            if event.type == self._event:
                found.append(Box(event.area.x, event.area.y, event.area.width, event.area.height))
            if found and not self._x.display.pending_events():
                break
        return found


class X11Windows:
    """The windows that the window manager handles; each request has its own connection, so any thread may ask."""

    def all(self) -> list[Window]:
        with Connection() as x:
            return _all(x)

    def focus(self, window: int) -> bool:
        with Connection() as x:
            x.tell_window_manager(window, "_NET_ACTIVE_WINDOW", _FROM_USER)
            return x.wait(lambda: x.active_window() == window, _LIMIT)

    def place(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None:
        given = (x, y, width, height)
        flags = sum(flag for flag, value in zip(_FLAGS, given, strict=True) if value is not None)
        with Connection() as connection:
            before = _window(connection, window)
            values = [_FROM_USER << 12 | _STATIC_GRAVITY | flags, *(value or 0 for value in given)]
            connection.tell_window_manager(window, "_NET_MOVERESIZE_WINDOW", *values)

            def there() -> bool:
                now = _window(connection, window)
                return now is None or all(
                    wanted in (None, value) for wanted, value in zip(given, now.inner, strict=True)
                )

            # A window manager may round a size to whole characters, or keep a window on the screen.
            if not connection.wait(there, _MOVE_LIMIT) and _window(connection, window) == before:
                raise ComputerError("The window manager left the window where it was.")

    def close(self, window: int) -> bool:
        with Connection() as x:
            x.tell_window_manager(window, "_NET_CLOSE_WINDOW", 0, _FROM_USER)
            return x.wait(lambda: window not in _clients(x), _LIMIT)

    def launch(self, application: Application, args: list[str]) -> Window:
        with Connection() as x:
            before, front = set(_clients(x)), x.active_window()
            runs_already = bool(_windows_of(x, application))
            process = processes.start([*application.command, *args], cwd=os.path.expanduser("~"))

            def shown() -> int:
                """A new window; or one that came to the front, of a program that runs already."""
                new = [window for window in _clients(x) if window not in before]
                if new:
                    return new[-1]
                active = x.active_window()
                return active if process.poll() is not None and active != front else 0

            def is_over() -> bool:
                """Whether there is nothing to wait for: it failed, or handed over to one that runs already."""
                ended = process.poll()
                return bool(ended) or (ended == 0 and runs_already)

            exits = os.pidfd_open(process.pid)
            try:
                x.wait(lambda: bool(shown()) or is_over(), _START_LIMIT, exits)
            finally:
                os.close(exits)
            ended = process.poll()
            if ended == 0 and runs_already:
                x.wait(lambda: bool(shown()), _HANDED_OVER)
            # The program stays; a thread waits for its end, so that it leaves no zombie.
            threading.Thread(target=process.wait, daemon=True, name=f"end of {process.pid}").start()
            window = _window(x, shown())
            if window is None and ended == 0:  # the one that runs already opened a tab; the one in front first
                own = _windows_of(x, application)
                window = next((each for each in own if each.active), own[-1] if own else None)
            if window is None and ended:
                raise ComputerError(f"{application.name} ended at once with {ended}. Start it in the shell to see why.")
            if window is None:
                raise ComputerError(
                    f"{application.name} was started, but has shown no window in {_START_LIMIT:g} seconds."
                )
            number = window.id
            x.wait(lambda: x.active_window() == number, _LIMIT)
            return _window(x, number) or window


def _windows_of(x: Connection, application: Application) -> list[Window]:
    """The windows whose class is, as far as one can tell, that of the application."""
    command = os.path.basename(application.command[0])
    names = [name.casefold() for name in (application.name, command) if len(name) > 2]
    found = []
    for window in _all(x):
        kind = window.application.casefold()
        if len(kind) > 2 and any(kind in name or name in kind for name in names):
            found.append(window)
    return found


def _clients(x: Connection) -> list[int]:
    return x.numbers(x.root, "_NET_CLIENT_LIST")


def _all(x: Connection) -> list[Window]:
    found = (_window(x, client) for client in _clients(x))
    return [window for window in found if window is not None]


def _window(x: Connection, number: int) -> Window | None:
    """What is known of a window; None if it has gone meanwhile."""
    try:
        return x.describe(x.window(number))
    except XError:
        return None


class X11ControlFrame(ControlFrame):
    """Four narrow windows at the edges of the screen; clicks pass through them."""

    def __init__(self) -> None:
        self._x: Connection | None = None
        self._windows: list[Any] = []

    def show(self) -> bool:
        try:
            x = self._x = self._x or Connection()
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
        x, windows = self._x, self._windows
        self._x, self._windows = None, []
        if x is not None:
            with contextlib.suppress(ConnectionClosedError, OSError):  # the display may be gone
                for window in windows:
                    window.destroy()
                x.display.sync()
            x.close()
