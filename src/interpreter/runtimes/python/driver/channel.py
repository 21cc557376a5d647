"""The connection to the host, and what a block reports over it while it runs.

Frames are JSON, one per line, each written whole; some come with file descriptors. Standard output, of the block and of
its children, goes through the block's pipe; everything else is a frame. Before a frame is sent, the host is asked to
read the rest of the pipes, so that the order is preserved.
"""

from __future__ import annotations

import _socket
import array
import fcntl
import json
import os
import select
import sys
import termios
from _thread import RLock, allocate_lock, get_ident
from collections import deque
from functools import partial
from itertools import count

from .hints import Any, Callable, Frame
from .interrupts import Interrupts

READ_SIZE = 65536
MAX_DESCRIPTORS = 8
CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
MAX_PIECE_LENGTH = 256 * 1024  # characters in one frame
MAX_FRAME_BYTES = 1 << 26  # bytes, as in the host's protocol.py
DESCRIPTORS = {"stdout": 1, "stderr": 2}


class Channel:
    """Any thread may send; one at a time receives, usually the main one."""

    def __init__(self, fd: int, interrupts: Interrupts) -> None:
        self.fd = fd
        self._socket = _socket.socket(fileno=fd)
        self._socket.setblocking(True)
        self._interrupts = interrupts
        self._main = get_ident()
        self._lock = RLock()
        self._receiving = RLock()
        self._outgoing: deque[bytes] = deque()
        self._writing = False
        self._unfinished: list[bytes] = []
        self._frames: deque[Frame] = deque()
        self._descriptors: deque[int] = deque()
        self._replies: dict[int, Reply] = {}  # replies that threads wait for
        self._wanted = 0  # how many times the main thread, signal handlers included, waits for another to stop reading
        self._readable = select.poll()
        self._readable.register(fd, select.POLLIN)

    def send(self, frame: Frame) -> None:
        self.write(encoded(frame))

    def write(self, frame: bytes) -> None:
        """Send the bytes of a whole frame; interrupts are deferred until they are written."""
        with self._interrupts, self._lock:
            self._outgoing.append(frame)
            if self._writing:
                return  # a finalizer or a signal handler, while this thread writes
            self._writing = True
            try:
                while self._outgoing:
                    self._socket.sendall(self._outgoing.popleft())
            except OSError:
                self._outgoing.clear()  # the host is gone, and the supervisor is about to end us
            finally:
                self._writing = False

    def receive(self, op: str | None = None) -> Frame | None:
        """Receive the next frame, or the next of this kind, in the main thread. None when the host is gone."""
        with self._interrupts:
            self._take_turn()
            try:
                return self._next(op, self._wait)
            finally:
                self._leave_turn()

    def sync(self) -> None:
        """Make the host read the block's pipes first; skipped in a thread while the main one receives."""
        if self._is_occupied():
            return
        with self._interrupts:
            if self._take_turn():
                try:
                    self.send({"event": "sync"})
                    self._next("synced", self._readable.poll)
                finally:
                    self._leave_turn()

    def request(self, number: int, send: Callable[[], None]) -> Frame | None:
        """Send a call and wait for its reply, from any thread; None when the host is gone.

        The main thread can be interrupted while it waits.
        """
        reply = self._replies[number] = Reply()
        try:
            send()
            with self._interrupts:
                while not reply.is_there:
                    if self._is_occupied():
                        return None
                    if not self._take_turn():
                        reply.lock.acquire()
                        continue
                    try:
                        while not reply.is_there and not (self._wanted and get_ident() != self._main):
                            self._wait()
                            if not self._read():
                                for each in self._replies.values():
                                    each.arrive(None)  # the host is gone
                    finally:
                        self._leave_turn()
            return reply.frame
        finally:
            self._replies.pop(number, None)

    def has_input(self) -> bool:
        return bool(self._frames or self._readable.poll(0))

    def take_descriptors(self, count: int) -> list[int]:
        """Take the oldest descriptors that came with frames, at most `count`."""
        return [self._descriptors.popleft() for _ in range(min(count, len(self._descriptors)))]

    def renew(self, fd: int) -> None:
        """Switch to a new connection to the host, in a snapshot that resumes."""
        os.dup2(fd, self.fd, inheritable=False)
        os.close(fd)
        for other in self.take_descriptors(len(self._descriptors)):
            os.close(other)
        for held in (self._frames, self._unfinished, self._outgoing, self._replies):
            held.clear()
        self._lock, self._receiving, self._writing, self._wanted = RLock(), RLock(), False, 0

    def leave(self) -> None:
        """Stop using the connection, in a process that the user's code forked."""
        self._lock = RLock()
        self._outgoing.clear()
        self._socket.close()

    # -- reading, one thread at a time -----------------------------------------------------------------------

    def _is_occupied(self) -> bool:
        """Check whether this is a finalizer or a signal handler that interrupted its thread while waiting or writing.

        A lock knows its owner from the moment that it is taken, when a signal handler may run.
        """
        return bool(self._receiving._is_owned() or self._lock._is_owned())  # type: ignore[attr-defined]

    def _take_turn(self) -> bool:
        """Start reading: the main thread as soon as another one has stopped, others only if no thread reads."""
        is_main = get_ident() == self._main
        if (is_main or not self._wanted) and self._receiving.acquire(False):
            return True
        if not is_main:
            return False
        self._wanted += 1
        self.send({"event": "turn"})  # the answer wakes the thread that reads
        self._receiving.acquire()
        self._wanted -= 1
        return True

    def _leave_turn(self) -> None:
        """Let another thread that waits for a reply read."""
        self._receiving.release()
        if not self._wanted:
            for reply in list(self._replies.values()):
                reply.wake()

    def _wait(self) -> None:
        self._interrupts.wait(self._readable.poll)  # an interrupt may be raised here, where nothing is lost

    def _next(self, op: str | None, wait: Callable[[], Any]) -> Frame | None:
        """Return the next frame, or the next of this kind; other frames are kept for later."""
        others: list[Frame] = []
        try:
            while True:
                while not self._frames:
                    wait()
                    if not self._read():
                        return None
                frame = self._frames.popleft()
                if op is None or frame.get("op") == op:
                    return frame
                others.append(frame)
        finally:
            self._frames.extendleft(reversed(others))

    def _read(self) -> bool:
        """Read from the socket, and hand out replies; False when the host is gone."""
        try:
            data, ancillary, _, _ = self._socket.recvmsg(READ_SIZE, DESCRIPTOR_SPACE, CLOSE_ON_EXEC)
        except OSError:
            return False
        self._descriptors.extend(received_descriptors(ancillary))
        if b"\n" not in data:
            self._unfinished.append(data)
            return bool(data)
        whole, _, rest = data.rpartition(b"\n")
        lines = b"".join([*self._unfinished, whole]).split(b"\n")
        self._unfinished = [rest]
        for frame in [json.loads(line) for line in lines if line]:
            if frame.get("op") == "reply":
                reply = self._replies.get(frame.get("call", 0))
                if reply is not None:  # else its thread was interrupted
                    reply.arrive(frame)
            elif frame.get("op") != "turn":
                self._frames.append(frame)
        return True


class Reply:
    def __init__(self) -> None:
        self.is_there = False
        self.frame: Frame | None = None
        self.lock = allocate_lock()
        self.lock.acquire()

    def arrive(self, frame: Frame | None) -> None:
        if not self.is_there:
            self.frame, self.is_there = frame, True
            self.wake()

    def wake(self) -> None:
        """Wake the thread: its reply has arrived, or no thread reads."""
        try:
            self.lock.release()
        except RuntimeError:
            pass  # it was not asleep


DESCRIPTOR_SPACE = _socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)


def received_descriptors(ancillary: Any) -> list[int]:
    numbers = array.array("i")
    for level, kind, payload in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
    return list(numbers)


def encoded(frame: Frame) -> bytes:
    data = to_bytes(json.dumps(frame, ensure_ascii=False, separators=(",", ":"))) + b"\n"
    if len(data) > MAX_FRAME_BYTES:
        raise ValueError("%d MB is too much to show or pass on at once. Save it to a file." % (len(data) >> 20))
    return data


def to_bytes(text: str) -> bytes:
    """Encode as UTF-8, replacing lone surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class Report:
    """Sends reports for the running block; between blocks, for the last block."""

    def __init__(self, channel: Channel) -> None:
        self.number = 0
        self.forked = False  # in a process that the user's code forked, which writes to the descriptors directly
        self.flush: Callable[[], None] = lambda: None  # sends the unfinished lines of the calling thread
        self._channel = channel
        self._calls = count(1)  # numbers for calls of the computer's tools
        self._main = get_ident()
        self._pipes: list[int] = []  # for children's output; empty between blocks
        self._null = clear_of_streams(os.open(os.devnull, os.O_RDWR))

    def begin(self, number: int, pipes: list[int]) -> None:
        """Send standard output and error, including that of children, to these pipes."""
        self.number, self._pipes = number, [clear_of_streams(pipe) for pipe in pipes]
        for pipe, target in zip(self._pipes, DESCRIPTORS.values()):
            os.dup2(pipe, target)

    def end(self, done: Frame) -> None:
        """Release the block's pipes, so that they close when its last child ends."""
        pipes, self._pipes = self._pipes, []
        for target in DESCRIPTORS.values():
            os.dup2(self._null, target)
        for pipe in pipes:
            os.close(pipe)
        self._channel.send({"event": "done", "block": self.number, **done})

    def stream(self, name: str, text: str) -> None:
        if self.forked:
            data = to_bytes(text)
            while data:
                data = data[os.write(DESCRIPTORS[name], data) :]
            return
        for start in range(0, len(text), MAX_PIECE_LENGTH):
            piece = text[start : start + MAX_PIECE_LENGTH]
            self._send(encoded({"event": "stream", "block": self._number(), "name": name, "text": piece}))

    def display(self, data: dict[str, Any]) -> None:
        self.flush()
        if self.forked:
            self.stream("stdout", "%s\n" % data.get("text/plain", ""))
            return
        self._send(encoded({"event": "display", "block": self._number(), "data": data}))

    def active_line(self, line: int) -> None:
        self._send(encoded({"event": "active_line", "block": self.number, "line": line}))

    def ask(self, prompt: str, password: bool = False) -> str | None:
        """Ask the user; None for end of file. Only the main thread of a running block can ask."""
        if self.forked or not self._pipes or get_ident() != self._main:
            return None
        self.flush()
        self._send(encoded({"event": "input_request", "block": self.number, "prompt": prompt, "password": password}))
        while True:
            frame = self._channel.receive("input") or {"block": self.number, "eof": True}  # the host is gone
            if frame.get("block") == self.number:  # else it answers a question that was interrupted
                return None if frame.get("eof") else str(frame.get("text", ""))

    def share(self, name: str, data: str) -> None:
        """Share a value with the other languages; from a thread of the running block."""
        if self.forked or not self._pipes:
            raise RuntimeError("Only a running block can share values.")
        self._send(encoded({"event": "share", "block": self.number, "name": name, "data": data}))

    def call(self, what: Frame) -> Any:
        """Call one of the computer's tools, from any thread of a running block, and return its result."""
        from . import parcels

        number = self._number()
        if self.forked:
            raise parcels.ComputerError("A forked process can't use `computer`. Use it in the block's own process.")
        if what["how"] in ("call", "get", "set") and (not self._pipes or number != self.number):
            raise parcels.ComputerError(
                "Only a running block can use the computer, and the block that this belongs to has ended."
            )
        given: Frame = {name: parcels.packed(what[name]) for name in ("args", "kwargs") if name in what}
        self.flush()
        call = next(self._calls)
        frame = encoded({"event": "call", "block": number, "call": call, **what, **given})
        try:
            reply = self._channel.request(call, partial(self._send, frame))
        except BaseException:
            self._channel.send({"event": "call_off", "block": number, "call": call})
            raise
        if reply is None:
            raise parcels.ComputerError("The computer can't be reached from here.")
        if "error" in reply:
            raise parcels.unpacked_error(reply["error"]) from None
        return parcels.unpacked(reply.get("value"))

    def _send(self, frame: bytes) -> None:
        """Send a frame after the host has read what is in the pipes."""
        if self.forked:
            return
        waiting = bytearray(4)
        for pipe in self._pipes:
            fcntl.ioctl(pipe, termios.FIONREAD, waiting)
            if any(waiting):
                self._channel.sync()
                break
        self._channel.write(frame)

    # -- threads ---------------------------------------------------------------------------------------------

    def _number(self) -> int:
        """Return the number of the calling thread's block: the one running when the thread started."""
        threading = sys.modules.get("threading")
        if threading is None or get_ident() == self._main:
            return self.number
        return int(getattr(threading.current_thread(), "_interpreter_block", self.number))

    def mark_threads(self) -> bool:
        """Record which threads a block leaves behind, at its end. Returns whether there are any."""
        threading = sys.modules.get("threading")
        if threading is None:
            return False
        others = [thread for thread in threading.enumerate() if thread.ident != self._main]
        for thread in others:
            thread.__dict__.setdefault("_interpreter_block", self.number)
        return bool(others)


def clear_of_streams(fd: int) -> int:
    """Move a descriptor above 2 if it has a standard stream's number, which the user's code has freed."""
    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved
