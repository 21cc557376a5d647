"""What SIGINT does: KeyboardInterrupt in the user's code, and nothing anywhere else."""

from __future__ import annotations

import signal
from _thread import get_ident

from .execution import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Optional

    Cancel = Callable[[Optional[FrameType]], bool]


class Interrupts:
    """Belongs to the main thread, like signals do; `with interrupts:` puts them off until the end."""

    def __init__(self) -> None:
        self.cancel: Optional[Cancel] = None  # may take an interrupt, which is then no exception
        self.user_code = UserCode(self)
        self._running = True  # a block is running; at the start one is on its way
        self._armed = 0  # within the block, the user's own code is: how many times one within the other
        self._held = 0  # our own code is doing something that must not be cut in two
        self._waiting = False  # an interrupt came where it could not strike
        self._window = False  # it is held, and yet may strike: our code waits, and is ready for it
        self._struck = True  # it has struck our own code: once in a block, and not before the first
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

    def begin(self) -> None:
        """A block begins."""
        self.install()
        self._running, self._struck = True, False

    def end(self) -> None:
        """The block is over, and an interrupt that did not find its way into it with it."""
        self._running = self._waiting = False
        self._armed = 0

    def _handle(self, signum: int, frame: Optional[FrameType]) -> None:
        if not self._running:
            return
        if not self._may_strike(frame):
            self._waiting = True
            return
        self._window = self._waiting = False
        if self.cancel is not None and self.cancel(frame):
            return
        raise KeyboardInterrupt

    def _may_strike(self, frame: Optional[FrameType]) -> bool:
        """Whether it is the user's code that is cut in two, or ours, which a second interrupt may do once."""
        if self._held and not self._window:
            return False
        is_ours = not self._window and frame is not None and frame.f_code.co_filename.startswith(OURS)
        if self._armed and not is_ours:
            return True
        strikes = self._waiting and not self._struck
        self._struck = self._struck or strikes
        return strikes

    def arm(self) -> None:
        """The user's code starts: an interrupt that waited for it strikes now."""
        self._armed += 1
        if self._waiting:
            self._armed -= 1
            self._waiting = False
            raise KeyboardInterrupt

    def disarm(self) -> None:
        self._armed -= 1

    def __enter__(self) -> None:
        if get_ident() == self._main:
            self._held += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() != self._main:
            return
        self._held -= 1
        if self._waiting and self._armed and not self._held:
            self._handle(signal.SIGINT, None)

    def wait(self, wait: Callable[[], Any]) -> None:
        """Call something that waits, and let an interrupt end it even where interrupts are put off."""
        if get_ident() != self._main:
            wait()
            return
        self._window = True
        try:
            if self._waiting and self._armed:
                self._handle(signal.SIGINT, None)
            wait()
        finally:
            self._window = False


class UserCode:
    """`with interrupts.user_code:` is where the user's code runs, and where an interrupt may strike."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.arm()

    def __exit__(self, *_: object) -> None:
        self._interrupts.disarm()
