"""A request on its way out, which can be given up at any moment."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


class Sending:
    """Sends in a thread of its own: while a name is looked up or a connection is made, nobody can end the wait."""

    def __init__(self, send: Callable[[], httpx.Response]) -> None:
        self._send = send
        self._came: queue.SimpleQueue[httpx.Response | Exception | None] = queue.SimpleQueue()
        self._settled = False  # it was answered, or given up
        self._settling = threading.RLock()  # a signal handler may give it up in the thread that waits
        self._thread = threading.Thread(target=self._run, name="request", daemon=True)

    def response(self) -> httpx.Response | None:
        """The beginning of the answer; None if it was given up."""
        self._thread.start()
        came = self._came.get()
        if isinstance(came, Exception):
            raise came
        return came

    def give_up(self) -> None:
        """Let the one who waits go on; an answer that still comes is closed."""
        with self._settling:
            if not self._settled:
                self._settled = True
                self._came.put(None)

    def _run(self) -> None:
        came: httpx.Response | Exception
        try:
            came = self._send()
        except Exception as error:  # noqa: BLE001 - handed to the one who waits
            came = error
        with self._settling:
            is_late, self._settled = self._settled, True
            if not is_late:
                self._came.put(came)
        if is_late and not isinstance(came, Exception):
            with contextlib.suppress(Exception):  # nobody is left to be told
                came.close()
