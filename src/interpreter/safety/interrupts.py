"""Ctrl-C waits while a record is between two whole states."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations of each handler and number
import threading
from types import FrameType
from typing import Any


class Hold:
    """Holds Ctrl-C back as long as it is entered; in another thread than the main one there is none to hold."""

    def __init__(self) -> None:
        self._depth = 0
        self._handler: Any = None
        self._frame: FrameType | None = None
        self._pressed = False

    def __enter__(self) -> Hold:
        if threading.current_thread() is threading.main_thread():
            if self._depth == 0:
                self._begin()  # Ctrl-C may come before it is held back, and then nothing is to be counted
            self._depth += 1
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._handler is not None:
            _signal.signal(_signal.SIGINT, self._handler)
            self.let_through()

    def let_through(self) -> None:
        """Here nothing is lost if Ctrl-C, pressed meanwhile, does what it does."""
        if self._pressed and threading.current_thread() is threading.main_thread():
            self._pressed = False
            self._handler(_signal.SIGINT, self._frame)

    def _begin(self) -> None:
        self._pressed = False
        found = _signal.getsignal(_signal.SIGINT)
        self._handler = found if callable(found) else None
        if self._handler is not None:
            _signal.signal(_signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pressed, self._frame = True, frame
