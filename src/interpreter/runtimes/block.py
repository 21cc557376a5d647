"""One run of code in a session: its events in order, its whole output, and the channels it writes to."""

from __future__ import annotations

import codecs
import contextlib
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from interpreter.runtimes.clock import Clock
from interpreter.runtimes.frames import Frame
from interpreter.runtimes.reader import READ_SIZE
from interpreter.runtimes.spool import Spool

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
    """A running or finished block. The reader thread puts events; a consumer peeks at one, handles it and advances.

    An event stays in the queue until it has been handled, so an exception in the consumer cannot lose it. The last
    event (`done`, `exited` or `detached`) is sticky: it needs no consumer, and every consumer can read it at any time.
    """

    def __init__(self, number: int, code: str, spool: Spool, clock: Clock | None = None) -> None:
        self.number, self.code, self.spool = number, code, spool
        self.clock = clock or Clock(None)  # used by the reader thread only
        self.channels: list[Channel] = []
        self.held: list[int] = []
        self.attached = True
        self.finished = False
        self.started = ticks_since_boot()
        self.last: Frame | None = None  # the event that ended it
        self.ended = threading.Event()  # set when `last` is
        self.on_end: Callable[[], None] | None = None  # called once, in the thread that ends the block
        self.tend: Callable[[], float | None] = lambda: None  # run by the reader while it waits for the consumer
        self.interrupted = False
        self._waits = True  # whether the reader waits for a slow consumer
        self._pressed = 0.0
        self._ending = threading.Lock()
        self._events: deque[tuple[Frame, int]] = deque()  # each with `_put` as it was after the event
        self._put = self._got = 0  # characters; each has one writer
        self._arrived = threading.Lock()  # released when something new may be there
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

    # -- for the reader thread -------------------------------------------------------------------------------------

    def put(self, frame: Frame) -> None:
        """Queue an event. Waits while the consumer is far behind."""
        if frame["event"] != "stream":
            self.nudge(frame)
            return
        text = frame["text"]
        self.spool.write(text)
        if self._waiting() > WAITING_LIMIT and not self._has_room():
            return
        self._put += len(text)
        self.nudge(frame)

    def _waiting(self) -> int:
        return self._put - self._got if self._events else 0

    def _has_room(self) -> bool:
        """Wait for room. False if the rest of the output goes to the spool only."""
        while self._waits and self._waiting() > WAITING_LIMIT:
            if self.clock.stage not in ("running", "asked"):
                return False  # an interrupted block must end, even if its consumer is suspended
            self._room.clear()
            if self._waits and self._waiting() > WAITING_LIMIT:  # the consumer may have advanced just now
                self._room.wait(self.tend())
        return self._waits

    def end(self, frame: Frame) -> None:
        """Set the last event, from any thread. Only the first call counts."""
        with self._ending:
            if self.last is not None:
                return
            self.last = frame
        self._arrive()
        self.ended.set()
        if self.on_end is not None:
            self.on_end()

    # -- for other threads -------------------------------------------------------------------------------------------

    def nudge(self, frame: Frame) -> None:
        """Queue an event from any thread, whatever the limit."""
        if self.attached and self.last is None:
            self._events.append((frame, self._put))
            self._arrive()

    def _arrive(self) -> None:
        if self._arrived.locked():
            with contextlib.suppress(RuntimeError):  # another thread released it first
                self._arrived.release()

    def interrupt(self) -> None:
        """Mark it as interrupted, and wake the reader if it waits for room."""
        self.interrupted = True
        self._room.set()

    def stop_waiting(self) -> None:
        """Do not wait for the consumer any more: output it has no room for goes to the spool only."""
        self._waits = False
        self._room.set()

    def let_go(self) -> None:
        """There is no consumer any more: new output goes to the spool only."""
        self.attached = False
        self.stop_waiting()

    # -- for the consumer ----------------------------------------------------------------------------------------------

    def peek(self, timeout: float = -1) -> Frame:
        """The next event. It stays the next one until `advance`. Raises queue.Empty after the timeout, in seconds."""
        while not self._events:
            if self.last is not None and not self._events:
                return self.last
            self._room.set()  # in case an exception kept `advance` from doing so
            if not self._arrived.acquire(timeout=timeout):
                raise queue.Empty
        return self._events[0][0]

    def advance(self, frame: Frame) -> None:
        """Remove an event that has been handled. Calling it again for the same event changes nothing."""
        if self._events and self._events[0][0] is frame:
            _, self._got = self._events.popleft()
        if not self._room.is_set() and self._put - self._got <= WAITING_LIMIT // 2:
            self._room.set()

    def forget_events(self) -> None:
        """Drop the queue: the consumer has left."""
        self.let_go()
        self._events.clear()

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
