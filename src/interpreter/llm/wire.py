"""HTTP to model servers: one request, its streamed answer, and a way to cut it off from another thread."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import (
    BrokenStreamError,
    ModelError,
    ModelTimeoutError,
    ModelUnreachableError,
    NotAStreamError,
    WrongKeyError,
)
from interpreter.llm.failures import error_for, failure_of, not_a_stream, read_failure
from interpreter.llm.providers import Endpoint
from interpreter.llm.sse import event_data
from interpreter.version import __version__

if TYPE_CHECKING:
    import httpx

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",  # a compressed stream comes late and in lumps
    "User-Agent": f"open-interpreter/{__version__}",
}
_ENOUGH = 7
_EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class WireFormat(Protocol):
    """How one family of servers is asked and how its answer reads, as chunks in OpenAI's shape."""

    path: str

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body."""

    def chunks(self, events: Iterator[bytes], framed: bool) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer, from the data of its events; if `framed`, HTTP tells its end."""

    def whole(self, answer: dict[str, Any]) -> dict[str, Any]:
        """One chunk with everything, from a server that does not stream."""


class Wire:
    """Keeps connections open from one request to the next, and can shut them all at once."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.Client] = {}
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.RLock()  # a signal handler may cut off the thread that holds it
        weakref.finalize(self, _close_all, self._clients)

    def ask(
        self,
        wire_format: WireFormat,
        endpoint: Endpoint,
        params: Mapping[str, Any],
        cancelled: threading.Event,
        timeouts: tuple[float, float],
    ) -> Iterator[dict[str, Any]]:
        """The chunks of the answer as they arrive, or a typed error; ends without a word when cancelled."""
        body = wire_format.body(endpoint, params)
        try:
            with self._open(endpoint, wire_format.path, body, cancelled, timeouts) as response:
                for chunk in _answer(response, endpoint, wire_format):
                    if cancelled.is_set():
                        return
                    yield chunk
        except ModelError:
            if not cancelled.is_set():
                raise

    def cut(self) -> None:
        """End whatever is being read or written, from any thread."""
        with self._lock:
            for connection in list(self._sockets):
                _shut(connection)

    @contextlib.contextmanager
    def _open(
        self,
        endpoint: Endpoint,
        path: str,
        body: dict[str, Any],
        cancelled: threading.Event,
        timeouts: tuple[float, float],
    ) -> Iterator[httpx.Response]:
        import httpx

        if endpoint.key and not endpoint.key.isascii():
            raise WrongKeyError("The key has characters that no key has. Copy it again, without quotes or dots.")
        silence, connecting = timeouts
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        with _network_errors(endpoint):
            client = self.client(endpoint)
            request = client.build_request(
                "POST",
                endpoint.base_url + path,
                params=dict(endpoint.query) or None,
                headers={**_HEADERS, **endpoint.headers},
                content=content,
                timeout=httpx.Timeout(silence, connect=connecting, pool=None),
                extensions={"trace": lambda event, info: self._note_socket(event, info, cancelled)},
            )
            response = client.send(request, stream=True)
            with contextlib.closing(response):
                yield response

    def client(self, endpoint: Endpoint) -> httpx.Client:
        """The client for an endpoint; the first one costs a moment, since it loads httpx."""
        import httpx

        # Reading certificates costs more than a request that needs none; a proxy has no way to this machine.
        is_secure, is_near = endpoint.base_url.startswith("https:"), endpoint.is_loopback
        with self._lock:
            if (is_secure, is_near) not in self._clients:
                trust = httpx.create_ssl_context() if is_secure else _trusts_nobody()
                self._clients[is_secure, is_near] = httpx.Client(verify=trust, trust_env=not is_near)
            return self._clients[is_secure, is_near]

    def _note_socket(self, event: str, info: Mapping[str, Any], cancelled: threading.Event) -> None:
        """Called by httpx: a connection was made."""
        if not event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            return
        connection = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(connection)
        if cancelled.is_set():
            _shut(connection)


def _close_all(clients: dict[tuple[bool, bool], httpx.Client]) -> None:
    for client in clients.values():
        client.close()


def _shut(connection: socket.socket) -> None:
    # Of the base class: a TLS socket's own method forgets its encryption while another thread reads.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _trusts_nobody() -> Any:
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextlib.contextmanager
def _network_errors(endpoint: Endpoint) -> Iterator[None]:
    import httpx

    where = endpoint.base_url
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        raise _unreachable(endpoint, str(error)) from error
    except httpx.TimeoutException as error:
        words = f"The server at {where} kept silent for too long. Try again, or raise the setting llm.timeout."
        raise ModelTimeoutError(words) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        words = f"{where!r} is not an address of a server. Set api_base to one, such as http://localhost:8000/v1."
        raise NotAStreamError(words) from error
    except httpx.HTTPError as error:
        raise BrokenStreamError(f"The connection to {where} broke off ({error}). Try again.") from error


def _unreachable(endpoint: Endpoint, detail: str) -> ModelUnreachableError:
    if endpoint.provider.startswith("ollama"):
        advice = "Is Ollama running? Start it with `ollama serve`."
    elif endpoint.is_loopback:
        advice = "Start the model server, or check --api_base."
    else:
        advice = "Check the network, and --api_base if you set it."
    error = ModelUnreachableError(f"Nothing answers at {endpoint.base_url} ({detail}). {advice}")
    error.retryable = not endpoint.is_loopback  # a server that is not there will not come by waiting
    return error


def _answer(response: httpx.Response, endpoint: Endpoint, wire_format: WireFormat) -> Iterator[dict[str, Any]]:
    if not response.is_success:
        response.read()
        raise error_for(read_failure(response.status_code, response.headers, response.content), endpoint)
    pieces = response.iter_raw() if "content-encoding" not in response.headers else response.iter_bytes()
    first = _first_bytes(pieces)
    begins = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    kind = response.headers.get("content-type", "")
    if begins.startswith((b"{", b"[")):
        yield _whole(b"".join(_chain(first, pieces)), endpoint, wire_format, kind)
    elif begins.startswith(_EVENT_FIELDS):
        framed = "transfer-encoding" in response.headers or "content-length" in response.headers
        for chunk in wire_format.chunks(event_data(_chain(first, pieces)), framed):
            if chunk.get("error"):
                raise error_for(failure_of(chunk), endpoint)
            yield chunk
    elif not begins:
        raise BrokenStreamError(f"The server at {endpoint.base_url} sent an empty reply. Try again.")
    else:
        raise not_a_stream(endpoint, kind)


def _first_bytes(pieces: Iterator[bytes]) -> bytes:
    """Enough of the body to see what it is."""
    first = b""
    for piece in pieces:
        first += piece
        if len(first.strip()) >= _ENOUGH:
            break
    return first


def _whole(body: bytes, endpoint: Endpoint, wire_format: WireFormat, kind: str) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise not_a_stream(endpoint, kind) from error
    if isinstance(answer, dict) and not answer.get("error"):
        try:
            return wire_format.whole(answer)
        except (KeyError, IndexError, TypeError) as error:
            raise not_a_stream(endpoint, kind) from error
    raise error_for(failure_of(answer), endpoint)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
