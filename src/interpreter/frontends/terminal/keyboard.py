"""Keys during a turn: kept for the next prompt, or sent to the running block."""

from __future__ import annotations

import codecs
import math
import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from interpreter.frontends.terminal.tty import Tty

CTRL_B = b"\x02"
_PASTE = re.compile(r"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
# Keys such as arrows; and answers of the terminal to queries that arrive late.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|_G[^\x1b]*\x1b\\|\]1[01];[^\x07\x1b]*(?:\x07|\x1b\\)|.)?")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*)?\Z|\x1b\[200~(?:(?!\x1b\[201~).)*\Z", re.DOTALL)


class Clock(Protocol):
    """Something that is drawn from time to time."""

    def deadline(self) -> float | None: ...
    def tick(self) -> None: ...


class TypeAhead:
    """Text for the next prompt: lines that were sent with Enter, and one that is still being written."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.open = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> None:
        """Add keys."""
        text = self._held + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._held = unfinished[0] if unfinished else ""
        text = text[: len(text) - len(self._held)]
        for number, part in enumerate(_PASTE.split(text)):
            if number % 2:
                self.open += part.replace("\r\n", "\n").replace("\r", "\n")
                continue
            for char in _ESCAPE.sub("", part):
                if char == "\r":
                    self.sent += [self.open] if self.open.strip() else []
                    self.open = ""
                elif char in "\x7f\b":
                    self.open = self.open[:-1]
                elif char == "\x15":
                    self.open = ""
                elif char == "\n" or char.isprintable():
                    self.open += char

    @property
    def shown(self) -> str:
        """All of it, as one line."""
        return " ⏎ ".join([*self.sent, self.open])

    def take_sent(self) -> str:
        """The message that was sent, if any."""
        text, self.sent = "\n".join(self.sent), []
        return text

    def take_all(self) -> str:
        """Everything, to be edited again."""
        text = "\n".join([*self.sent, self.open] if self.open else self.sent)
        self.sent, self.open = [], ""
        return text


class Keyboard:
    """A thread that reads keys and keeps the display's time while the main thread waits for chunks."""

    def __init__(self, tty: Tty, clock: Clock, typed: TypeAhead) -> None:
        self._tty, self._clock, self._typed = tty, clock, typed
        self.to_block: Callable[[bytes], None] | None = None  # where keys go while a shell block runs
        self.on_ctrl_b: Callable[[], None] = lambda: None
        self.on_typed: Callable[[str], None] = lambda text: None
        self._reading = threading.Lock()  # held by the thread that reads standard input
        self._listening = False
        self._stopping = False
        self._calls: list[Callable[[], None]] = []
        self._failure: Exception | None = None
        self._last_key = 0.0
        self._until = math.inf  # when it wakes by itself
        self._key_typed = threading.Condition()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="keyboard", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self.wake()
        self._thread.join()
        self._wake_reader.close()
        self._wake_writer.close()
        if self._failure:
            raise self._failure

    def listen(self, on: bool) -> None:
        """Read keys, or stop it; returns when no read is in progress any more."""
        with self._reading:
            self._listening = on
        self.wake()

    def call(self, function: Callable[[], None]) -> None:
        """Call a function on the keyboard's thread; safe inside a signal handler."""
        self._calls.append(function)
        self.wake()

    def wake(self) -> None:
        try:
            self._wake_writer.send(b"\0")
        except BlockingIOError:
            return  # it is awake

    def reschedule(self) -> None:
        """The clock's deadline may have changed."""
        deadline = self._clock.deadline()
        if deadline is not None and deadline < self._until:
            self.wake()

    def wait_until_quiet(self, seconds: float) -> None:
        """Wait until the user is not in the middle of typing."""
        with self._key_typed:
            while (left := self._last_key + seconds - time.monotonic()) > 0 and self._typed.open:
                self._key_typed.wait(left)

    def _run(self) -> None:
        while not self._stopping:
            self._until = math.inf  # a change of the clock from here on has to wake us
            deadline = self._clock.deadline()
            self._until = math.inf if deadline is None else deadline
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
            sources = [self._wake_reader, *([self._tty.stdin] if self._listening else [])]
            ready = select.select(sources, [], [], timeout)[0]
            if self._wake_reader in ready:
                self._wake_reader.recv(4096)
            while self._calls:
                try:
                    self._calls.pop(0)()
                except Exception as error:  # noqa: BLE001 - raised to the main thread when we stop
                    self._failure = error
            if self._tty.stdin in ready:
                self._read()
            self._clock.tick()

    def _read(self) -> None:
        with self._reading:
            if not self._listening:
                return
            try:
                data = os.read(self._tty.stdin.fileno(), 65536)
            except OSError:
                data = b""
            if not data:
                self._listening = False  # the terminal is gone
                return
        self.take(data)

    def take(self, data: bytes) -> None:
        """Handle keys that were typed."""
        if CTRL_B in data:
            data = data.replace(CTRL_B, b"")
            self.call(self.on_ctrl_b)
        if self.to_block is not None:
            keys = data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"")
            self.call(partial(self.to_block, keys))
            return
        self._typed.feed(data)
        with self._key_typed:
            self._last_key = time.monotonic()
            self._key_typed.notify_all()
        self.on_typed(self._typed.shown)
