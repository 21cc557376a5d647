"""A scripted model server: Chat Completions over real HTTP on loopback, with streaming and faults.

    with ModelServer([text("Hello."), tool_call("python", "1 + 1").then(usage(9, 3))]) as server:
        ...  # point a client at server.base_url
        server.requests[0].body["messages"]

Each request takes the next reply. A reply is made by one of the constructors below, is plain data (the same
shapes as in a script file, see `reply_from_data`), or is a function from the request's body to a reply.
By hand: `python tests/model_server.py --port 8000 --script FILE.json --pace 0.03`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from model_replies import (
    AnyReply,
    RawReply,
    Reply,
    Scripted,
    Split,
    Stall,
    broken,
    completion,
    error,
    events,
    pieces,
    raw,
    reasoning,
    reply_from_data,
    stall,
    text,
    tool_call,
    usage,
)

__all__ = [
    "AnyReply",
    "ModelServer",
    "RawReply",
    "Reply",
    "Request",
    "Scripted",
    "Split",
    "Stall",
    "broken",
    "error",
    "events",
    "pieces",
    "raw",
    "reasoning",
    "reply_from_data",
    "stall",
    "text",
    "tool_call",
    "usage",
]


@dataclass
class Request:
    """A client's request; `disconnected` is set when the client disconnects before the answer ends."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    port: int = 0  # the client's, which identifies the connection
    disconnected: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body.get("messages", [])
        return messages


class ModelServer:
    """Answers each request with the next reply; when the script runs out, with an HTTP 500 and that message."""

    def __init__(
        self,
        replies: Iterable[Scripted] = (),
        *,
        api_key: str | None = None,
        models: Sequence[str | dict[str, Any]] = ("scripted",),
        port: int = 0,
        pace: float = 0,
        repeat: bool = False,
        include_usage_rejected: bool = False,
    ) -> None:
        self.replies: list[Scripted] = list(replies)
        self.requests: list[Request] = []
        self.api_key = api_key
        self.models = models
        self.pace = pace
        self.repeat = repeat
        self.include_usage_rejected = include_usage_rejected
        self.stalled = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._next = 0
        self._http = _HTTPServer(("127.0.0.1", port), _Handler)
        self._http.script = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 30}, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def add(self, *replies: Scripted) -> None:
        with self._lock:
            self.replies.extend(replies)

    def start(self) -> ModelServer:
        self._thread.start()
        return self

    def close(self) -> None:
        if self.closing.is_set():
            return
        self.closing.set()
        for reply in self.replies:
            for step in [*getattr(reply, "deltas", ()), *getattr(reply, "chunks", ())]:
                if isinstance(step, Stall) and isinstance(step.until, threading.Event):
                    step.until.set()
        self._http.wake_writer.close()
        self._http.stop()
        self._thread.join()
        self._http.server_close()

    def __enter__(self) -> ModelServer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def next_reply(self, body: dict[str, Any]) -> AnyReply:
        with self._lock:
            number = self._next
            self._next += 1
            if self.repeat and self.replies:
                number %= len(self.replies)
            if number >= len(self.replies):
                message = f"the script ran out: {len(self.replies)} replies, request {number + 1}"
                return error(500, message, {"x-should-retry": "false"})
            scripted = self.replies[number]
        return reply_from_data(scripted(body) if callable(scripted) else scripted)

    def refusal(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> RawReply | None:
        """Return an error for an invalid request; servers of other formats override it."""
        if self.api_key and headers.get("authorization") != f"Bearer {self.api_key}":
            wrong = {
                "message": "Incorrect API key.",
                "type": "invalid_request_error",
                "code": "invalid_api_key",
            }
            return error(401, {"error": wrong})
        if self.include_usage_rejected and "stream_options" in body:
            unknown = {
                "message": "Unknown field.",
                "type": "invalid_request_error",
                "param": "stream_options",
            }
            return error(400, {"error": unknown})
        if not path.partition("?")[0].endswith("/chat/completions"):
            return error(404, {"error": {"message": f"no such path: {path}", "type": "invalid_request_error"}})
        return None


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    script: ModelServer

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.wake_reader, self.wake_writer = socket.socketpair()
        self.connections: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def stop(self) -> None:
        """`shutdown` waits for the next turn of the accept loop, so connect to trigger one.

        On a busy machine, the loop may end long before `stopper` does: then nobody accepts connections any more.
        """
        stopper = threading.Thread(target=self.shutdown)
        stopper.start()
        while stopper.is_alive():
            with contextlib.suppress(TimeoutError), socket.create_connection(self.server_address[:2], 0.05):  # type: ignore[arg-type]
                stopper.join(0.05)
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.wake_reader.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HTTPServer

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._record({})
        if self.path.rstrip("/").endswith("/models"):
            rows = [{"id": row} if isinstance(row, str) else row for row in self.server.script.models]
            models = [{"object": "model", **row} for row in rows]
            self._send_whole(200, json.dumps({"object": "list", "data": models}).encode())
        else:
            self._send_whole(404, b'{"error": {"message": "no such path", "type": "invalid_request_error"}}')

    def do_POST(self) -> None:
        script = self.server.script
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        request = self._record(body)
        reply = script.refusal(self.path, request.headers, body) or script.next_reply(body)
        try:
            if isinstance(reply, RawReply):
                self._send_stream(request, reply.status, dict(reply.headers), reply.chunks, reply.breaks_off)
            elif body.get("stream"):
                wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
                steps = events(reply, str(body.get("model")), wants_usage)
                self._send_stream(request, 200, {"Content-Type": "text/event-stream"}, steps, reply.breaks_off)
            else:
                self._send_whole(200, completion(reply, str(body.get("model"))))
        except ConnectionError:
            request.disconnected.set()
            self.close_connection = True

    def _record(self, body: dict[str, Any]) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body, self.client_address[1])
        self.server.script.requests.append(request)
        return request

    def _send_whole(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _send_stream(
        self,
        request: Request,
        status: int,
        headers: dict[str, str],
        steps: Iterable[bytes | Stall],
        breaks_off: bool,
    ) -> None:
        self.send_response(status)
        for name, value in (headers | {"Transfer-Encoding": "chunked"}).items():
            self.send_header(name, value)
        self.end_headers()
        for step in steps:
            if isinstance(step, Stall):
                self._stall(request, step.until)
            elif step:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(step), step))
                if self.server.script.pace:
                    self.server.script.closing.wait(self.server.script.pace)
        if breaks_off:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _stall(self, request: Request, until: float | threading.Event | None) -> None:
        self.server.script.stalled.set()
        if isinstance(until, threading.Event):
            until.wait()
            return
        ready = select.select([self.connection, self.server.wake_reader], [], [], until)[0]
        if self.connection in ready:
            raise ConnectionResetError("the client went away")


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model server for manual tests.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--script", required=True, help="a JSON file: a list of replies")
    parser.add_argument("--pace", type=float, default=0, help="seconds between deltas")
    parser.add_argument("--repeat", action="store_true", help="start the script again when it runs out")
    options = parser.parse_args()
    with open(options.script, encoding="utf-8") as file:
        replies = json.load(file)
    with ModelServer(replies, port=options.port, pace=options.pace, repeat=options.repeat) as server:
        print(server.base_url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
