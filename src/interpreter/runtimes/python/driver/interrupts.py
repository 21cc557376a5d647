"""Raises KeyboardInterrupt on SIGINT in the user's code, and nowhere else."""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import get_ident, start_new_thread
from types import CodeType, FrameType

from .hints import Any, Callable, Function

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # where our code is
STAND_INS: list[CodeType] = []
MOMENT = 0.002  # seconds for Python to leave a finaliser


def stands_in(function: Function) -> Function:
    """Mark a function of ours that replaces another one: an interrupt is raised in it as in the original."""
    STAND_INS.append(function.__code__)
    return function


class Interrupts:
    """Interrupts of the main thread; `with interrupts:` defers them until the end of the block."""

    def __init__(self) -> None:
        self.cancel: Callable[[FrameType | None], bool] | None = None  # may handle an interrupt itself
        self.user_code = UserCode(self)
        self._running = True  # a block is running; at the start one is expected
        self.armed = 0  # the nesting depth of the user's code; 0 outside of it
        self._held = 0  # our own code is doing something that must not be interrupted
        self.waiting = False  # an interrupt came and was deferred
        self._window = False  # interrupts are deferred, but our code waits and is ready for one
        self._struck = True  # an interrupt was raised in our code: once per block, and not before the first
        self._main = get_ident()
        self._handler = self._handle

    def expect_block(self) -> None:
        self._running = self._struck = True

    def install(self) -> None:
        """Install our handler, also after the user's code has installed another."""
        if signal.getsignal(signal.SIGINT) is not self._handler:
            signal.signal(signal.SIGINT, self._handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    def leave(self) -> None:
        """Restore the usual meaning of Ctrl-C, in a process that the user's code forked."""
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def begin(self) -> None:
        self.install()
        if sys.unraisablehook is sys.__unraisablehook__:
            sys.unraisablehook = self._on_unraisable
        self._running, self._struck = True, False

    def end(self) -> None:
        """End the block; a deferred interrupt is dropped."""
        self._running = self.waiting = False
        self.armed = 0

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if not self._running:
            return
        if not self._may_strike(frame):
            self.waiting = True
            return
        self._window = self.waiting = False
        if self.cancel is not None and self.cancel(frame):
            return
        raise KeyboardInterrupt

    def _on_unraisable(self, unraisable: Any) -> None:
        """Raise an interrupt again that Python dropped in a finaliser, because it was meant for the code around it."""
        if unraisable.exc_type is KeyboardInterrupt and self.armed and get_ident() == self._main:
            start_new_thread(self._repeat, ())
        else:
            sys.__unraisablehook__(unraisable)

    def _repeat(self) -> None:
        time.sleep(MOMENT)
        if self._running:
            signal.pthread_kill(self._main, signal.SIGINT)

    def raise_deferred(self) -> None:
        """Raise an interrupt that came while our own code ran in the user's."""
        if self.waiting and self.armed and not self._held and get_ident() == self._main:
            self._handle(signal.SIGINT, None)

    def _may_strike(self, frame: FrameType | None) -> bool:
        """Check whether an interrupt may be raised here: in the user's code, or as a second one, once, in ours."""
        if self._held and not self._window:
            return False
        code = frame.f_code if frame is not None and not self._window else None
        is_ours = code is not None and code not in STAND_INS and code.co_filename.startswith(OURS)
        if self.armed and not is_ours:
            return True
        strikes = self.waiting and not self._struck
        self._struck = self._struck or strikes
        return strikes

    def __enter__(self) -> None:
        if get_ident() == self._main:
            self._held += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() != self._main:
            return
        self._held -= 1
        self.raise_deferred()

    def wait(self, wait: Callable[[], Any]) -> None:
        """Call something that waits, and let an interrupt end it even while interrupts are deferred."""
        if get_ident() != self._main:
            wait()
            return
        self._window = True
        try:
            if self.waiting and self.armed:
                self._handle(signal.SIGINT, None)
            wait()
        finally:
            self._window = False


class UserCode:
    """`with interrupts.user_code:` is where the user's code runs, and where an interrupt may be raised."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.armed += 1
        if self._interrupts.waiting:  # raises a deferred interrupt now
            self._interrupts.armed -= 1
            self._interrupts.waiting = False
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        self._interrupts.armed -= 1
