"""The lines of a session: to its supervisor, to its worker, and what the worker says before it can speak in frames."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interpreter.runtimes.frames import (
    Frame,
    Lines,
    decode,
)
from interpreter.runtimes.reader import READ_SIZE

if TYPE_CHECKING:
    from interpreter.runtimes.processes import Processes


class Control:
    """The line to the supervisor."""

    order = 2  # an exit is news only after everything the worker said

    def __init__(self, session: Processes, ours: socket.socket) -> None:
        self.session, self.socket = session, ours
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
            if self.session.alive:
                self.session.worker_exited(-9)
        return bool(data)

    def _heard(self, words: list[str]) -> None:
        match words:
            case ["spawned", pid]:
                self.session.pid = int(pid)
            case ["exited", pid, code] if int(pid) == self.session.pid:
                self.session.worker_exited(int(code))
            case ["gone", state]:
                self.session.snapshots.gone(int(state))
            case ["left" | "promoted" | "split" | "missing" | "settled" as what, *words]:
                self.session.snapshots.promotion_said(what, words)
            case ["staying"] if self.session.first.parts:  # they need it
                self.stays = True
                self._gone()  # a wrapper around it may hold the line
            case ["obeyed"]:
                self._confirm(1)

    def _gone(self) -> None:
        self.over.set()
        self._confirm(self._ordered)
        self.session.snapshots.promotion_said("missing", [])

    def ended(self) -> None:
        self.socket.close()


class Data:
    """The line to the worker."""

    order = 0

    def __init__(self, session: Processes, ours: socket.socket) -> None:
        self.session, self.socket = session, ours
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
            self.session.received(frame)

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

    def __init__(self, session: Processes) -> None:
        self.session = session
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
        if self.session.ready is None or self.session.block is None:
            self._data = (self._data + data)[-self.LIMIT :]
        elif data:
            text = data.decode("utf-8", "replace")
            self.session.block.put({"event": "stream", "name": "stderr", "text": text})

    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

    def ended(self) -> None:
        self._open = False
        os.close(self.reader)
