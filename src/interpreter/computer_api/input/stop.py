"""The user stops us: the pointer in a corner, or a key that works from anywhere."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from interpreter.computer_api.input.errors import StoppedByUser
from interpreter.computer_api.input.hands import Hands, hands_of, kind_of_screen

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

STOP_KEY = ("ctrl", "alt", ".")
# How near to a corner counts: a hand that flings the mouse there ends on the last pixel.
_CORNER = 1


class Corners:
    """Notices a pointer that somebody else has moved to a corner of the screen since our last action."""

    def __init__(self, hands: Hands) -> None:
        self._left_at = hands.position()

    def check(self, hands: Hands) -> None:
        """Raise `StoppedByUser` if the pointer waits in a corner, and we did not put it there."""
        x, y = hands.position()
        width, height = hands.size()
        in_corner = min(x, width - 1 - x) <= _CORNER and min(y, height - 1 - y) <= _CORNER
        if in_corner and (x, y) != self._left_at:
            raise StoppedByUser()

    def leave(self, hands: Hands) -> None:
        """Our action ends here: this is where we left the pointer."""
        self._left_at = hands.position()


_corners: weakref.WeakKeyDictionary[Hands, Corners] = weakref.WeakKeyDictionary()


@contextmanager
def acting(computer: Computer) -> Iterator[Hands]:
    """One action of ours with the hands, unless the user has said stop."""
    hands = hands_of(computer)
    corners = _corners.setdefault(hands, Corners(hands))
    corners.check(hands)
    try:
        yield hands
    finally:
        corners.leave(hands)


class _Watcher(Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


class StopWatch:
    """Calls `on_stop` once, from a thread of its own, when the stop key is pressed, whichever window is in front."""

    def __init__(self, on_stop: Callable[[], None], keys: tuple[str, ...] = STOP_KEY) -> None:
        self._on_stop = on_stop
        self._once = threading.Lock()
        self._watcher = _watcher(keys, self._stopped)

    def start(self) -> StopWatch:
        self._watcher.start()
        return self

    def close(self) -> None:
        self._watcher.close()

    def __enter__(self) -> StopWatch:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stopped(self) -> None:
        if self._once.acquire(blocking=False):
            self._on_stop()


def _watcher(keys: tuple[str, ...], stopped: Callable[[], None]) -> _Watcher:
    match kind_of_screen():
        case "x11":
            from interpreter.computer_api.input.x11.stop_key import StopKey

            return StopKey(keys, stopped)
        case "wayland":
            from interpreter.errors import ComputerError

            raise ComputerError("Wayland lets no program watch for a stop key: Ctrl-C in the terminal stops.")
        case _:
            from interpreter.computer_api.input.elsewhere import PynputStopKey

            return PynputStopKey(keys, stopped)
