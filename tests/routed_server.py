"""A real HTTP server on loopback with a function for each path, for the protocols of local model servers."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass
class Asked:
    """A client's request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """The response: `pieces` are sent one by one; BREAK closes the connection instead."""

    status: int = 200
    pieces: Iterable[bytes] = ()
    headers: dict[str, str] = field(default_factory=dict)


BREAK = b"\x00break\x00"
Route = Callable[[Asked], Answer]


def as_json(data: Any, status: int = 200) -> Answer:
    return Answer(status, [json.dumps(data).encode()], {"Content-Type": "application/json"})


def as_lines(*events: dict[str, Any], ends: bool = True) -> Answer:
    """Stream JSON lines, as Ollama does; the connection breaks in the middle unless it `ends`."""
    pieces = [json.dumps(event).encode() + b"\n" for event in events]
    return Answer(200, pieces if ends else [*pieces, BREAK], {"Content-Type": "application/x-ndjson"})


class RoutedServer:
    """Answers `METHOD /path` with the function of that name in `routes`, otherwise with 404."""

    def __init__(self, routes: Mapping[str, Route | Answer], port: int = 0) -> None:
        self.routes = dict(routes)
        self.asked: list[Asked] = []
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.routed = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def paths(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def __enter__(self) -> RoutedServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    routed: RoutedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect, as many tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, json.loads(content) if content else None)
        self.server.routed.asked.append(asked)
        route = self.server.routed.routes.get(f"{self.command} {self.path}")
        if route is None:
            self._send(as_json({"detail": "Not Found"}, 404))
        else:
            self._send(route(asked) if callable(route) else route)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        chunked = "Content-Length" not in answer.headers
        framing = {"Transfer-Encoding": "chunked"} if chunked else {}
        for name, value in (answer.headers | framing).items():
            self.send_header(name, value)
        self.end_headers()
        for piece in answer.pieces:
            if piece == BREAK:
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
