"""A key combination that is noticed whichever window has the keyboard, also while a menu has grabbed it: XRecord."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from interpreter.computer_api.input.keys import keysym_name
from interpreter.computer_api.input.x11.connection import Connection
from interpreter.computer_api.input.x11.keymap import keysym_of
from interpreter.errors import ComputerError

_EDGE = 1  # pixels
_MODIFIERS = {"ctrl": "Control", "alt": "Mod1", "shift": "Shift", "super": "Mod4"}


class StopKey:
    """A thread that looks at every key that is pressed on the display, and at the pointer where it is at an edge."""

    def __init__(
        self, keys: tuple[str, ...], stopped: Callable[[], None], moved: Callable[[], None] | None = None
    ) -> None:
        self._keys, self._stopped, self._moved = keys, stopped, moved
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._control, self._data = Connection(), Connection()
        if not self._data.display.has_extension("RECORD"):
            self._control.close()
            self._data.close()
            raise ComputerError("This X server lets no program watch for a stop key: it has no RECORD extension.")
        self._wanted = self._combination()
        self._context = self._make_context()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="stop key")
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        from Xlib.error import ConnectionClosedError

        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            self._control.display.record_disable_context(self._context)
            self._control.display.flush()
        except ConnectionClosedError:
            pass  # The display went first.
        if thread is not threading.current_thread():
            thread.join()
        self._control.close()

    def _combination(self) -> tuple[int, int]:
        from Xlib import XK, X

        *modifiers, key = self._keys
        keysym = keysym_of(key) if len(key) == 1 else XK.string_to_keysym(keysym_name(key))
        mask = sum(getattr(X, f"{_MODIFIERS[name]}Mask") for name in modifiers)
        return self._control.display.keysym_to_keycode(keysym), mask

    def _make_context(self) -> int:
        from Xlib import X
        from Xlib.ext import record

        nothing = (0, 0)
        ranges = {
            "core_requests": nothing,
            "core_replies": nothing,
            "ext_requests": (0, 0, 0, 0),
            "ext_replies": (0, 0, 0, 0),
            "delivered_events": nothing,
            "device_events": (X.KeyPress, X.MotionNotify if self._moved else X.KeyPress),
            "errors": nothing,
            "client_started": False,
            "client_died": False,
        }
        return int(self._data.display.record_create_context(0, [record.AllClients], [ranges]))

    def _watch(self) -> None:
        from Xlib.error import ConnectionClosedError

        try:
            self._data.display.record_enable_context(self._context, self._seen)
            self._data.display.record_free_context(self._context)
        except ConnectionClosedError:
            pass  # The display went, and its keys with it.
        finally:
            self._ready.set()
            self._data.close()

    def _seen(self, reply: Any) -> None:
        from Xlib import X
        from Xlib.ext import record
        from Xlib.protocol import rq

        self._ready.set()
        if reply.category != record.FromServer:
            return
        rest = reply.data
        while len(rest):
            event, rest = rq.EventField(None).parse_binary_value(rest, self._data.display.display, None, None)
            code, mask = self._wanted
            if event.type == X.KeyPress and event.detail == code and event.state & mask == mask:
                self._stopped()
            elif event.type == X.MotionNotify and self._moved and self._is_at_edge(event.root_x, event.root_y):
                self._moved()

    def _is_at_edge(self, x: int, y: int) -> bool:
        screen = self._data.display.screen()
        right, bottom = screen.width_in_pixels - 1, screen.height_in_pixels - 1
        return bool(min(x, right - x) <= _EDGE and min(y, bottom - y) <= _EDGE)
