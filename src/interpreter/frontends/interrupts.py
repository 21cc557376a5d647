"""Ctrl-C: the first cancels the turn, the second does not wait. Ctrl-Z: afterwards the terminal is ours again."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from interpreter.sigint import SigintHandler, in_main_thread

T = TypeVar("T")

_CAN_STOP = hasattr(signal, "SIGCONT")


class Interrupts(SigintHandler):
    """Handles SIGINT during a turn, in the main thread.

    Inside the turn's own code, Ctrl-C only cancels. The second Ctrl-C raises KeyboardInterrupt between two chunks.
    """

    def __init__(self, cancel: Callable[[], None], resume: Callable[[], None]) -> None:
        self._cancel, self._resume = cancel, resume
        self._asking = False
        self._elsewhere = False
        self._inside = False
        self.count = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        # A program with a handler of its own knows what it does.
        if not in_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        continued = signal.signal(signal.SIGCONT, lambda number, frame: self._resume()) if _CAN_STOP else None
        try:
            with self.installed():
                yield
        finally:
            if _CAN_STOP:
                signal.signal(signal.SIGCONT, continued)

    def passing(self, chunks: Iterator[T]) -> Iterator[T]:
        """The same chunks. If Ctrl-C is pressed twice while one is made, KeyboardInterrupt is raised after it."""
        with self.inside():
            chunk = next(chunks, None)
        while chunk is not None:
            if self.count > 1:
                raise KeyboardInterrupt
            yield chunk
            with self.inside():
                chunk = next(chunks, None)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """While our own code runs, Ctrl-C cancels and does not raise."""
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

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

    def on_sigint(self, in_user_code: bool) -> None:
        if self._elsewhere:
            return
        if self._asking:
            raise KeyboardInterrupt
        self.count += 1
        self.interrupted = True
        if self.count > 1 and (in_user_code or not self._inside):
            raise KeyboardInterrupt
        self._cancel()
