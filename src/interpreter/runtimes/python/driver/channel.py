"""The line to the host: JSON frames, one per line, each written whole; descriptors come with some of them."""

from __future__ import annotations

import _socket
import array
import json
import os
import select
from _thread import RLock, allocate_lock, get_ident
from collections import deque

TYPE_CHECKING = False
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
