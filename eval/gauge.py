"""A proxy in front of the model server that counts tokens in the same way for all subjects."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Tokens:
    """Tokens that the model read and wrote."""

    read: int = 0
    written: int = 0

    def add(self, timings: dict[str, Any]) -> None:
        """Add one reply, as reported by llama.cpp."""
        self.read += timings.get("prompt_n", 0) + timings.get("cache_n", 0)
        self.written += timings.get("predicted_n", 0)


class Gauge:
    """Forwards every request to a llama.cpp server, with its key.

    With `fresh`, the server reads every prompt from the start: slower, but reproducible.
    """

    def __init__(self, base_url: str, key: str, fresh: bool = False) -> None:
        parts = urlsplit(base_url)
        assert parts.hostname is not None
        self.host, self.port, self.key, self.fresh = parts.hostname, parts.port, key, fresh
        self._tokens = Tokens()
        self._asking = 0
        self._change = threading.Condition()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.gauge = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Gauge:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()

    def take(self, limit: float = 60) -> Tokens:
        """Return the tokens counted since the last call, once all requests have ended."""
        with self._change:
            self._change.wait_for(lambda: not self._asking, limit)
            taken, self._tokens = self._tokens, Tokens()
            return taken

    def began(self) -> None:
        with self._change:
            self._asking += 1

    def ended(self, timings: dict[str, Any]) -> None:
        with self._change:
            self._tokens.add(timings)
            self._asking -= 1
            self._change.notify_all()


class _Http(ThreadingHTTPServer):
    gauge: Gauge
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Print nothing."""

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.endswith("/chat/completions"):
            self._pass_on(body)
            return
        # 0.4.3 omits a temperature of 0 from its requests, and the server's default is different.
        orders = {"temperature": 0} | json.loads(body) | {"timings_per_token": True}
        if self.server.gauge.fresh:
            orders["cache_prompt"] = False
        self._pass_on(json.dumps(orders).encode())

    def _pass_on(self, body: bytes) -> None:
        gauge = self.server.gauge
        timings: dict[str, Any] = {}
        server = http.client.HTTPConnection(gauge.host, gauge.port)
        gauge.began()
        try:
            headers = {"Authorization": f"Bearer {gauge.key}", "Content-Type": "application/json"}
            server.request(self.command, self.path, body or None, headers)
            response = server.getresponse()
            self.send_response(response.status)
            self.send_header("Content-Type", response.getheader("Content-Type", "application/json"))
            self.end_headers()
            for line in response:
                timings = _timings(line) or timings
                self.wfile.write(line)
        except OSError:
            self.close_connection = True  # the client has disconnected; closing tells the server
        finally:
            server.close()
            gauge.ended(timings)


def _timings(line: bytes) -> dict[str, Any] | None:
    """Read the token counts in a line of the reply, if it has any."""
    try:
        data = json.loads(line.removeprefix(b"data: "))
    except ValueError:
        return None
    timings: dict[str, Any] | None = data.get("timings") if isinstance(data, dict) else None
    return timings
