"""The model's reply as it arrives; the rest of it is read in the background while one of its blocks runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator

from interpreter.messages import Chunk


class Reply:
    """Iterates over a model's chunks.

    Code that waits for approval can take minutes: a server does not wait that long for us to read on.
    """

    def __init__(self, chunks: Iterator[Chunk], cut: Callable[[], None]) -> None:
        self._chunks = chunks
        self._cut = cut  # ends a read that waits
        self._rest: queue.SimpleQueue[Chunk | BaseException | None] | None = None
        self._closed = self._ended = False

    def __iter__(self) -> Reply:
        return self

    def __next__(self) -> Chunk:
        if self._rest is None:
            return next(self._chunks)
        item = self._rest.get()
        if isinstance(item, BaseException):
            self._rest.put(None)
            raise item
        if item is None:
            self._rest.put(None)
            raise StopIteration
        return item

    def read_on_in_background(self) -> None:
        """Keep the connection flowing from now on."""
        if self._rest is None:
            self._rest = queue.SimpleQueue()
            threading.Thread(target=self._read, args=[self._rest], name="reply", daemon=True).start()

    def _read(self, rest: queue.SimpleQueue[Chunk | BaseException | None]) -> None:
        try:
            for chunk in self._chunks:
                rest.put(chunk)
                if self._closed:
                    break
            rest.put(None)
        except Exception as error:  # noqa: BLE001 - handed to the turn, which raises it
            rest.put(error)
        finally:
            self._ended = True
            if isinstance(self._chunks, Generator):
                self._chunks.close()

    def close(self) -> None:
        """Nobody wants the rest."""
        self._closed = True
        if self._rest is not None and not self._ended:
            self._cut()
        elif self._rest is None and isinstance(self._chunks, Generator):
            self._chunks.close()
