"""Keys during a turn: kept for the next prompt, or sent to the running block. Esc and Ctrl-C cancel."""

from __future__ import annotations

import codecs
import math
import os
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from interpreter.frontends.interrupts import TurnInterrupts
from interpreter.sigint import in_main_thread

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.render.display import TerminalDisplay
    from interpreter.frontends.terminal.render.plain import PlainDisplay
    from interpreter.frontends.terminal.tty import Tty
    from interpreter.messages import Chunk

QUIET_TIME = 0.8  # seconds without a key before a question may appear
CTRL_B = b"\x02"
ESCAPE = b"\x1b"
_SEQUENCE_GAP = 0.05  # seconds between the bytes of one key, at most
_PASTE = re.compile(r"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
# Keys such as arrows; and answers of the terminal to queries that arrive late.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|_G[^\x1b]*\x1b\\|\]1[01];[^\x07\x1b]*(?:\x07|\x1b\\)|.)?")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*)?\Z|\x1b\[200~(?:(?!\x1b\[201~).)*\Z", re.DOTALL)


class TypeAhead:
    """Text for the next prompt: lines that were sent with Enter, and one that is still being written."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.open = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> None:
        text = self._held + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._held = unfinished[0] if unfinished else ""
        text = text[: len(text) - len(self._held)]
        for number, part in enumerate(_PASTE.split(text)):
            if number % 2:
                self.open += part.replace("\r\n", "\n").replace("\r", "\n")
                continue
            for char in _ESCAPE.sub("", part):
                match char:
                    case "\r":
                        self.sent += [self.open] if self.open.strip() else []
                        self.open = ""
                    case "\x7f" | "\b":
                        self.open = self.open[:-1]
                    case "\x15":
                        self.open = ""
                    case _ if char == "\n" or char.isprintable():
                        self.open += char

    @property
    def shown(self) -> str:
        return " ⏎ ".join([*self.sent, self.open])

    def take_sent(self) -> str:
        """Remove and return the next message: a command alone, or all lines before the next command."""
        commands = [number for number, line in enumerate(self.sent) if line.startswith(("%", "/", "!", ">>>"))]
        end = max(commands[0], 1) if commands else len(self.sent)
        text, self.sent = "\n".join(self.sent[:end]), self.sent[end:]
        return text

    def take_all(self) -> str:
        text = "\n".join([*self.sent, self.open] if self.open else self.sent)
        self.sent, self.open = [], ""
        return text


class TurnKeyboard:
    """Keys and Ctrl-C during a turn. Keys are kept for the next prompt or go to the block that runs.

    A thread reads the keys and keeps the display's time while the main thread waits for chunks.
    """

    def __init__(
        self,
        tty: Tty,
        display: TerminalDisplay | PlainDisplay,
        typed: TypeAhead,
        interpreter: OpenInterpreter,
        marks: bool,
    ) -> None:
        self._tty, self._display, self._typed, self._interpreter = tty, display, typed, interpreter
        self._marks = marks  # around a paste
        self._takes_keys = in_main_thread() and tty.in_foreground
        self.interrupts = TurnInterrupts(lambda: self._call(self._cancel), lambda: self._call(self._resume))
        self._modes = ExitStack()
        self._to_block: Callable[[bytes], None] | None = None  # where keys go while a shell block runs
        self._reading = threading.Lock()  # held by the thread that reads standard input
        self._listening = False
        self._stopping = False
        self._calls: list[Callable[[], None]] = []
        self._failure: Exception | None = None
        self._last_key = 0.0
        self._until = math.inf  # when the thread wakes on its own
        self._key_typed = threading.Condition()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Handle keys and Ctrl-C inside this context, which lasts one turn."""
        display = self._display
        before, display.on_change = display.on_change, self._reschedule
        thread = threading.Thread(target=self._run, name="keyboard", daemon=True)
        thread.start()
        try:
            with self.interrupts.taken(), self._modes:
                self._listen()
                display.typed(self._typed.shown)
                yield
        finally:
            display.on_change = before  # between turns, a question must not wake a thread that has stopped
            self._stopping = True
            self._wake()
            thread.join()
            self._wake_reader.close()
            self._wake_writer.close()
            if self._failure:
                raise self._failure

    # -- who reads the keys --------------------------------------------------------------------------------

    @contextmanager
    def paused(self, state: Literal["asking", "elsewhere"], guarded: bool = False) -> Iterator[None]:
        """Leave the keys to a question, or the whole terminal to another program.

        `guarded`: wait until the user is not in the middle of typing.
        """
        if guarded and self._takes_keys:
            with self._key_typed:
                while (left := self._last_key + QUIET_TIME - time.monotonic()) > 0 and self._typed.open:
                    self._key_typed.wait(left)
        self._set_listening(False)
        self._modes.close()
        try:
            with self.interrupts.state(state):
                yield
        finally:
            self._listen()

    def query(self, queries: str) -> list[bytes]:
        """Query the terminal and return its answers. Keys that are typed while it answers are handled after them."""
        self._set_listening(False)
        try:
            answers, typed = self._tty.query(queries)
        finally:
            self._set_listening(True)
        self._call(partial(self._take, typed))
        return answers

    def _listen(self) -> None:
        if self._takes_keys:
            self._modes.enter_context(self._tty.keys(self._marks))
            self._set_listening(True)

    def _set_listening(self, on: bool) -> None:
        """Read keys, or stop it; returns when no read is in progress any more."""
        with self._reading:
            self._listening = on
        self._wake()

    # -- where keys go -------------------------------------------------------------------------------------

    def follow(self, chunk: Chunk) -> None:
        """Send keys where they belong: to the block that runs, or to the next prompt."""
        auto_run = self._interpreter.auto_run
        match chunk:
            case {"type": "code", "end": True, "role": "assistant"}:
                if auto_run and self._interpreter.safe_mode == "off":
                    self.block_runs(chunk.get("format", ""))
            case {"type": "status", "format": "scan"}:
                if auto_run and not chunk["content"]["asks"]:
                    self.block_runs(chunk["content"]["language"])
            case {"ended": _} | {"format": "active_line", "content": None}:
                self._to_block = None

    def block_runs(self, language: str) -> None:
        """Show that a block begins, and send it the keys if its language takes them."""
        self._display.running()
        if self._interpreter.computer.registry.describe(language).takes_keys:
            self._to_block = self._interpreter.computer.runtimes.send_keys

    def _take(self, data: bytes) -> None:
        if CTRL_B in data:
            data = data.replace(CTRL_B, b"")
            self._call(self._interpreter.computer.runtimes.detach)
        if self._to_block is not None:
            keys = data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"")
            self._call(partial(self._to_block, keys))
            return
        self._typed.feed(data)
        with self._key_typed:
            self._last_key = time.monotonic()
            self._key_typed.notify_all()
        self._display.typed(self._typed.shown)

    def _resume(self) -> None:
        self._tty.resume_keys()
        self._display.resumed()

    def _cancel(self) -> None:
        self._display.stopping()
        self._interpreter.cancel()

    # -- the thread ----------------------------------------------------------------------------------------

    def _call(self, function: Callable[[], None]) -> None:
        """Call a function on the thread; safe inside a signal handler."""
        self._calls.append(function)
        self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # the thread is awake already
            self._wake_writer.send(b"\0")

    def _reschedule(self) -> None:
        """Wake the thread if the display's deadline is now earlier."""
        deadline = self._display.deadline()
        if deadline is not None and deadline < self._until:
            self._wake()

    def _run(self) -> None:
        while not self._stopping:
            self._until = math.inf  # a change of the display from here on has to wake us
            deadline = self._display.deadline()
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
            self._display.tick()

    def _read(self) -> None:
        with self._reading:
            # A question may have read the keys since the check, and then a read would block until the next key.
            if not self._listening or not self._tty.has_typed():
                return
            try:
                data = os.read(self._tty.stdin.fileno(), 65536)
            except OSError:
                data = b""
            if not data:
                self._listening = False  # the terminal is gone
                return
            # The last key is Esc, and not the beginning of an arrow key or the like.
            is_escape = data.endswith(ESCAPE) and not select.select([self._tty.stdin], [], [], _SEQUENCE_GAP)[0]
        if is_escape and self._to_block is None:
            self._take(data.removesuffix(ESCAPE))
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:
            self._take(data)
