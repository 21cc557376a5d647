"""X11: a connection to the X server, which the screen, the windows, the input device and the clipboard share."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from Xlib import X
from Xlib.display import Display
from Xlib.error import BadRequest, BadValue, ConnectionClosedError, DisplayError, XError
from Xlib.protocol.event import ClientMessage

from interpreter.computer_api.screen.platforms import Box, NoDisplayError, Window

# A property is requested at once, in units of 32 bits: between two requests it could become shorter.
_WHOLE_PROPERTY = 1 << 14


class X11Connection(AbstractContextManager["X11Connection"]):
    """One client of the X server; used by one thread at a time."""

    def __init__(self) -> None:
        self.name = os.environ.get("DISPLAY", "")
        local = re.fullmatch(r"(?:unix)?:(\d+)(?:\.\d+)?", self.name)
        try:
            if local and not Path(f"/tmp/.X11-unix/X{local[1]}").exists():
                raise FileNotFoundError("nothing is listening there")
            self.display: Any = Display(self.name)
        except (DisplayError, ConnectionClosedError, OSError) as error:
            raise NoDisplayError(
                f"Can't open the display {self.name} ({error}). Check DISPLAY and XAUTHORITY, or start one: "
                f"`Xvfb {self.name} -screen 0 1280x800x24 &`."
            ) from error
        # Errors would be printed; their effect is checked instead.
        self.display.set_error_handler(lambda error, request: None)
        self.root = self.display.screen().root
        protocol = self.display.display
        # python-xlib registers RandR's errors under the numbers of core errors, and then can't read those.
        protocol.error_classes.update({1: BadRequest, 2: BadValue})
        exchange = protocol.send_and_recv

        def send_and_recv(*args: Any, **kwargs: Any) -> None:
            """End the connection if an interrupt cuts an exchange short: the next caller would wait forever."""
            try:
                exchange(*args, **kwargs)
            except KeyboardInterrupt:
                protocol.close_internal("interrupted")
                raise

        protocol.send_and_recv = send_and_recv

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with suppress(ConnectionClosedError, OSError):  # the server may have gone first
            self.display.close()

    @property
    def is_lost(self) -> bool:
        """Return whether the connection broke: the server ended, or an exchange was interrupted."""
        return self.display.display.socket_error is not None

    def atom(self, name: str) -> int:
        return int(self.display.intern_atom(name))

    def atom_name(self, atom: int) -> str:
        return str(self.display.get_atom_name(atom))

    # -- windows ---------------------------------------------------------------------------------------------------

    def window(self, number: int) -> Any:
        return self.display.create_resource_object("window", number)

    def property(self, window: Any, name: str) -> Any:
        """Return the value of a window's property; None where it has none, or the window is gone."""
        try:
            value = window.get_full_property(self.atom(name), 0, _WHOLE_PROPERTY)
        except XError:
            return None
        return None if value is None else value.value

    def numbers(self, window: Any, name: str) -> list[int]:
        value = self.property(window, name)
        return [] if value is None or isinstance(value, bytes | str) else [int(number) for number in value]

    def text(self, window: Any, name: str) -> str:
        value = self.property(window, name)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value if isinstance(value, str) else ""

    def active_window(self) -> int:
        """Return the window in front, 0 if there is none."""
        return next(iter(self.numbers(self.root, "_NET_ACTIVE_WINDOW")), 0)

    def describe(self, window: Any, frame: Any = None, popup: bool = False) -> Window:
        """Describe a window and its frame; XError if it has gone in the meantime."""
        inner, origin = window.get_geometry(), self.root.translate_coords(window, 0, 0)
        outer, corner = inner, origin
        if frame is not None and frame.id != window.id:
            outer, corner = frame.get_geometry(), self.root.translate_coords(frame, 0, 0)
        edge = outer.border_width
        box = Box(corner.x - edge, corner.y - edge, outer.width + 2 * edge, outer.height + 2 * edge)
        if len(shadow := self.numbers(window, "_GTK_FRAME_EXTENTS")) == 4:  # around a window that draws its own frame
            left, right, top, bottom = shadow
            box = Box.between(box.left + left, box.top + top, box.right - right, box.bottom - bottom)
        return Window(
            window.id,
            self.text(window, "_NET_WM_NAME") or self.text(window, "WM_NAME"),
            self.text(window, "WM_CLASS").rstrip("\0").rpartition("\0")[2],
            Box(origin.x, origin.y, inner.width, inner.height),
            box,
            next(iter(self.numbers(window, "_NET_WM_PID")), None),
            popup,
            self.active_window() == window.id,
            self.atom("_NET_WM_STATE_HIDDEN") in self.numbers(window, "_NET_WM_STATE"),
        )

    def tell_window_manager(self, window: int, message: str, *values: int) -> None:
        data = (32, [*values, *[0] * (5 - len(values))])
        event = ClientMessage(window=self.window(window), client_type=self.atom(message), data=data)
        self.root.send_event(event, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        self.display.flush()

    # -- events ----------------------------------------------------------------------------------------------------

    def events(self, limit: float, also: int | None = None) -> Iterator[Any]:
        """Yield the server's events for this many seconds, and None when the other descriptor is ready."""
        end, watched = time.monotonic() + limit, [self.display.fileno()] + ([] if also is None else [also])
        while True:
            while self.display.pending_events():
                yield self.display.next_event()
            rest = end - time.monotonic()
            if rest <= 0:
                return
            if also in select.select(watched, [], [], rest)[0]:
                watched.remove(also)
                yield None

    def wait(self, condition: Callable[[], bool], limit: float, also: int | None = None) -> bool:
        """Wait for a condition, checked again when a window changes or `also` is ready; return whether it came true."""
        self.root.change_attributes(event_mask=X.PropertyChangeMask | X.SubstructureNotifyMask)
        try:
            return condition() or any(condition() for _ in self.events(limit, also)) or condition()
        finally:
            self.root.change_attributes(event_mask=0)
            self.display.sync()
