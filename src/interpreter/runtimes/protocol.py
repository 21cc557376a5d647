"""The driver protocol on the host's side: frames as JSON lines, the connections they use, and the thread that reads."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Frame = dict[str, Any]

# What a driver may say, and what has to be in it. A worker runs code that may be hostile: it must not be able to speak
# as the host does (`call_asks`, `exited`), nor to stop the reader with a malformed frame.
_OF_BLOCK: dict[str, type] = {"block": int}
SAID: dict[str, dict[str, type]] = {
    "ready": {},
    "answer": {},
    "sync": {},
    "turn": {},
    "stream": {**_OF_BLOCK, "name": str, "text": str},
    "display": {**_OF_BLOCK, "data": dict},
    "active_line": {**_OF_BLOCK, "line": int},
    "input_request": {**_OF_BLOCK, "prompt": str},
    "done": {**_OF_BLOCK, "status": str},
    "call": {**_OF_BLOCK, "call": int, "path": str, "how": str},
    "call_off": {"call": int},
}
LONGEST = 1 << 28  # bytes of a frame
READ_SIZE = 256 * 1024

# -- frames ------------------------------------------------------------------------------------------------------------


def encode(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def decode(line: bytes) -> Frame | None:
    """The frame of a line; None for a malformed one (a driver may be killed in the middle of it)."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(frame, dict):
        return None
    event = frame.get("event")
    needed = SAID.get(event) if isinstance(event, str) else None
    if needed is None or not all(isinstance(frame.get(name), kind) for name, kind in needed.items()):
        return None
    return frame


class Lines:
    """Splits a byte stream into lines; a long unfinished line is held in pieces, so the cost stays linear."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._open: list[bytes] = []
        self._held, self._longest = 0, longest

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now; one that is too long is dropped, so that code cannot fill our memory."""
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


def joined(frames: list[Frame]) -> Iterator[Frame]:
    """The same frames with neighbouring pieces of one stream put together."""

    def stream(frame: Frame) -> tuple[str, int] | None:
        return (frame["name"], frame["block"]) if frame["event"] == "stream" else None

    for kind, group in itertools.groupby(frames, stream):
        if kind is None:
            yield from group
        else:
            pieces = list(group)
            yield {**pieces[-1], "text": "".join([piece["text"] for piece in pieces])}


# -- the reader --------------------------------------------------------------------------------------------------------


class Source(Protocol):
    """Something that can be read."""

    order: int  # lower ones are served first within one round

    def fileno(self) -> int: ...

    def ready(self) -> bool:
        """Read what is there; False at the end."""

    def ended(self) -> None:
        """The reader does not use it any more: close it."""


class Reader:
    """Reads its sources in its own thread whenever they have something, so that nothing a runtime writes can block it.

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


# -- connections -------------------------------------------------------------------------------------------------------


class Connection:
    """Our end of a socket that carries lines."""

    order = 0

    def __init__(self, ours: socket.socket) -> None:
        self.socket = ours
        self._lines = Lines()

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> bytes:
        try:
            return self.socket.recv(READ_SIZE)
        except OSError:
            return b""

    def ended(self) -> None:
        self.socket.close()


class Control(Connection):
    """The connection to the supervisor: `said` gets its answers, word by word, and `gone` is called at the end."""

    order = 2  # an exit is news only after everything the worker said

    def __init__(self, ours: socket.socket, said: Callable[[list[str]], None], gone: Callable[[], None]) -> None:
        super().__init__(ours)
        self._said, self._gone = said, gone
        self._writing = threading.Lock()
        self._ordered = 0  # commands that were sent and not yet confirmed
        self._obeyed = threading.Condition()
        self.over = threading.Event()  # the supervisor is gone, or as good as that
        self.stays = False  # its runtime is over, but runtimes that split off depend on it

    def say(self, command: str, fds: list[int] | None = None) -> None:
        with self._writing, contextlib.suppress(OSError):  # a supervisor that is gone took everything along
            socket.send_fds(self.socket, [command.encode() + b"\n"], fds or [])

    def command(self, command: str, fds: list[int] | None = None) -> None:
        """Send a command that the supervisor confirms."""
        with self._obeyed:
            self._ordered += 1
        self.say(command, fds)

    def wait(self) -> None:
        """Wait until all commands are confirmed, or the supervisor is gone."""
        with self._obeyed:
            self._obeyed.wait_for(lambda: self._ordered <= 0 or self.lost)

    def _confirm(self, count: int) -> None:
        with self._obeyed:
            self._ordered -= count
            self._obeyed.notify_all()

    @property
    def lost(self) -> bool:
        """Whether the supervisor is gone, for example because it was killed."""
        return self.over.is_set()

    def give_up(self) -> None:
        """Expect nothing more from the supervisor."""
        self.over.set()
        self._confirm(self._ordered)

    def shut(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def ready(self) -> bool:
        data = self.receive()
        try:
            for line in self._lines.feed(data):
                words = line.decode().split()
                if words == ["obeyed"]:
                    self._confirm(1)
                else:
                    self._said(words)
        except ValueError:
            data = b""  # no supervisor says that: code has got hold of the socket
        if not data:
            self._gone()
        return bool(data)


class Data(Connection):
    """The connection to the worker: `received` gets its frames."""

    def __init__(self, ours: socket.socket, received: Callable[[Frame], None]) -> None:
        super().__init__(ours)
        self._received = received

    def ready(self) -> bool:
        data = self.receive()
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
            self._received(frame)
