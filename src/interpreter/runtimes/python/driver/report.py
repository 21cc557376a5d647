"""What a block tells the host while it runs, in the order in which it happens.

What goes to standard output, from the block itself as from its children, travels through the block's pipe;
everything else is a frame. Before a frame is sent, the host is asked to read what is still in the pipes.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios
from _thread import get_ident
from itertools import count
from json.encoder import encode_basestring

from .channel import encoded, to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    from .channel import Channel, Frame

LONGEST_PIECE = 256 * 1024  # characters in one frame
DESCRIPTORS = {"stdout": 1, "stderr": 2}
NOTHING = bytes(4)
FORKED = "A process that was forked has no line to the computer: use `computer` in the block's own process."
NO_BLOCK = "Only a running block can use the computer, and the one that this belongs to has ended."
NO_LINE = "The computer cannot be reached from here."


class Report:
    """Speaks for the block that runs; between blocks, for the one that ran last."""

    def __init__(self, channel: Channel) -> None:
        self.number = 0
        self.forked = False  # this is a process that the user's code forked: it has no line to the host
        self.flush: Callable[[], None] = lambda: None  # sends the unfinished lines of the calling thread
        self._channel = channel
        self._calls = count(1)  # to the computer's tools
        self._main = get_ident()
        self._pipes: List[int] = []  # where children write; empty between blocks
        self._null = clear_of_streams(os.open(os.devnull, os.O_RDWR))

    # -- from block to block ---------------------------------------------------------------------------------

    def begin(self, number: int, pipes: List[int]) -> None:
        """From now on standard output and error, of children too, are these pipes."""
        self.number, self._pipes = number, [clear_of_streams(pipe) for pipe in pipes]
        for pipe, target in zip(self._pipes, DESCRIPTORS.values()):
            os.dup2(pipe, target)

    def end(self, done: Frame) -> None:
        """Let go of the block's pipes, so that they close when its last child does."""
        pipes, self._pipes = self._pipes, []
        for target in DESCRIPTORS.values():
            os.dup2(self._null, target)
        for pipe in pipes:
            os.close(pipe)
        self._channel.send({"event": "done", "block": self.number, **done})

    def leave(self) -> None:
        """In a process that the user's code forked: output goes to the descriptors from now on."""
        self.forked = True
        self._channel.leave()

    # -- what a block says -----------------------------------------------------------------------------------

    def stream(self, name: str, text: str) -> None:
        if self.forked:
            write_to_descriptor(DESCRIPTORS[name], text)
            return
        for start in range(0, len(text), LONGEST_PIECE):
            piece = to_bytes(encode_basestring(text[start : start + LONGEST_PIECE]))
            prefix = b'{"event":"stream","block":%d,"name":"%s","text":' % (self._number(), name.encode())
            self._send(prefix + piece + b"}\n")

    def display(self, data: Dict[str, Any], display_id: Optional[str] = None, update: bool = False) -> None:
        self.flush()
        if self.forked:
            self.stream("stdout", "%s\n" % data.get("text/plain", ""))
            return
        frame: Frame = {"event": "display", "block": self._number(), "data": data}
        if display_id is not None:
            frame.update(display_id=display_id, update=update)
        self._send(encoded(frame))

    def clear(self, wait: bool) -> None:
        self.flush()
        self._send(encoded({"event": "clear", "block": self._number(), "wait": wait}))

    def active_line(self, line: int) -> None:
        self._send(b'{"event":"active_line","block":%d,"line":%d}\n' % (self.number, line))

    def ask(self, prompt: str, password: bool = False) -> Optional[str]:
        """The user's answer; None for end of file. Only the main thread of a running block can ask."""
        if self.forked or not self._pipes or get_ident() != self._main:
            return None
        self.flush()
        self._send(encoded({"event": "input_request", "block": self.number, "prompt": prompt, "password": password}))
        while True:
            frame = self._channel.wait_for("input")
            if frame is None:
                return None
            if frame.get("block") == self.number:  # else the answer to a question that was interrupted
                return None if frame.get("eof") else str(frame.get("text", ""))

    def call(self, what: Frame) -> Any:
        """Have the computer's tools do something, from any thread of a running block: what came of it."""
        from . import parcels

        number = self._number()
        if self.forked:
            raise parcels.ComputerError(FORKED)
        if what["how"] in ("call", "get", "set") and (not self._pipes or number != self.number):
            raise parcels.ComputerError(NO_BLOCK)
        given: Frame = {name: parcels.packed(what[name]) for name in ("args", "kwargs") if name in what}
        self.flush()
        call = next(self._calls)
        frame: Frame = {"event": "call", "block": number, "call": call, **what, **given}
        self._channel.expect(call)
        try:
            self._send(encoded(frame))
            reply = self._channel.wait_for_reply(call)
        except BaseException:
            self._channel.send({"event": "call_off", "block": number, "call": call})
            raise
        finally:
            self._channel.forget(call)
        if reply is None:
            raise parcels.ComputerError(NO_LINE)
        if "error" in reply:
            raise parcels.unpacked_error(reply["error"]) from None
        return parcels.unpacked(reply.get("value"))

    # -- order -----------------------------------------------------------------------------------------------

    def _send(self, frame: bytes) -> None:
        if not self.forked:
            if self._something_in_pipes():
                self._channel.sync()
            self._channel.write(frame)

    def _something_in_pipes(self) -> bool:
        waiting = bytearray(NOTHING)
        for pipe in self._pipes:
            fcntl.ioctl(pipe, termios.FIONREAD, waiting)
            if waiting != NOTHING:
                return True
        return False

    # -- threads ---------------------------------------------------------------------------------------------

    def _number(self) -> int:
        """The block that the calling thread belongs to: the one that was running when it started."""
        threading = sys.modules.get("threading")
        if threading is None or get_ident() == self._main:
            return self.number
        return int(getattr(threading.current_thread(), "_interpreter_block", self.number))

    def mark_threads(self) -> bool:
        """At the end of a block: remember which threads it leaves behind; whether there are any."""
        threading = sys.modules.get("threading")
        if threading is None:
            return False
        others = [thread for thread in threading.enumerate() if thread.ident != self._main]
        for thread in others:
            thread.__dict__.setdefault("_interpreter_block", self.number)
        return bool(others)


def clear_of_streams(fd: int) -> int:
    """The descriptor itself, or another for it where user code has left the number of a stream free."""
    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def write_to_descriptor(fd: int, text: str) -> None:
    data = to_bytes(text)
    while data:
        data = data[os.write(fd, data) :]
