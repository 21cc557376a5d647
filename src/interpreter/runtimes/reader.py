"""One thread per session that reads everything the session says, so that nothing it writes can block it."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from collections.abc import Callable
from typing import Protocol

READ_SIZE = 256 * 1024


class Source(Protocol):
    """Something that can be read."""

    order: int  # lower ones are served first within one round

    def fileno(self) -> int: ...

    def ready(self) -> bool:
        """Read what is there; False at the end."""

    def ended(self) -> None:
        """The reader has let go of it."""


class Reader:
    """Reads its sources, in its own thread, whenever they have something.

    The thread calls `tend` before each wait; `tend` returns the longest time to wait in seconds, or None.
    """

    def __init__(self, name: str, tend: Callable[[], float | None] = lambda: None) -> None:
        self._selector = selectors.DefaultSelector()
        self._tend = tend
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._stopped = False
        self._stopping = threading.Lock()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def watch(self, source: Source) -> None:
        # epoll and kqueue take a new descriptor while another thread waits on them
        self._selector.register(source.fileno(), selectors.EVENT_READ, source)

    def wake(self) -> None:
        """Make the thread call `tend` again. Safe from any thread."""
        with self._stopping:
            if not self._stopped:
                with contextlib.suppress(BlockingIOError):  # it is awake
                    os.write(self._waker, b"x")

    @property
    def is_current(self) -> bool:
        """Whether this is the reader's own thread."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """End the thread and wait for it."""
        with self._stopping:
            if self._stopped:
                return
            self._stopped = True
            with contextlib.suppress(BlockingIOError):
                os.write(self._waker, b"x")
        if not self.is_current:
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopped:
            ready = [key for key, _ in self._selector.select(self._tend())]
            sources: list[Source] = [key.data for key in ready if key.data]
            if len(sources) < len(ready):
                os.read(self._wake, 4096)
            # frames alone: a sync among them may empty a pipe that was ready, and newer text be there
            frames = [source for source in sources if source.order == 0]
            for source in frames or sorted(sources, key=lambda source: source.order):
                if not source.ready():
                    self._selector.unregister(source.fileno())
                    source.ended()
        for key in list(self._selector.get_map().values()):
            if key.data:
                key.data.ended()
        self._selector.close()
        with self._stopping:  # `stop` and `wake` have finished writing
            os.close(self._wake)
            os.close(self._waker)
