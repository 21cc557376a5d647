"""Ctrl-C during a turn: the first cancels it, the second does not wait. After Ctrl-Z, we take the terminal back."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

from interpreter.sigint import SigintHandler, in_main_thread

T = TypeVar("T")


class TurnInterrupts(SigintHandler):
    """Handles SIGINT during a turn, in the main thread.

    Inside the turn's own code, Ctrl-C only cancels. The second Ctrl-C raises KeyboardInterrupt between two chunks.
    """

    def __init__(self, cancel: Callable[[], None], resume: Callable[[], None]) -> None:
        self._cancel, self._resume = cancel, resume
        self._state: Literal["", "inside", "asking", "elsewhere"] = ""
        self.count = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        # A program with its own handler knows what it does.
        if not in_main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        if sys.platform != "win32":
            continued = signal.signal(signal.SIGCONT, lambda number, frame: self._resume())
        try:
            with self.installed():
                yield
        finally:
            if sys.platform != "win32":
                signal.signal(signal.SIGCONT, continued)

    def passing(self, chunks: Iterator[T]) -> Iterator[T]:
        """Yield the chunks. If Ctrl-C is pressed twice during one, raise KeyboardInterrupt instead of yielding it."""
        while True:
            with self.state("inside"):
                chunk = next(chunks, None)
            if chunk is None:
                return
            if self.count > 1:
                raise KeyboardInterrupt
            yield chunk

    @contextmanager
    def state(self, state: Literal["inside", "asking", "elsewhere"]) -> Iterator[None]:
        """Set what Ctrl-C does inside this context.

        inside: our own code runs, so it cancels and does not raise. asking: it answers the open question.
        elsewhere: another program has the terminal and handles it.
        """
        outer, self._state = self._state, state
        try:
            yield
        finally:
            self._state = outer

    def on_sigint(self, in_user_code: bool) -> None:
        if self._state == "elsewhere":
            return
        if self._state == "asking":
            raise KeyboardInterrupt
        self.count += 1
        self.interrupted = True
        if self.count > 1 and (in_user_code or self._state != "inside"):
            raise KeyboardInterrupt
        self._cancel()
