"""The event loop behind top-level await: one for the whole session, running while a block awaits."""

from __future__ import annotations

import os

from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from types import FrameType
    from typing import Any, Coroutine, List, Optional

    from .interrupts import Interrupts


class EventLoop:
    """Tasks that a block leaves behind go on whenever a later block awaits."""

    def __init__(self, interrupts: Optional[Interrupts] = None) -> None:
        self._interrupts = interrupts
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self.interrupted = False  # the block that awaits was cancelled by an interrupt

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; an interrupt cancels it, so that it can clean up."""
        asyncio = trusted_import("asyncio")
        if asyncio._get_running_loop() is not None:  # only where the caller's own process runs the block
            coroutine.close()
            raise RuntimeError("await at the top level cannot be used here: an event loop is already running")
        loop = self._current()
        task = loop.create_task(coroutine)
        self.interrupted = False
        if self._interrupts is not None:
            self._interrupts.cancel = lambda frame: self._cancel(task, frame)
        try:
            return loop.run_until_complete(task)
        except BaseException as error:
            if not task.done():  # the interrupt struck inside a step
                self._finish(task)
            if self.was_interrupted(error):
                raise KeyboardInterrupt from None
            raise
        finally:
            if self._interrupts is not None:
                self._interrupts.cancel = None

    def descriptors(self) -> List[int]:
        """What the loop itself has open."""
        ends = [getattr(self._loop, name, None) for name in ("_ssock", "_csock")]
        return [end.fileno() for end in ends if end is not None]

    def renew(self) -> None:
        """In a snapshot that goes on: what the loop waits with was let go of; its tasks stay."""
        loop: Any = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            loop._close_self_pipe()
            loop._selector.close()
            loop._selector = trusted_import("selectors").DefaultSelector()
            loop._make_self_pipe()
        except (AttributeError, OSError):
            self._loop = None  # a loop of another kind: its tasks are lost

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def was_interrupted(self, error: BaseException) -> bool:
        """Whether this is the cancellation that an interrupt asked for."""
        return self.interrupted and isinstance(error, trusted_import("asyncio").CancelledError)

    def _current(self) -> asyncio.AbstractEventLoop:
        asyncio = trusted_import("asyncio")
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        if self._interrupts is not None:
            asyncio.set_event_loop(self._loop)
        assert self._loop is not None
        return self._loop

    def _cancel(self, task: asyncio.Task[Any], frame: Optional[FrameType]) -> bool:
        """Take an interrupt: cancel what waits; the user's code in the middle of a step gets the exception.

        An exception within asyncio's own code could lose a task for ever.
        """
        asyncio = trusted_import("asyncio")
        if self._loop is None or not self._loop.is_running() or self.interrupted:
            return False
        asyncios_own = os.path.dirname(asyncio.__file__)
        in_asyncio = frame is not None and frame.f_code.co_filename.startswith(asyncios_own)
        if asyncio.current_task(self._loop) is not None and not in_asyncio:
            return False
        self.interrupted = True
        self._loop.call_soon_threadsafe(task.cancel)
        return True

    def _finish(self, task: asyncio.Task[Any]) -> None:
        asyncio = trusted_import("asyncio")
        task.cancel()
        try:
            assert self._loop is not None
            self._loop.run_until_complete(task)
        except asyncio.CancelledError:
            self.interrupted = True
