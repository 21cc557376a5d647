"""What SIGINT does: KeyboardInterrupt in the user's code, and nothing anywhere else."""

from __future__ import annotations

import signal
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Optional


class Interrupts:
    """Belongs to the main thread, like signals do; `with interrupts:` puts them off until the end."""

    def __init__(self) -> None:
        self.armed = False  # the user's code is running
        self.starting = True  # an interrupt now is for the first block, which is already waiting
        self.held = 0  # our own code is doing something that must not be cut in two
        self.waiting = False  # an interrupt came while it was held
        self.window = False  # it is held, and yet may strike: our code waits, and is ready for it
        self.cancel: Optional[Callable[[], bool]] = None  # takes an interrupt in the stead of an exception
        self._main = get_ident()
        self._handler = self._handle

    def install(self) -> None:
        """Put our handler in place, also after user code has put in its own."""
        if signal.getsignal(signal.SIGINT) is not self._handler:
            signal.signal(signal.SIGINT, self._handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    def leave(self) -> None:
        """In a process that the user's code forked: Ctrl-C means there what it means everywhere."""
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, signum: int, frame: Optional[FrameType]) -> None:
        if not self.armed:
            self.waiting = self.starting
            return
        if self.held and not self.window:
            self.waiting = True
            return
        self.window = False
        if self.cancel is not None and self.cancel():
            return
        raise KeyboardInterrupt

    def __enter__(self) -> None:
        if get_ident() == self._main:
            self.held += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() != self._main:
            return
        self.held -= 1
        if self.waiting and not self.held:
            self.waiting = False
            self._handle(signal.SIGINT, None)

    def wait(self, wait: Callable[[], Any]) -> None:
        """Call something that waits, and let an interrupt end it even where interrupts are put off."""
        if get_ident() != self._main:
            wait()
            return
        self.window = True
        try:
            if self.waiting:
                self.waiting = False
                self._handle(signal.SIGINT, None)
            wait()
        finally:
            self.window = False

    def arm(self) -> None:
        """The user's code starts; raises the interrupt that came while the process did."""
        self.armed = True
        early, self.waiting, self.starting = self.starting and self.waiting, False, False
        if early:
            raise KeyboardInterrupt

    def disarm(self) -> None:
        self.armed = False
        self.waiting = False
