"""The screen under X11: pixels through mss, windows and monitors as window managers and RandR tell them."""

from __future__ import annotations

import contextlib
import re
import select
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.failures import NoDisplayError, needed
from interpreter.computer_api.display.grabbing import Grabber
from interpreter.computer_api.display.screens import Monitor, Window

if TYPE_CHECKING:
    from PIL.Image import Image

SEEING = "Seeing the screen"
# How often a window is asked for its parent before it counts as one without.
_DEPTH = 10
WHOLE = 1 << 14
"""So many words of a property are asked for at once: between two questions it may have become shorter."""


class X11:
    """An X display, with one connection for questions and one for pixels."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False
        self._lock = threading.RLock()
        self._x = connect(name)
        self._root = self._x.screen().root
        # With the last one who sees through it, the connection goes.
        weakref.finalize(self, _close, self._x)
        self._grabber = Grabber(name)

    def monitors(self) -> list[Monitor]:
        with self._asking():
            if not self._x.has_extension("RANDR"):
                return [self._whole()]
            found = self._root.xrandr_get_monitors(True).monitors
            monitors = [
                Monitor(
                    self._x.get_atom_name(each.name),
                    Box(each.x, each.y, each.width_in_pixels, each.height_in_pixels),
                    bool(each.primary),
                )
                for each in found
            ]
            return sorted(monitors, key=lambda monitor: not monitor.primary) or [self._whole()]

    def _whole(self) -> Monitor:
        size = self._root.get_geometry()
        return Monitor("screen", Box(0, 0, size.width, size.height), True)

    def windows(self) -> list[Window]:
        from Xlib.error import XError

        with self._asking():
            clients = {self._top(client).id: client for client in self._clients()}
            found = []
            for top in reversed(self._root.query_tree().children):
                try:
                    window = self._window(top, clients.get(top.id))
                except XError:  # it has gone meanwhile
                    continue
                if window is not None:
                    found.append(window)
            return found

    def active_window(self) -> Window | None:
        with self._asking():
            active = next(iter(self._property(self._root, "_NET_ACTIVE_WINDOW") or ()), 0)
            if not active:
                focus = self._x.get_input_focus().focus
                active = getattr(focus, "id", 0)
            if not active or active == self._root.id:
                return None
            top = self._top(self._x.create_resource_object("window", active)).id
            return next((each for each in self.windows() if each.id == active or each.id == top), None)

    def grab(self, box: Box) -> Image:
        try:
            return self._grabber.grab(box)
        except NoDisplayError:
            self.closed = True
            raise

    def watch(self) -> Damage | None:
        if not self._x.has_extension("DAMAGE"):
            return None
        return Damage(self.name)

    # -- windows -------------------------------------------------------------------------------------------------

    def _clients(self) -> list[Any]:
        ids = self._property(self._root, "_NET_CLIENT_LIST_STACKING") or self._property(self._root, "_NET_CLIENT_LIST")
        return [self._x.create_resource_object("window", each) for each in ids or ()]

    def _top(self, window: Any) -> Any:
        """The child of the root that the window is in: its frame, or the window itself."""
        from Xlib.error import XError

        try:
            for _ in range(_DEPTH):
                parent = window.query_tree().parent
                if not parent or parent.id == self._root.id:
                    break
                window = parent
        except XError:
            pass
        return window

    def _window(self, top: Any, client: Any) -> Window | None:
        from Xlib import X

        looks = top.get_attributes()
        if looks.map_state != X.IsViewable or looks.win_class != X.InputOutput:
            return None
        box = self._box(top)
        inner = client or top
        if client is not None and client.get_attributes().map_state != X.IsViewable:
            return None
        if client is None and not (
            looks.override_redirect or self._text(top, "WM_NAME") or self._text(top, "WM_CLASS")
        ):
            return None
        if not box.meets(self._whole().box) or (client is None and self._is_passed_through(top)):
            return None
        popup = client is None and bool(looks.override_redirect)
        pid = next(iter(self._property(inner, "_NET_WM_PID") or ()), None)
        title = self._text(inner, "_NET_WM_NAME") or self._text(inner, "WM_NAME")
        kind = self._text(inner, "WM_CLASS").rstrip("\0").rpartition("\0")[2]
        return Window(inner.id, title, box, self._box(inner), pid, popup, kind)

    def _is_passed_through(self, window: Any) -> bool:
        """Whether no click ever hits it: such a window covers nothing, and is no menu."""
        if not self._x.has_extension("SHAPE"):
            return False
        from Xlib.ext import shape

        return not window.shape_get_rectangles(shape.SK.Input).rectangles

    def _box(self, window: Any) -> Box:
        size = window.get_geometry()
        place = self._root.translate_coords(window, 0, 0)
        edge = size.border_width
        return Box(place.x - edge, place.y - edge, size.width + 2 * edge, size.height + 2 * edge)

    def _property(self, window: Any, name: str) -> list[int] | None:
        found = window.get_full_property(self._x.intern_atom(name), 0, WHOLE)
        return None if found is None or found.format != 32 else list(found.value)

    def _text(self, window: Any, name: str) -> str:
        found = window.get_full_property(self._x.intern_atom(name), 0, WHOLE)
        if found is None or found.format != 8:
            return ""
        raw = found.value if isinstance(found.value, bytes) else str(found.value).encode()
        return raw.decode("utf-8", "replace")

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """One question at a time; a display that has gone is told in words."""
        from Xlib.error import ConnectionClosedError

        with self._lock:
            try:
                yield
            except KeyboardInterrupt:
                self.closed = True
                raise
            except (ConnectionClosedError, ConnectionError) as error:
                self.closed = True
                raise NoDisplayError(f"The display {self.name} does not answer any more: {error}") from error


class Damage:
    """What changes on an X display, as the server reports it."""

    def __init__(self, name: str) -> None:
        from Xlib.ext import damage

        self._x = connect(name)
        self._x.damage_query_version()
        self._root = self._x.screen().root
        self._damage = self._root.damage_create(damage.DamageReportRawRectangles)
        self._x.sync()
        self._event = self._x.extension_event.DamageNotify

    def wait(self, seconds: float) -> list[Box]:
        end = time.monotonic() + seconds
        while True:
            if found := self._pending():
                return found
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._x.fileno()], [], [], left)[0]:
                return []

    def _pending(self) -> list[Box]:
        found = []
        while self._x.pending_events():
            event = self._x.next_event()
            if event.type == self._event:
                found.append(Box(event.area.x, event.area.y, event.area.width, event.area.height))
        return found

    def close(self) -> None:
        self._x.close()


def _close(x: Any) -> None:
    from Xlib.error import ConnectionClosedError

    try:
        x.close()
    except (ConnectionClosedError, OSError):
        pass  # the server was gone already


def connect(name: str) -> Any:
    """A connection to an X display."""
    display = needed("Xlib.display", SEEING)
    errors = needed("Xlib.error", SEEING)
    local = re.fullmatch(r"(?:unix)?:(\d+)(?:\.\d+)?", name)
    try:
        if local and not Path(f"/tmp/.X11-unix/X{local[1]}").exists():
            raise FileNotFoundError("nothing listens there")
        made = display.Display(name)
    except (errors.DisplayError, errors.ConnectionClosedError, OSError) as error:
        raise NoDisplayError(
            f"The display {name} cannot be opened ({error}). Check DISPLAY and XAUTHORITY, or start one: "
            f"`Xvfb {name} -screen 0 1280x800x24 &`."
        ) from error
    # python-xlib files the errors of RandR under numbers that core errors have, and then cannot read those.
    made.display.error_classes.update({1: errors.BadRequest, 2: errors.BadValue})
    _end_when_interrupted(made.display)
    return made


def _end_when_interrupted(protocol: Any) -> None:
    """An interrupt amid an exchange leaves it in pieces, and who asks next waits for ever: end it instead."""
    exchange = protocol.send_and_recv

    def send_and_recv(*args: Any, **kwargs: Any) -> None:
        try:
            exchange(*args, **kwargs)
        except KeyboardInterrupt:
            protocol.close_internal("interrupted")
            raise

    protocol.send_and_recv = send_and_recv
