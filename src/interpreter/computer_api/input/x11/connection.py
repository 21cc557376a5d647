"""A connection to the X server: properties, and waiting for what it reports."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from interpreter.computer_api.display.failures import NoDisplayError
from interpreter.computer_api.display.screens import NOTHING
from interpreter.computer_api.display.x11 import WHOLE, connect


class Connection:
    """One client of the X server; used by one thread at a time."""

    def __init__(self) -> None:
        name = os.environ.get("DISPLAY")
        if not name:
            raise NoDisplayError(NOTHING)
        self.display = connect(name)
        # What it would print is noticed by looking at the effect instead.
        self.display.set_error_handler(lambda error, request: None)
        self.root = self.display.screen().root

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        from Xlib.error import ConnectionClosedError

        try:
            self.display.close()
        except (ConnectionClosedError, OSError):
            pass  # The server went first.

    @property
    def is_lost(self) -> bool:
        """Whether it has ended without us: the server went, or an exchange was interrupted."""
        return self.display.display.socket_error is not None

    def atom(self, name: str) -> int:
        return int(self.display.intern_atom(name))

    def name(self, atom: int) -> str:
        return str(self.display.get_atom_name(atom))

    def window(self, number: int) -> Any:
        return self.display.create_resource_object("window", number)

    def property(self, window: Any, name: str) -> Any:
        """The value of a window's property; None where it has none, or the window is gone."""
        from Xlib.error import XError

        try:
            found = window.get_full_property(self.atom(name), 0, WHOLE)
        except XError:
            return None
        return None if found is None else found.value

    def numbers(self, window: Any, name: str) -> list[int]:
        found = self.property(window, name)
        return [] if found is None or isinstance(found, bytes | str) else [int(number) for number in found]

    def tell_window_manager(self, window: int, message: str, *values: int) -> None:
        from Xlib import X
        from Xlib.protocol.event import ClientMessage

        data = (32, [*values, *[0] * (5 - len(values))])
        event = ClientMessage(window=self.window(window), client_type=self.atom(message), data=data)
        self.root.send_event(event, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        self.display.flush()

    def events(self, limit: float, also: int | None = None) -> Iterator[Any]:
        """What the server reports, until so many seconds have passed; None once when the other descriptor is ready."""
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
        """Whether a condition came true in time; it is looked at again when a window changes, or `also` is ready."""
        from Xlib import X

        self.root.change_attributes(event_mask=X.PropertyChangeMask | X.SubstructureNotifyMask)
        try:
            if condition():
                return True
            return any(condition() for _ in self.events(limit, also)) or condition()
        finally:
            self.root.change_attributes(event_mask=0)
            self.display.sync()
