"""One thread per session that reads everything the session says, so that nothing it writes can block it."""

from __future__ import annotations

import os
import selectors
import threading
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
    """Reads its sources, in its own thread, whenever they have something."""

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = os.pipe()
        self._stopped = False
        self._stopping = threading.Lock()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def watch(self, source: Source) -> None:
        # epoll and kqueue take a new descriptor while another thread waits on them
        self._selector.register(source.fileno(), selectors.EVENT_READ, source)

    def stop(self) -> None:
        """End the thread and wait for it."""
        with self._stopping:
            if self._stopped:
                return
            os.write(self._waker, b"x")
            self._stopped = True  # only now: a thread that is awake closes the pipe as soon as it sees this
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopped:
            sources: list[Source] = [key.data for key, _ in self._selector.select() if key.data]
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
        os.close(self._wake)
        os.close(self._waker)
