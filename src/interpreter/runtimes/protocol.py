"""The driver protocol on the host's side: frames and their schema, the connections they use, and the reader thread."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

Frame = dict[str, Any]

MAX_FRAME_BYTES = 1 << 26  # bytes of a frame
READ_SIZE = 256 * 1024
MAX_DRAINED_BYTES = 1 << 23  # bytes; more than the connection holds

# -- the schema --------------------------------------------------------------------------------------------------------

# The frames that a worker may send. It runs code that may be hostile and may find the driver's connection: a frame that
# does not match ends the worker, before any other part of the host has seen the frame.

Check = Callable[[Any], bool]
MAX_DEPTH = 320  # nested lists and objects; as deep as the driver packs the arguments of a call


def optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def number(least: int = 0, most: int = 1 << 31) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def text(longest: int) -> Check:
    return lambda value: isinstance(value, str) and len(value) <= longest


def one_of(*choices: str) -> Check:
    return lambda value: isinstance(value, str) and value in choices


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def list_of(check: Check, most: int, least: int = 0) -> Check:
    return lambda value: isinstance(value, list) and least <= len(value) <= most and all(map(check, value))


def object_of(**fields: Check) -> Check:
    return lambda value: (
        isinstance(value, dict)
        and value.keys() <= fields.keys()
        and all(check(value.get(name)) for name, check in fields.items())
    )


def is_shallow(value: Any, left: int) -> bool:
    """Check that lists and objects are not nested too deeply."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left > 0 and all(is_shallow(each, left - 1) for each in inner)


def free(kind: type[list[Any] | dict[str, Any]], most: int) -> Check:
    """Make a check that accepts any JSON value of a kind that is not nested too deeply."""
    return lambda value: isinstance(value, kind) and len(value) <= most and is_shallow(value, MAX_DEPTH)


COUNT, SIZE = number(), number(most=1 << 63)
NAME, LINE, TEXT = text(1000), text(1 << 20), text(MAX_FRAME_BYTES)
LINES = optional(list_of(LINE, 10_000))
VARIABLE = object_of(name=LINE, type=LINE, preview=optional(LINE), shape=optional(LINE), size=optional(SIZE))
FAILURE = object_of(number=number(-(1 << 31)), path=LINE, kind=optional(LINE))
FRAMES: dict[str, dict[str, Check]] = {
    "ready": {
        "language": optional(NAME),
        "version": optional(NAME),
        "engine": optional(NAME),
        "lost": LINES,
        "unknown_threads": optional(COUNT),
        "not_preloaded": optional(LINE),
    },
    "sync": {},
    "turn": {},
    "stream": {"block": COUNT, "name": one_of("stdout", "stderr"), "text": TEXT},
    "display": {"block": COUNT, "data": free(dict, 100)},
    "active_line": {"block": COUNT, "line": COUNT},
    "input_request": {"block": COUNT, "prompt": TEXT, "password": optional(flag)},
    "call": {
        "block": COUNT,
        "call": COUNT,
        "path": NAME,
        "how": one_of("call", "get", "set", "names", "describe", "code"),
        "args": optional(free(list, 10_000)),
        "kwargs": optional(free(dict, 10_000)),
    },
    "share": {"block": COUNT, "name": NAME, "data": TEXT},
    "call_off": {"block": optional(COUNT), "call": COUNT},
    "done": {
        "block": COUNT,
        "status": one_of("ok", "error", "interrupted"),
        "exit_code": optional(number(-(1 << 31))),
        "cwd": optional(LINE),
        "threads": optional(flag),
        "errors": optional(list_of(FAILURE, 100)),
        "missing": optional(NAME),
        "denied": optional(object_of(paths=LINES, hosts=LINES)),
    },
    "answer": {
        "query": COUNT,
        "failed": optional(TEXT),
        "lost": LINES,
        "missing": LINES,
        "variables": optional(list_of(VARIABLE, 1000)),
        "start": optional(COUNT),
        "matches": optional(list_of(list_of(LINE, 2, least=2), 1000)),
        "kind": optional(one_of("table", "picture", "text", "file")),
        "type": optional(LINE),
        "text": optional(TEXT),
        "data": optional(free(dict, 100)),
        "rows": optional(SIZE),
        "columns": optional(SIZE),
        "total": optional(SIZE),
        "index": LINES,
        "header": LINES,
        "numeric": optional(list_of(flag, 10_000)),
        "cells": optional(list_of(list_of(LINE, 10_000), 1000)),
    },
    # Sent by a process that enters an overlay, over a separate connection.
    "entered": {
        "failed": optional(LINE),
        "layers": optional(free(dict, 1000)),
        "namespace": optional(SIZE),
        "lost": LINES,
    },
}


class BadFrame(ValueError):
    """A worker sent something that no driver sends."""


def decode(line: bytes) -> Frame:
    """Parse a line into a frame. Raises BadFrame if it does not follow the schema."""
    try:
        frame: Frame = json.loads(line)
    except (ValueError, RecursionError):
        raise BadFrame("a message that is not JSON") from None
    check_frame(frame, FRAMES)
    return frame


def check_frame(frame: Any, schema: dict[str, dict[str, Check]]) -> None:
    """Raise BadFrame if a frame does not follow a schema, which lists the fields of each event."""
    event = frame.get("event") if isinstance(frame, dict) else None
    if not isinstance(event, str) or event not in schema:
        raise BadFrame("a message of an unknown kind")
    for name, check in schema[event].items():
        if not check(frame.get(name)):
            raise BadFrame(f"`{event}` with a wrong or missing `{name}`")
    if frame.keys() - schema[event].keys() != {"event"}:
        raise BadFrame(f"`{event}` with an unknown field")


# -- frames ------------------------------------------------------------------------------------------------------------


def encode(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class LineSplitter:
    """Splits a byte stream into lines; a long unfinished line is held in pieces, so the cost stays linear."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now.

        Raises BadFrame if one grows so long that it would fill our memory.
        """
        head, newline, rest = data.partition(b"\n")
        self._held += len(head)
        if self._held > MAX_FRAME_BYTES:
            raise BadFrame(f"a message of more than {MAX_FRAME_BYTES >> 20} MB")
        self._open.append(head)
        if not newline:
            return []
        begun = b"".join(self._open)
        *whole, last = rest.split(b"\n")
        self._open, self._held = [last] if last else [], len(last)
        return [begun, *whole]


def joined(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Join neighbouring pieces of one stream into one frame."""

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
    order: int  # lower ones are served first within one round

    def fileno(self) -> int: ...

    def ready(self) -> bool:
        """Read what is available. False at the end of the stream."""

    def ended(self) -> None:
        """Close it: the reader no longer uses it."""


class OutputReader:
    """Reads its sources in its own thread whenever they have something, so that nothing a runtime writes can block it.

    The thread calls `tend` before each wait; `tend` returns the longest time to wait in seconds, or None.
    """

    def __init__(self, name: str, tend: Callable[[], float | None] = lambda: None) -> None:
        self._selector = selectors.DefaultSelector()
        self._tend = tend
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._stopped = False
        self._waking = threading.Lock()  # held to write to the pipe, and to close it
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def watch(self, source: Source) -> None:
        # epoll and kqueue accept a new descriptor while another thread waits on them.
        self._selector.register(source.fileno(), selectors.EVENT_READ, source)

    def wake(self) -> None:
        """Make the thread call `tend` again. Safe from any thread."""
        with self._waking, contextlib.suppress(OSError):  # it is awake already, or gone
            os.write(self._waker, b"x")

    @property
    def is_current(self) -> bool:
        """Check whether this is the reader's own thread.

        It can finalise an abandoned generator, but not wait for itself.
        """
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        self._stopped = True
        self.wake()
        if not self.is_current:
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopped:
            ready = [key for key, _ in self._selector.select(self._tend())]
            sources: list[Source] = [key.data for key in ready if key.data]
            if len(sources) < len(ready):
                os.read(self._wake, 4096)
            # Serve only frames in this round: a sync among them may empty a pipe that was ready, and newer text may
            # arrive.
            frames = [source for source in sources if source.order == 0]
            for source in frames or sorted(sources, key=lambda source: source.order):
                if not source.ready():
                    self._selector.unregister(source.fileno())
                    source.ended()
        for key in list(self._selector.get_map().values()):
            if key.data:
                key.data.ended()
        self._selector.close()
        with self._waking:
            os.close(self._wake)
            os.close(self._waker)
            self._waker = -1


# -- connections -------------------------------------------------------------------------------------------------------


class LineConnection:
    """Our end of a socket that carries lines."""

    order = 0

    def __init__(self, ours: socket.socket) -> None:
        self.socket = ours
        self._lines = LineSplitter()

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> bytes:
        try:
            return self.socket.recv(READ_SIZE)
        except OSError:
            return b""

    def ended(self) -> None:
        self.socket.close()


class Control(LineConnection):
    """The connection to the supervisor: `said` gets each answer, split at blanks, and `gone` is called at the end."""

    order = 2  # an exit is handled after everything the worker sent

    def __init__(self, ours: socket.socket, said: Callable[[list[str]], None], gone: Callable[[], None]) -> None:
        super().__init__(ours)
        self._said, self._gone = said, gone
        self._writing = threading.Lock()
        self._ordered = 0  # unconfirmed commands
        self._obeyed = threading.Condition()
        self.over = threading.Event()  # the supervisor is gone, or treated as gone
        self.stays = False  # its runtime has ended, but runtimes that split off depend on it

    def say(self, command: str, fds: list[int] | None = None) -> None:
        with self._writing, contextlib.suppress(OSError):  # if the supervisor is gone, so is everything else
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
        """Check whether the supervisor is gone, for example because it was killed."""
        return self.over.is_set()

    def give_up(self) -> None:
        """Expect nothing more from the supervisor."""
        self.over.set()
        self._confirm(self._ordered)

    def ready(self) -> bool:
        data = self.receive()
        try:
            for line in self._lines.feed(data):
                answer = line.decode().split()
                if answer == ["obeyed"]:
                    self._confirm(1)
                else:
                    self._said(answer)
        except ValueError:
            data = b""  # not from a supervisor: code has found the socket
        if not data:
            self._gone()
        return bool(data)


class Data(LineConnection):
    """The connection to the worker: `received` gets its frames, and `rejected` the reason if it breaks the protocol."""

    def __init__(
        self, ours: socket.socket, received: Callable[[Data, Frame], None], rejected: Callable[[Data, str], None]
    ) -> None:
        super().__init__(ours)
        self._received, self._rejected = received, rejected
        self.over = False  # its worker has ended, so what other processes write is not read

    def ready(self) -> bool:
        data = self.receive()
        return not self.over and self._take(data) and bool(data)

    def drain(self) -> None:
        """Read everything sent so far, but little more: other processes may still write."""
        taken = 0
        with contextlib.suppress(OSError):
            while taken < MAX_DRAINED_BYTES and (data := self.socket.recv(READ_SIZE, socket.MSG_DONTWAIT)):
                taken += len(data) if self._take(data) else MAX_DRAINED_BYTES

    def _take(self, data: bytes) -> bool:
        """Pass on the frames. False if one breaks the protocol; the rest is ignored."""
        try:
            for frame in joined(map(decode, self._lines.feed(data))):
                self._received(self, frame)
        except BadFrame as error:
            self._rejected(self, str(error))
            return False
        return True


def family(pid: int) -> list[int]:
    """List a process and its descendants (Linux). Children come after their parents."""
    pids = [pid]
    for each in pids:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                pids += map(int, Path(f"/proc/{each}/task/{task}/children").read_text().split())
        except OSError:
            continue  # it has just ended
    return pids
