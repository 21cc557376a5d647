"""The thread that everything of a browser happens in, and how other threads ask it for something.

Calls come from any thread, one with an event loop of its own as well, and may be given up at any moment: the caller is
interrupted, or the page hangs. So the work is done by an event loop that nothing can block.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from interpreter.computer_api.browser.errors import BrowserTimeoutError

Result = TypeVar("Result")
GRACE = 5.0  # seconds beyond the limit, for a cancelled call to end


class Worker:
    """A daemon thread with an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # What goes wrong in a call is raised to its caller; only what was given up comes here, and nothing prints.
        self._loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(target=self._serve, name="browser", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], Awaitable[Result]], limit: float) -> Result:
        """Have something done in the thread; BrowserTimeoutError if it takes longer than `limit` seconds."""

        async def bounded() -> Result:
            return await asyncio.wait_for(work(), limit)

        future = asyncio.run_coroutine_threadsafe(bounded(), self._loop)
        try:
            return future.result(limit + GRACE)
        except TimeoutError as error:
            raise BrowserTimeoutError(
                f"That took longer than {limit:g} seconds and was given up. Try again, or give it more time: "
                "computer.browser.setup(timeout=120)."
            ) from error
        finally:
            future.cancel()  # for a caller that was interrupted; else it is over

    def stop(self) -> None:
        """End the thread."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            self._loop.close()
