"""A server that sends exactly the given bytes, to test how a client handles them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
LINES = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
HI = STREAM + b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n'


def repeated(piece: bytes, size: int) -> Iterator[bytes]:
    """About `size` bytes, in pieces of 64 KB."""
    block = piece * max(1, 65536 // len(piece))
    for _ in range(size // len(block) + 1):
        yield block


class HostileServer:
    """Answers each request with the next bytes, and closes the connection."""

    def __init__(self, *answers: bytes | Iterable[bytes]) -> None:
        self.requests: list[bytes] = []
        self.sent = 0  # bytes of the last answer that the client received
        self._answers = iter(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> HostileServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends `accept`; closing alone does not
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=[client], daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += _received(client)
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            left = length - len(head.partition(b"\r\n\r\n")[2])
            while left > 0:
                left -= len(_received(client))
            self.requests.append(head)
            answer = next(self._answers)
            self.sent = 0
            for piece in [answer] if isinstance(answer, bytes) else answer:
                client.sendall(piece)
                self.sent += len(piece)


def _received(client: socket.socket) -> bytes:
    """Some bytes, or an error when the client has left: waiting on would use a processor for the rest of the run."""
    data = client.recv(65536)
    if not data:
        raise ConnectionResetError("the client left in the middle of its request")
    return data
