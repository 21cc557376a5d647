"""The input device that a computer's mouse, keyboard and clipboard share, and how the user stops it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from interpreter.computer_api.platforms import (
    InputDevice,
    InputLost,
    NoDisplayError,
    StoppedByUser,
    open_input,
    open_stop_key,
)

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

STOP_KEY = ("ctrl", "alt", ".")
# How near to a corner counts: a mouse that is flung there ends on the last pixel.
_CORNER = 1

_devices: weakref.WeakKeyDictionary[Computer, InputDevice] = weakref.WeakKeyDictionary()
_closers: weakref.WeakKeyDictionary[Computer, weakref.finalize[[], Computer]] = weakref.WeakKeyDictionary()
_left_at: weakref.WeakKeyDictionary[InputDevice, tuple[int, int]] = weakref.WeakKeyDictionary()


def device_of(computer: Computer) -> InputDevice:
    """The input device of a computer; opened on first use, and again when it is lost."""
    before = _devices.get(computer)
    if before is None or before.is_lost:
        made = _devices[computer] = open_input()
        # Also at exit: a modifier that stays down would spoil the user's keyboard.
        _closers[computer] = weakref.finalize(computer, made.close)
        if before is not None:
            made.release()
    return _devices[computer]


def position_of(computer: Computer) -> tuple[int, int]:
    """Where the pointer is, also if an interrupt in another thread has just closed the device."""
    try:
        return device_of(computer).position()
    except InputLost:
        return device_of(computer).position()


def release(computer: Computer) -> None:
    """Release the keys and buttons that a computer still holds."""
    if computer not in _devices:
        return
    with suppress(NoDisplayError):  # then there is nothing to release
        device = device_of(computer)
        device.release()
        if device.is_lost:  # an interrupt cut it off meanwhile, and keys may still be down
            device_of(computer).release()


def close_device(computer: Computer) -> None:
    """Close the input device of a computer, if it is open."""
    release(computer)
    if _devices.pop(computer, None) is not None:
        _closers.pop(computer)()


@contextmanager
def acting(computer: Computer) -> Iterator[InputDevice]:
    """One action with the input device; StoppedByUser if the user has moved the pointer to a corner since the last."""
    device = device_of(computer)
    x, y = device.position()
    width, height = device.size()
    in_corner = min(x, width - 1 - x) <= _CORNER and min(y, height - 1 - y) <= _CORNER
    if _left_at.setdefault(device, (x, y)) != (x, y) and in_corner:
        raise StoppedByUser()
    try:
        yield device
    finally:
        _left_at[device] = device.position()


def press_together(device: InputDevice, keys: list[str], interval: float = 0) -> None:
    """Press keys one after the other, and release them whatever happens."""
    held: list[str] = []
    try:
        for key in keys:
            if held and interval:
                time.sleep(interval)
            held.append(key)
            device.key(key, True)
    finally:
        for key in reversed(held):
            device.key(key, False)


class StopWatch:
    """Calls `on_stop` once, from its own thread, when the stop key is pressed, whichever window is in front."""

    def __init__(self, on_stop: Callable[[], None], keys: tuple[str, ...] = STOP_KEY) -> None:
        self._on_stop = on_stop
        self._once = threading.Lock()
        self._stop_key = open_stop_key(keys, self._stopped)

    def start(self) -> StopWatch:
        self._stop_key.start()
        return self

    def close(self) -> None:
        self._stop_key.close()

    def __enter__(self) -> StopWatch:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stopped(self) -> None:
        if self._once.acquire(blocking=False):
            self._on_stop()
