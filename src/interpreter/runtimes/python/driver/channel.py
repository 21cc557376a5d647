"""The line to the host: JSON frames, one per line, each written whole; descriptors come with some of them."""

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
from itertools import count
from json.encoder import encode_basestring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional


if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional

    from .interrupts import Interrupts

    Frame = Dict[str, Any]

READ_SIZE = 65536
MOST_DESCRIPTORS = 8
CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)


class Channel:
    """Any thread may send; one at a time receives, as a rule the main one."""

    def __init__(self, fd: int, interrupts: Interrupts) -> None:
        self._fd = fd
        self._socket = _socket.socket(fileno=fd)
        self._socket.setblocking(True)
        self._interrupts = interrupts
        self._main = get_ident()
        self._lock = RLock()
        self._receiving = RLock()
        self._outgoing: Deque[bytes] = deque()
        self._writing = False
        self._unfinished: List[bytes] = []
        self._frames: Deque[Frame] = deque()
        self._descriptors: Deque[int] = deque()
        self._replies: Dict[int, Reply] = {}  # those that are waited for
        self._wanted = 0  # how often the main thread waits, in signal handlers too, until another has stopped reading
        self._readable = select.poll()
        self._readable.register(fd, select.POLLIN)

    def send(self, frame: Frame) -> None:
        self.write(encoded(frame))

    def write(self, frame: bytes) -> None:
        """Send the bytes of a whole frame; an interrupt waits until it is out."""
        with self._interrupts, self._lock:
            self._outgoing.append(frame)
            if self._writing:
                return  # a finalizer or a signal handler, in the middle of this thread's writing
            self._writing = True
            try:
                while self._outgoing:
                    self._write_out(self._outgoing.popleft())
            except OSError:
                self._outgoing.clear()  # the host is gone, and the supervisor is about to end us
            finally:
                self._writing = False

    def _write_out(self, data: bytes) -> None:
        sent = os.write(self._fd, data)
        while sent < len(data):
            sent += os.write(self._fd, memoryview(data)[sent:])

    def receive(self) -> Optional[Frame]:
        """For the main thread: the next frame; None when the host is gone."""
        with self._interrupts, Reading(self):
            return self._receive(self._wait)

    def wait_for(self, op: str) -> Optional[Frame]:
        """For the main thread: the next frame of this kind; others keep for later."""
        with self._interrupts, Reading(self):
            return self._wait_for(op, self._wait)

    def sync(self) -> None:
        """Have the host read what is in the block's pipes; not from a thread while the main one receives."""
        if self._is_in_the_middle():
            return
        with self._interrupts:
            if self.take_turn():
                try:
                    self.send({"event": "sync"})
                    self._wait_for("synced", self._readable.poll)
                finally:
                    self.leave_turn()

    # -- whose turn it is to read ----------------------------------------------------------------------------

    def _is_in_the_middle(self) -> bool:
        """Whether this is a finalizer or a signal handler, while its thread waits for an answer or writes a frame."""
        return is_owned(self._receiving) or is_owned(self._lock)

    def take_turn(self) -> bool:
        """Read from now on: the main thread as soon as another one has stopped, others only if nobody does."""
        is_main = get_ident() == self._main
        if (is_main or not self._wanted) and self._receiving.acquire(False):
            return True
        if not is_main:
            return False
        self._wanted += 1
        self.send({"event": "turn"})  # what comes back wakes the one that reads
        self._receiving.acquire()
        self._wanted -= 1
        return True

    def leave_turn(self) -> None:
        """Another one that waits for a reply reads on."""
        self._receiving.release()
        if not self._wanted:
            for reply in list(self._replies.values()):
                reply.wake()

    def expect(self, number: int) -> None:
        """There will be a reply of this number, or the host is gone."""
        self._replies[number] = Reply()

    def forget(self, number: int) -> None:
        self._replies.pop(number, None)

    def wait_for_reply(self, number: int) -> Optional[Frame]:
        """For any thread: what was expected; None when the host is gone. An interrupt may strike the main one here."""
        reply = self._replies[number]
        with self._interrupts:
            while not reply.is_there:
                if self._is_in_the_middle():
                    return None
                if not self.take_turn():
                    reply.wait()
                    continue
                try:
                    self._read_until(reply)
                finally:
                    self.leave_turn()
        return reply.frame

    def _read_until(self, reply: Reply) -> None:
        while not reply.is_there and not (self._wanted and get_ident() != self._main):
            self._wait()
            if not self._read():
                for each in self._replies.values():
                    each.come(None)  # the host is gone

    def _sorted(self, frames: List[Frame]) -> None:
        """Replies find their own way; other frames keep until they are asked for."""
        for frame in frames:
            if frame.get("op") == "reply":
                reply = self._replies.get(frame.get("call", 0))
                if reply is not None:  # else nobody waits for it any more
                    reply.come(frame)
            elif frame.get("op") != "turn":
                self._frames.append(frame)

    def _wait(self) -> None:
        self._interrupts.wait(self._readable.poll)  # an interrupt cuts in here, where nothing is lost

    def _wait_for(self, op: str, wait: Callable[[], Any]) -> Optional[Frame]:
        others: List[Frame] = []
        try:
            while True:
                frame = self._receive(wait)
                if frame is None or frame.get("op") == op:
                    return frame
                others.append(frame)
        finally:
            self._frames.extendleft(reversed(others))

    def _receive(self, wait: Callable[[], Any]) -> Optional[Frame]:
        while not self._frames:
            wait()
            if not self._read():
                return None
        return self._frames.popleft()

    def _read(self) -> bool:
        space = _socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self._socket.recvmsg(READ_SIZE, space, CLOSE_ON_EXEC)
        except OSError:
            return False
        for level, kind, payload in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self._descriptors.extend(numbers)
        if b"\n" in data:
            whole, _, rest = data.rpartition(b"\n")
            lines = b"".join([*self._unfinished, whole]).split(b"\n")
            self._unfinished = [rest]
            self._sorted([json.loads(line) for line in lines if line])
        else:
            self._unfinished.append(data)
        return bool(data)

    def is_waited_for(self) -> bool:
        """Whether the host has said something that is not read yet."""
        return bool(self._frames or self._readable.poll(0))

    def take_descriptors(self, count: int) -> List[int]:
        """The oldest descriptors that came along, at most so many."""
        return [self._descriptors.popleft() for _ in range(min(count, len(self._descriptors)))]

    @property
    def fd(self) -> int:
        return self._fd

    def renew(self, fd: int) -> None:
        """In a snapshot that goes on: the line to the host is another one now."""
        os.dup2(fd, self._fd, inheritable=False)
        os.close(fd)
        for other in self.take_descriptors(len(self._descriptors)):
            os.close(other)
        self._frames.clear()
        self._unfinished.clear()
        self._outgoing.clear()
        self._replies.clear()
        self._lock, self._receiving, self._writing, self._wanted = RLock(), RLock(), False, 0

    def leave(self) -> None:
        """In a process that the user's code forked: this line is not ours there."""
        self._lock = RLock()
        self._outgoing.clear()
        self._socket.close()


class Reading:
    """`with Reading(channel):` is when the main thread reads."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __enter__(self) -> None:
        self._channel.take_turn()

    def __exit__(self, *_: object) -> None:
        self._channel.leave_turn()


class Reply:
    """What a thread waits for."""

    def __init__(self) -> None:
        self.is_there = False
        self.frame: Optional[Frame] = None
        self._lock = allocate_lock()
        self._lock.acquire()

    def come(self, frame: Optional[Frame]) -> None:
        if not self.is_there:
            self.frame, self.is_there = frame, True
            self.wake()

    def wake(self) -> None:
        """It is there, or there is nobody who reads."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it was not asleep

    def wait(self) -> None:
        self._lock.acquire()


def is_owned(lock: RLock) -> bool:
    """Whether this thread has it: known from the moment that it is taken, when a signal handler may cut in."""
    return bool(lock._is_owned())  # type: ignore[attr-defined]


def encoded(frame: Frame) -> bytes:
    return to_bytes(json.dumps(frame, ensure_ascii=False, separators=(",", ":"))) + b"\n"


def to_bytes(text: str) -> bytes:
    """UTF-8, with what is no character (half a surrogate pair) replaced."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


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
