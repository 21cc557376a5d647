"""The driver protocol's frames: JSON lines, split and joined without copying long ones twice."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from interpreter.runtimes.runtime import Processes


Frame = dict[str, Any]

# What a driver may say, and what has to be in it. A worker runs code that may mean harm: it must not be able to speak
# as the host does (`call_asks`, `exited`), nor to end the reader with something that nobody expects.
_OF_BLOCK: dict[str, type] = {"block": int}
SAID: dict[str, dict[str, type]] = {
    "ready": {},
    "answer": {},
    "sync": {},
    "turn": {},
    "stream": {**_OF_BLOCK, "name": str, "text": str},
    "display": {**_OF_BLOCK, "data": dict},
    "clear": _OF_BLOCK,
    "active_line": {**_OF_BLOCK, "line": int},
    "input_request": {**_OF_BLOCK, "prompt": str},
    "done": {**_OF_BLOCK, "status": str},
    "call": {**_OF_BLOCK, "call": int, "path": str, "how": str},
    "call_off": {"call": int},
}


LONGEST = 1 << 28  # bytes of a frame


def encode(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def decode(line: bytes) -> Frame | None:
    """The frame of a line, or None for a line that is not one (a driver killed in the middle of it)."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) and is_frame(frame) else None


def is_frame(frame: Frame) -> bool:
    event = frame.get("event")
    needed = SAID.get(event) if isinstance(event, str) else None
    return needed is not None and all(isinstance(frame.get(name), kind) for name, kind in needed.items())


class Lines:
    """Splits a byte stream into lines; a long unfinished line is held in pieces, so the cost stays linear."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._open: list[bytes] = []
        self._held, self._longest = 0, longest

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now; one that is too long is dropped, as code may mean to fill our memory."""
        head, newline, rest = data.partition(b"\n")
        self._held += len(head)
        if self._held > self._longest:
            self._open = []
        else:
            self._open.append(head)
        if not newline:
            return []
        begun = [b"".join(self._open)] if self._held <= self._longest else []
        *whole, last = rest.split(b"\n")
        self._open, self._held = [last] if last else [], len(last)
        return [*begun, *whole]


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


class Control:
    """The line to the supervisor."""

    order = 2  # an exit is news only after everything the worker said

    def __init__(self, runtime: Processes, ours: socket.socket) -> None:
        self.runtime, self.socket = runtime, ours
        self._lines = Lines()
        self._writing = threading.Lock()
        self._ordered = 0  # orders that were given and not yet obeyed
        self._obeyed = threading.Condition()
        self.over = threading.Event()  # the supervisor is gone, or as good as that
        self.stays = False  # its session is over, but sessions that split off depend on it

    def fileno(self) -> int:
        return self.socket.fileno()

    def say(self, command: str, fds: list[int] | None = None) -> None:
        with self._writing, contextlib.suppress(OSError):  # a supervisor that is gone took everything along
            socket.send_fds(self.socket, [command.encode() + b"\n"], fds or [])

    def command(self, command: str, fds: list[int] | None = None) -> None:
        """Say something that the supervisor confirms."""
        with self._obeyed:
            self._ordered += 1
        self.say(command, fds)

    def wait(self) -> None:
        """Wait until all orders are obeyed, or nobody is there any more to obey them."""
        with self._obeyed:
            self._obeyed.wait_for(lambda: self._ordered <= 0 or self.lost)

    def _confirm(self, count: int) -> None:
        with self._obeyed:
            self._ordered -= count
            self._obeyed.notify_all()

    @property
    def lost(self) -> bool:
        """Whether the supervisor is gone: somebody killed it."""
        return self.over.is_set()

    def shut(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def ready(self) -> bool:
        try:
            data = self.socket.recv(READ_SIZE)
        except OSError:
            data = b""
        try:
            for line in self._lines.feed(data):
                self._heard(line.decode().split())
        except ValueError:
            data = b""  # no supervisor says that: code has got hold of it
        if not data:
            self._gone()
            if self.runtime.alive:
                self.runtime.worker_exited(-9)
        return bool(data)

    def _heard(self, words: list[str]) -> None:
        match words:
            case ["spawned", pid]:
                self.runtime.pid = int(pid)
            case ["exited", pid, code] if int(pid) == self.runtime.pid:
                self.runtime.worker_exited(int(code))
            case ["gone", state]:
                self.runtime.snapshots.gone(int(state))
            case ["left" | "promoted" | "split" | "missing" | "settled" as what, *words]:
                self.runtime.snapshots.promotion_said(what, words)
            case ["staying"] if self.runtime.first.parts:  # they need it
                self.stays = True
                self._gone()  # a wrapper around it may hold the line
            case ["obeyed"]:
                self._confirm(1)

    def _gone(self) -> None:
        self.over.set()
        self._confirm(self._ordered)
        self.runtime.snapshots.promotion_said("missing", [])

    def ended(self) -> None:
        self.socket.close()


class Data:
    """The line to the worker."""

    order = 0

    def __init__(self, runtime: Processes, ours: socket.socket) -> None:
        self.runtime, self.socket = runtime, ours
        self._lines = Lines()

    def fileno(self) -> int:
        return self.socket.fileno()

    def ready(self) -> bool:
        try:
            data = self.socket.recv(READ_SIZE)
        except OSError:
            data = b""
        self._take(data)
        return bool(data)

    def drain(self) -> None:
        """Take everything that was sent until now."""
        with contextlib.suppress(OSError):
            while data := self.socket.recv(READ_SIZE, socket.MSG_DONTWAIT):
                self._take(data)

    def _take(self, data: bytes) -> None:
        frames = [frame for line in self._lines.feed(data) if (frame := decode(line))]
        for frame in joined(frames):
            self.runtime.received(frame)

    def ended(self) -> None:
        self.socket.close()


def joined(frames: list[Frame]) -> Iterator[Frame]:
    """The same frames with neighbouring pieces of one stream put together."""
    texts: list[str] = []
    last: Frame = {}
    for frame in frames:
        if frame["event"] != "stream":
            if texts:
                yield {**last, "text": "".join(texts)}
                texts = []
            yield frame
            last = {}
            continue
        if texts and (frame["name"] != last["name"] or frame["block"] != last["block"]):
            yield {**last, "text": "".join(texts)}
            texts = []
        last = frame
        texts.append(frame["text"])
    if texts:
        yield {**last, "text": "".join(texts)}


class Startup:
    """A worker's own stdout and stderr: before it is ready, the reason why it cannot start; then the block's."""

    order = 1
    LIMIT = 64 * 1024

    def __init__(self, runtime: Processes) -> None:
        self.runtime = runtime
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._data = b""
        self._open = True

    def fileno(self) -> int:
        return self.reader

    def ready(self) -> bool:
        try:
            data = os.read(self.reader, READ_SIZE)
        except BlockingIOError:
            return True
        self._take(data)
        return bool(data)

    def drain(self) -> None:
        with contextlib.suppress(OSError):
            while self._open and (data := os.read(self.reader, READ_SIZE)):
                self._take(data)

    def _take(self, data: bytes) -> None:
        if self.runtime.ready is None or self.runtime.block is None:
            self._data = (self._data + data)[-self.LIMIT :]
        elif data:
            text = data.decode("utf-8", "replace")
            self.runtime.block.put({"event": "stream", "name": "stderr", "text": text})

    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

    def ended(self) -> None:
        self._open = False
        os.close(self.reader)
