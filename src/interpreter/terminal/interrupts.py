"""Ctrl-C: the first cancels the turn, the second does not wait. Ctrl-Z: afterwards the terminal is ours again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_CAN_STOP = hasattr(signal, "SIGCONT")


class Interrupts:
    """Takes the interrupt signal for the length of a turn, where that is possible: in the main thread."""

    def __init__(self, cancel: Callable[[], None], resume: Callable[[], None]) -> None:
        self._cancel, self._resume = cancel, resume
        self._asking = False
        self._elsewhere = False
        self.count = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        ours = threading.current_thread() is threading.main_thread()
        # A program with a handler of its own knows what it does.
        if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._on_signal)
        continued = signal.signal(signal.SIGCONT, lambda number, frame: self._resume()) if _CAN_STOP else None
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if _CAN_STOP:
                signal.signal(signal.SIGCONT, continued)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a question is out, Ctrl-C is an answer to it."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While another program has the terminal, Ctrl-C is its business."""
        self._elsewhere = True
        try:
            yield
        finally:
            self._elsewhere = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._elsewhere:
            return
        if self._asking:
            raise KeyboardInterrupt
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt
        self._cancel()
