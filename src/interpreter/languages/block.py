"""One run of code in a session: its events in order, its whole output, and the channels it writes to."""

from __future__ import annotations

import codecs
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from interpreter.languages.frames import Frame
from interpreter.languages.reader import READ_SIZE
from interpreter.languages.spool import Spool

MOST_HELD = 1024 * 1024  # bytes; more than a pipe or a terminal can hold back
WAITING_LIMIT = 4 * 1024 * 1024  # characters that may wait for a slow consumer before the program has to


@dataclass
class Channels:
    """The descriptors through which a block and its children write, made anew for each block."""

    reads: list[tuple[int, str]] = field(default_factory=list)  # (our end, "stdout" or "stderr")
    sends: list[int] = field(default_factory=list)  # go to the driver with the run frame
    held: list[int] = field(default_factory=list)  # kept open here until the block has ended
    fields: Frame = field(default_factory=dict)  # what the driver is told about them
    plain: Callable[[str], str] = str  # what is written as a reader should see it


class Channel:
    """Our end of one of a block's pipes or terminals."""

    order = 1  # what the driver framed before a child wrote comes first

    def __init__(self, block: Block, fd: int, name: str, plain: Callable[[str], str] = str) -> None:
        self.block, self.fd, self.name, self._plain = block, fd, name, plain
        self.before: Channel | None = None  # what arrived there comes first
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(fd, False)

    def ready(self) -> bool:
        """Take what is there; False at the end."""
        if self.before is not None:
            self.before.drain()
        try:
            data = os.read(self.fd, READ_SIZE)
        except BlockingIOError:
            return True
        except OSError:
            data = b""  # a pseudo-terminal whose last writer left answers with EIO
        self._put(self._decoder.decode(data, final=not data))
        return bool(data)

    def drain(self) -> None:
        """Take everything that was written until now, and little more of what a background job still writes."""
        taken = 0
        while taken < MOST_HELD:
            try:
                data = os.read(self.fd, READ_SIZE)
            except OSError:
                return
            if not data:
                return
            taken += len(data)
            self._put(self._decoder.decode(data))

    def _put(self, text: str) -> None:
        if text:
            self.block.put({"event": "stream", "name": self.name, "text": self._plain(text)})

    def fileno(self) -> int:
        return self.fd

    def ended(self) -> None:
        self.block.channels.remove(self)
        os.close(self.fd)


class Block:
    """A running or finished block; the reader thread puts, the consumer gets."""

    def __init__(self, number: int, code: str, spool: Spool) -> None:
        self.number, self.code, self.spool = number, code, spool
        self.channels: list[Channel] = []
        self.held: list[int] = []
        self.attached = True
        self.finished = False
        self.started = ticks_since_boot()
        self._pressed = 0.0
        self._events: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._put = self._got = 0  # characters; each counter has one writer
        self._room = threading.Event()
        self._room.set()

    @property
    def running(self) -> bool:
        """Whether the block, or something it started, still goes on."""
        return not self.finished or bool(self.channels)

    def may_be_pressed(self, gap: float) -> bool:
        """Whether the last interrupt is long enough ago for another; if so, it is now."""
        now = time.monotonic()
        is_due = now - self._pressed >= gap
        if is_due:
            self._pressed = now
        return is_due

    def put(self, frame: Frame) -> None:
        """From the reader: hand an event on; blocks while the consumer is far behind."""
        size = 0
        if frame["event"] == "stream":
            self.spool.write(frame["text"])
            size = len(frame["text"])
        if not self.attached:
            return
        if size and self._put - self._got > WAITING_LIMIT:
            self._room.clear()
            if self._put - self._got > WAITING_LIMIT and self.attached:  # it may have been drained just now
                self._room.wait()
        self._put += size
        self._events.put(frame)

    def nudge(self, frame: Frame) -> None:
        """From any thread: tell the consumer something, past the queue's limit."""
        self._events.put(frame)

    def get(self, timeout: float | None = None) -> Frame:
        """For the consumer: the next event; raises queue.Empty after the timeout."""
        frame = self._events.get(timeout=timeout)
        if frame["event"] == "stream":
            self._got += len(frame["text"])
            if self._put - self._got <= WAITING_LIMIT // 2:
                self._room.set()
        return frame

    def let_go(self) -> None:
        """Nobody consumes any more: what still comes goes to the spool alone."""
        self.attached = False
        self._room.set()

    def drain_channels(self) -> None:
        for channel in list(self.channels):
            channel.drain()

    def release_held(self) -> None:
        held, self.held = self.held, []
        for fd in held:
            os.close(fd)


def ticks_since_boot() -> int:
    """Now, in the unit of the kernel's process start times."""
    if sys.platform != "linux":
        return 0
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
