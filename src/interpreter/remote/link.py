"""Messages between this machine and a keeper: numbered, so that a new connection continues where the last one broke.

Both sides use this file. A side keeps each message until the other has seen it, and sends it again over the next
connection. Values are plain JSON with the types that their class declares; nothing is unpickled.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import secrets
import socket
import threading
import types
import typing
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from interpreter.errors import RemoteInUseError
from interpreter.runtimes.protocol import READ_SIZE, BadFrame, Frame, LineSplitter, encode

ACKNOWLEDGE = 64  # messages received before an acknowledgement is sent on its own
GREETING_TIMEOUT = 20.0  # seconds for a new connection to say which messages it has
LEAVE_TIMEOUT = 5.0  # seconds for the connection of a killed client to end


class Link:
    """One side of a conversation that outlives its connections.

    A keeper has one client at a time. If that was killed, another one can take its place, and numbering restarts.
    """

    def __init__(
        self, received: Callable[[Frame], None], instance: str = "", replaced: Callable[[], None] = lambda: None
    ) -> None:
        self._received, self._replaced = received, replaced
        self._is_keeper = bool(instance)
        self.instance = instance  # the keeper's id; a client learns it when it first connects
        # The client's id; a keeper learns it from each client that it accepts.
        self.client = "" if instance else secrets.token_hex(8)
        self._changed = threading.Condition()
        self._outbox: deque[tuple[int, bytes]] = deque()
        self._sent = self._seen = self._acknowledged = 0  # our last number, theirs, and the one that we acknowledged
        self._socket: socket.socket | None = None
        self.closed = False

    def send(self, frame: Frame, client: str | None = None) -> None:
        """Send a message now, or as soon as there is a connection; from any thread.

        A `client` that has left gets nothing.
        """
        with self._changed:
            if client not in (None, self.client):
                return
            self._sent += 1
            self._outbox.append((self._sent, encode({"n": self._sent, **frame})))
            self._changed.notify_all()

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def wait_until_sent(self, seconds: float) -> bool:
        """Wait until the other side has seen every message. False if time runs out or the connection ends first."""
        with self._changed:
            self._changed.wait_for(lambda: not self._outbox or self._socket is None, seconds)
            return not self._outbox

    def serve(self, connection: socket.socket, greeted: Callable[[], None] = lambda: None) -> None:
        """Use a connection until it ends. It replaces the current one, which may be dead without our knowing.

        Raises BadFrame if the other side breaks the protocol, or is a different keeper than before, and
        RemoteInUseError if the keeper has another client.
        """

        def received() -> Iterator[Frame]:
            lines = LineSplitter()
            while data := connection.recv(READ_SIZE):
                yield from map(_object, lines.feed(data))

        def greet() -> None:
            connection.sendall(encode({"seen": self._seen, "instance": self.instance, "client": self.client}))

        with contextlib.suppress(OSError), self._leaving(connection):
            connection.settimeout(GREETING_TIMEOUT)
            greet()
            frames = received()
            if (greeting := next(frames, None)) is None:
                return
            if greeting.get("client") != self.client:
                if not self._is_keeper:  # its next line says whether we may take the place of that client
                    if (greeting := next(frames, None)) is None:
                        return
                elif self._accept(connection, greeting):
                    self._replaced()
                    greet()
                else:
                    connection.sendall(encode({"in_use": True}))
                    return
            if greeting.get("in_use"):
                raise RemoteInUseError("in use")
            seen, instance = greeting.get("seen"), greeting.get("instance")
            if not isinstance(seen, int) or not isinstance(instance, str) or not 0 <= seen <= self._sent:
                raise BadFrame("a greeting that makes no sense")
            if self.instance and instance and instance != self.instance:
                raise BadFrame("a greeting of another session")
            self.instance = self.instance or instance
            connection.settimeout(None)
            with self._changed:
                old, self._socket = self._socket, connection
                self._drop(seen)
                self._changed.notify_all()
            if old is not None and old is not connection:
                with contextlib.suppress(OSError):
                    old.shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self._write, args=(connection, seen), name="link writer", daemon=True).start()
            greeted()
            for frame in frames:
                self._take(frame)

    @contextlib.contextmanager
    def _leaving(self, connection: socket.socket) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changed:
                if self._socket is connection:
                    self._socket = None
                self._changed.notify_all()
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, connection: socket.socket, greeting: Frame) -> bool:
        """Accept a client if no other is connected, and it has not itself been replaced."""
        client, is_new = greeting.get("client"), greeting.get("instance") == ""
        with self._changed:
            is_free = self._changed.wait_for(lambda: self._socket is None, LEAVE_TIMEOUT) if is_new else False
            if is_free and isinstance(client, str):
                self.client, self._socket = client, connection
                self._outbox.clear()
                self._sent = self._seen = self._acknowledged = 0
            return self._socket is connection

    def _take(self, frame: Frame) -> None:
        number, seen = frame.pop("n", None), frame.pop("seen", None)
        with self._changed:
            if isinstance(seen, int):
                self._drop(seen)
            if number is None:
                return
            if not isinstance(number, int) or number > self._seen + 1:
                raise BadFrame("messages out of order")
            if number <= self._seen:
                return  # already received over the last connection
        self._received(frame)
        with self._changed:
            self._seen = number
            if self._is_due:
                self._changed.notify_all()

    def _drop(self, seen: int) -> None:
        while self._outbox and self._outbox[0][0] <= seen:
            self._outbox.popleft()
        self._changed.notify_all()

    def _write(self, connection: socket.socket, at: int) -> None:
        """Send what the other side has not received, in order.

        Each connection has a thread for it, so no reader waits.
        """
        with contextlib.suppress(OSError):
            while True:
                with self._changed:
                    while self._socket is connection and self._sent <= at and not self._is_due:
                        self._changed.wait()
                    if self._socket is not connection:
                        return
                    pending = [data for number, data in self._outbox if number > at]
                    at, self._acknowledged = self._sent, self._seen
                    pending.append(encode({"seen": self._acknowledged}))
                connection.sendall(b"".join(pending))

    @property
    def _is_due(self) -> bool:
        """Check whether enough messages have arrived to acknowledge them."""
        return self._seen - self._acknowledged >= ACKNOWLEDGE

    def close(self) -> None:
        """Stop, and discard messages that were not sent."""
        with self._changed:
            self.closed = True
            connection, self._socket = self._socket, None
            self._changed.notify_all()
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _object(line: bytes) -> Frame:
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        raise BadFrame("a message that is not JSON") from None
    if not isinstance(frame, dict):
        raise BadFrame("a message that is not an object")
    return frame


# -- values ------------------------------------------------------------------------------------------------------------


def packed(value: Any) -> Any:
    """Convert a value to JSON: dataclasses by their field names, tuples as lists, bytes as base64."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"$": type(value).__name__, **named}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: packed(each) for name, each in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Iterable):
        return [packed(each) for each in value]
    raise TypeError(f"{type(value).__name__} can't be sent")


def unpacked(kind: Any, value: Any) -> Any:
    """Convert JSON back to a value of the declared type. Raises BadFrame if it doesn't fit."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _unpacked_union(args, value)
    if origin is typing.Literal:
        return _checked(value in args and not isinstance(value, bool), value, kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        _checked(isinstance(value, dict) and value.keys() <= {"$", *hints}, value, kind)
        return _made(kind, {name: unpacked(hints[name], each) for name, each in value.items() if name != "$"})
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind)
        _checked(isinstance(value, list) and len(value) <= len(hints), value, kind)
        return _made(kind, {name: unpacked(hints[name], each) for name, each in zip(hints, value, strict=False)})
    if kind is bytes:
        _checked(isinstance(value, str), value, kind)
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise BadFrame("bytes that are not base64") from None
    if origin is dict:
        _checked(isinstance(value, dict), value, kind)
        return {unpacked(args[0], name): unpacked(args[1], each) for name, each in value.items()}
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        _checked(isinstance(value, list) and len(value) == len(args), value, kind)
        return tuple(unpacked(each, item) for each, item in zip(args, value, strict=True))
    if origin in (list, tuple, set, Collection, Sequence, Iterable):
        _checked(isinstance(value, list), value, kind)
        items = [unpacked(args[0], item) for item in value]
        return set(items) if origin is set else tuple(items) if origin is tuple else items
    if kind is float:
        return float(_checked(type(value) in (int, float), value, kind))
    return _checked(type(value) is (type(None) if kind is None else kind), value, kind)


def _unpacked_union(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in kinds:
        return None
    classes: list[Any] = [each for each in kinds if dataclasses.is_dataclass(each)]
    if classes and isinstance(value, dict):
        named = [each for each in classes if len(classes) == 1 or each.__name__ == value.get("$")]
        return unpacked(named[0], value) if named else _checked(False, value, kinds)
    for kind in kinds:
        with contextlib.suppress(BadFrame):
            return unpacked(kind, value)
    return _checked(False, value, kinds)


def _made(kind: Any, given: dict[str, Any]) -> Any:
    try:
        return kind(**given)
    except TypeError:
        raise BadFrame(f"an incomplete {kind.__name__}") from None


def _checked(fits: bool, value: Any, kind: Any) -> Any:
    if not fits:
        raise BadFrame(f"{type(value).__name__} in the place of {getattr(kind, '__name__', kind)}")
    return value
