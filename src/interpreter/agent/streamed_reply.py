"""A model's reply while it streams: it can be read on in the background while a block of it waits or runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator

from interpreter.llm.text_mode import PROSE_LANGUAGES
from interpreter.messages import Chunk

MAX_NOT_RUN = 1000  # characters of a block that did not run, for the model
# How many characters after a block are read to see whether another one begins, where only the first one runs.
LOOK_AHEAD = 200


def is_block(chunk: Chunk) -> bool:
    """Check whether a chunk belongs to a block that could run."""
    is_code = chunk["type"] == "code" and chunk["format"].lower() not in PROSE_LANGUAGES
    return is_code or chunk["type"] == "tool_call"


class StreamedReply(Iterator[Chunk]):
    """Iterates over a model's chunks.

    Approval of a block can take minutes. A server does not wait that long for its client to continue reading.
    """

    def __init__(self, chunks: Iterator[Chunk], cut: Callable[[], None]) -> None:
        self._chunks = chunks
        self._cut = cut  # ends a read that waits
        self._rest: queue.SimpleQueue[Chunk | BaseException | None] | None = None
        self._closed = self._ended = False

    def __next__(self) -> Chunk:
        if self._rest is None:
            return next(self._chunks)
        item = self._rest.get()
        if item is None or isinstance(item, BaseException):
            self._rest.put(None)
            raise StopIteration if item is None else item
        return item

    def read_on_in_background(self, only_ahead: bool = False) -> None:
        """Read the rest of the reply in a thread; with `only_ahead`, no further than needed to know the next chunk."""
        if self._rest is None:
            self._rest = queue.SimpleQueue()
            threading.Thread(target=self._read, args=[self._rest, only_ahead], name="reply", daemon=True).start()

    def _read(self, rest: queue.SimpleQueue[Chunk | BaseException | None], only_ahead: bool) -> None:
        left, in_block = LOOK_AHEAD, False
        last: BaseException | None = None
        try:
            for chunk in self._chunks:
                rest.put(chunk)
                if is_block(chunk) and not in_block:
                    left, in_block = MAX_NOT_RUN, True
                left -= len(chunk.get("content") or "") if chunk["type"] != "status" else 0
                if self._closed or (only_ahead and (left < 0 or (in_block and chunk.get("end")))):
                    break
        except Exception as error:  # noqa: BLE001 - handed to the turn, which raises it
            last = error
        finally:
            if isinstance(self._chunks, Generator):
                self._chunks.close()  # before the turn continues: its next request is another one
            self._ended = True
            rest.put(last)

    def close(self) -> None:
        """Stop reading: the rest is not needed."""
        self._closed = True
        if self._rest is not None and not self._ended:
            self._cut()
        elif self._rest is None and isinstance(self._chunks, Generator):
            self._chunks.close()
