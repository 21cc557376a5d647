"""The model's reply as it arrives; the rest of it is read in the background while one of its blocks runs."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator

from interpreter.errors import ModelError
from interpreter.messages import Chunk

LOOK_AHEAD = 200
"""Characters behind a block that are read on to see whether another one begins, where only the first one runs."""


class Reply:
    """Iterates over a model's chunks.

    Code that waits for approval can take minutes: a server does not wait that long for us to read on.
    """

    def __init__(self, chunks: Iterator[Chunk], cut: Callable[[], None]) -> None:
        self._chunks = chunks
        self._cut = cut  # ends a read that waits
        self._rest: queue.SimpleQueue[Chunk | BaseException | None] | None = None
        self._closed = self._ended = False
        self._ends_early = False

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

    def read_on_in_background(self, only_ahead: bool = False) -> None:
        """Keep the connection flowing from now on; with `only_ahead` no further than needed to see what comes next."""
        if self._rest is None:
            self._ends_early = only_ahead
            self._rest = queue.SimpleQueue()
            threading.Thread(target=self._read, args=[self._rest], name="reply", daemon=True).start()

    def left(self) -> Iterator[Chunk]:
        """What was read ahead; an error there is none of a reply whose first block is whole."""
        with contextlib.suppress(ModelError):
            yield from self

    def _read(self, rest: queue.SimpleQueue[Chunk | BaseException | None]) -> None:
        ahead = LOOK_AHEAD
        last: BaseException | None = None
        try:
            for chunk in self._chunks:
                rest.put(chunk)
                ahead -= len(chunk.get("content") or "") if chunk["type"] in ("message", "reasoning") else 0
                if self._closed or (self._ends_early and (ahead < 0 or chunk["type"] in ("code", "tool_call"))):
                    break
        except Exception as error:  # noqa: BLE001 - handed to the turn, which raises it
            last = error
        finally:
            if isinstance(self._chunks, Generator):
                self._chunks.close()  # before the turn goes on: its next request is another one
            self._ended = True
            rest.put(last)

    def close(self) -> None:
        """Nobody wants the rest."""
        self._closed = True
        if self._rest is not None and not self._ended:
            self._cut()
        elif self._rest is None and isinstance(self._chunks, Generator):
            self._chunks.close()
