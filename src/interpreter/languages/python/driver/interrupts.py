"""What SIGINT does: KeyboardInterrupt in the user's code, and nothing anywhere else."""

from __future__ import annotations

import signal
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Callable, Optional


class Interrupts:
    """Belongs to the main thread, like signals do; `with interrupts:` puts them off until the end."""

    def __init__(self) -> None:
        self.armed = False  # the user's code is running
        self.held = 0  # our own code is doing something that must not be cut in two
        self.waiting = False  # an interrupt came while it was held
        self.cancel: Optional[Callable[[], bool]] = None  # takes an interrupt in the stead of an exception
        self._main = get_ident()
        self._handler = self._handle

    def install(self) -> None:
        """Put our handler in place, also after user code has put in its own."""
        if signal.getsignal(signal.SIGINT) is not self._handler:
            signal.signal(signal.SIGINT, self._handler)

    def leave(self) -> None:
        """In a process that the user's code forked: Ctrl-C means there what it means everywhere."""
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, signum: int, frame: Optional[FrameType]) -> None:
        if not self.armed:
            return
        if self.held:
            self.waiting = True
            return
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

    def arm(self) -> None:
        self.waiting = False
        self.armed = True

    def disarm(self) -> None:
        self.armed = False
        self.waiting = False
