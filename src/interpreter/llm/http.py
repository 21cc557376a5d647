"""HTTP to model servers: one request, its streamed answer, and a way to cut it off from another thread."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import (
    BrokenStreamError,
    ModelError,
    ModelTimeoutError,
    NotAStreamError,
    RequestRefusedError,
    WrongKeyError,
)
from interpreter.llm.computer_use import Screen, headers_for, screen_in
from interpreter.llm.failures import error_for, failure_of, not_a_stream, read_failure, unreachable
from interpreter.llm.providers import Endpoint
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


@dataclass(frozen=True)
class Sent:
    """A request that is out: where it went, and its body."""

    endpoint: Endpoint
    body: dict[str, Any]
    screen: Screen | None = None  # that the model may act on with a tool of its own
    chat: Sequence[Mapping[str, Any]] = ()  # what the body was made of


class WireFormat(Protocol):
    """How one family of servers is asked and how its answer reads, as chunks in OpenAI's shape."""

    path: str

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body."""

    def gives_in(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Whether the request is worth sending again without what the server objects to."""

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer, from the data of its events; if `framed`, HTTP tells its end."""

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """One chunk with everything, from a server that does not stream."""


class Wire:
    """Keeps connections open from one request to the next, and can shut them all at once."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.Client] = {}
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._sendings: set[Sending] = set()
        self.direct = False  # whether no proxy may be asked for anything
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
        sent = Sent(endpoint, wire_format.body(endpoint, params), screen_in(params.get("tools")), params["messages"])
        if sent.screen is not None:
            more = headers_for(endpoint.wire, endpoint.model)
            endpoint = replace(endpoint, extra_headers={**endpoint.extra_headers, **more})
        try:
            with self._open(endpoint, wire_format.path, sent.body, cancelled, timeouts) as response:
                for chunk in _answer(response, sent, wire_format):
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
            for sending in list(self._sendings):
                sending.give_up()

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
            with contextlib.closing(self._sent(partial(client.send, request, stream=True), cancelled)) as response:
                yield response

    def _sent(self, send: Callable[[], httpx.Response], cancelled: threading.Event) -> httpx.Response:
        """The beginning of the answer; an error as soon as it is cut off."""
        sending = Sending(send)
        self._sendings.add(sending)
        if cancelled.is_set():
            sending.give_up()
        try:
            response = sending.response()
        except (KeyboardInterrupt, SystemExit):
            sending.give_up()
            self.cut()  # or its thread would wait on
            raise
        finally:
            self._sendings.discard(sending)
        if response is None:
            raise BrokenStreamError("The request was given up.")
        return response

    def client(self, endpoint: Endpoint) -> httpx.Client:
        """The client for an endpoint; the first one costs a moment, since it loads httpx."""
        import httpx

        # Reading certificates costs more than a request that needs none; a proxy has no way to this machine.
        is_secure, is_near = endpoint.base_url.startswith("https:"), endpoint.is_loopback or self.direct
        with self._lock:
            if (is_secure, is_near) not in self._clients:
                trust = httpx.create_ssl_context() if is_secure else _trusts_nobody()
                self._clients[is_secure, is_near] = httpx.Client(verify=trust, trust_env=not is_near)
            return self._clients[is_secure, is_near]

    def _note_socket(self, event: str, info: Mapping[str, Any], cancelled: threading.Event) -> None:
        """Called by httpx: a connection was made."""
        if not event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            return
        self.watch(info["return_value"].get_extra_info("socket"), cancelled)

    def watch(self, connection: socket.socket, cancelled: threading.Event) -> None:
        """Have `cut` end whatever waits on this connection."""
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
        raise unreachable(endpoint, error) from error
    except httpx.TimeoutException as error:
        words = f"The server at {where} kept silent for too long. Try again, or raise the setting llm.timeout."
        raise ModelTimeoutError(words) from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        words = f"{where!r} is not an address of a server. Set api_base to one, such as http://localhost:8000/v1."
        raise NotAStreamError(words) from error
    except httpx.HTTPError as error:
        raise BrokenStreamError(f"The connection to {where} broke off ({error}). Try again.") from error


def _answer(response: httpx.Response, sent: Sent, wire_format: WireFormat) -> Iterator[dict[str, Any]]:
    endpoint = sent.endpoint
    if not response.is_success:
        response.read()
        raise error_for(read_failure(response.status_code, response.headers, response.content), endpoint)
    pieces = response.iter_raw() if "content-encoding" not in response.headers else response.iter_bytes()
    first = _first_bytes(pieces)
    begins = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    kind = response.headers.get("content-type", "")
    is_lines = kind.startswith("application/x-ndjson")
    if begins.startswith((b"{", b"[")) and not is_lines:
        yield _whole(b"".join(_chain(first, pieces)), sent, wire_format, kind)
    elif is_lines or begins.startswith(_EVENT_FIELDS):
        read = _lines if is_lines else event_data
        framed = "transfer-encoding" in response.headers or "content-length" in response.headers
        for chunk in wire_format.chunks(read(_chain(first, pieces)), framed, sent):
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


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from filter(bytes.strip, lines)
    if rest.strip():
        yield rest


def _whole(body: bytes, sent: Sent, wire_format: WireFormat, kind: str) -> dict[str, Any]:
    endpoint = sent.endpoint
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise not_a_stream(endpoint, kind) from error
    if isinstance(answer, dict) and not answer.get("error"):
        try:
            return wire_format.whole(answer, sent)
        except (KeyError, IndexError, TypeError) as error:
            raise not_a_stream(endpoint, kind) from error
    raise error_for(failure_of(answer), endpoint)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


class Sending:
    """Sends in a thread of its own: while a name is looked up or a connection is made, nobody can end the wait."""

    def __init__(self, send: Callable[[], httpx.Response]) -> None:
        self._send = send
        self._came: queue.SimpleQueue[httpx.Response | Exception | None] = queue.SimpleQueue()
        self._settled = False  # it was answered, or given up
        self._settling = threading.RLock()  # a signal handler may give it up in the thread that waits
        self._thread = threading.Thread(target=self._run, name="request", daemon=True)

    def response(self) -> httpx.Response | None:
        """The beginning of the answer; None if it was given up."""
        self._thread.start()
        came = self._came.get()
        if isinstance(came, Exception):
            raise came
        return came

    def give_up(self) -> None:
        """Let the one who waits go on; an answer that still comes is closed."""
        with self._settling:
            if not self._settled:
                self._settled = True
                self._came.put(None)

    def _run(self) -> None:
        came: httpx.Response | Exception
        try:
            came = self._send()
        except Exception as error:  # noqa: BLE001 - handed to the one who waits
            came = error
        with self._settling:
            is_late, self._settled = self._settled, True
            if not is_late:
                self._came.put(came)
        if is_late and not isinstance(came, Exception):
            with contextlib.suppress(Exception):  # nobody is left to be told
                came.close()


BOM = b"\xef\xbb\xbf"


def event_data(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event, however the bytes are cut; comments and other fields are passed over.

    httpx-sse does the same on decoded lines; per event it costs as much as reading it from the network.
    """
    lines = _Lines()
    data: list[bytes] = []
    for piece in pieces:
        if not data and lines.nothing_held and (only := _only_data(piece)):
            yield only
            continue
        for line in lines.of(piece):
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                yield b"\n".join(data)
                data = []
    last = lines.rest()
    if last.startswith(b"data:"):
        data.append(last[5:].lstrip(b" "))
    if data:  # the last event of a server that forgets the empty line behind it
        yield b"\n".join(data)


def _only_data(piece: bytes) -> bytes:
    """The data of a piece that is one event with one line of data, as nearly all are; nothing of any other."""
    if not piece.endswith(b"\n\n") or b"\r" in piece:
        return b""
    start = piece.find(b"\n") + 1 if piece.startswith(b"event: ") else 0
    if not piece.startswith(b"data: ", start) or piece.find(b"\n", start) != len(piece) - 2:
        return b""
    return piece[start + 6 : -2]


class _Lines:
    """Lines that end in LF, CRLF or CR."""

    def __init__(self) -> None:
        self._held: list[bytes] = []  # parts of a line whose end has not come
        self._after_return = False
        self._first = True

    @property
    def nothing_held(self) -> bool:
        return not self._held and not self._after_return

    def of(self, piece: bytes) -> list[bytes]:
        """The lines that this piece ends."""
        if self._after_return and piece:
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in piece:
            self._after_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        if lines:
            self._held.append(lines[0])
            lines[0] = self.rest()
            self._first = False
        if rest:
            self._held.append(rest)
        return lines

    def rest(self) -> bytes:
        """The line that has no end yet."""
        line = b"".join(self._held)
        self._held = []
        return line.removeprefix(BOM) if self._first else line


DONE = b"[DONE]"


def objects(events: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The objects of a stream of events; the end mark of Chat Completions may stand among them."""
    from jiter import from_json

    for data in events:
        try:
            found = from_json(data, cache_mode="keys")
        except ValueError:
            yield from odd_objects(data)
            continue
        if isinstance(found, dict):
            yield found


def odd_objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Events that a strict parser refuses: half characters, or objects without an empty line between."""
    for line in data.splitlines():
        if line == DONE or not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise BrokenStreamError("The server sent something in the middle of its reply that is no JSON.") from error
        if isinstance(found, dict):
            yield found


def plain_client(timeout: httpx.Timeout, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """A client for this machine: no proxy, and no certificates read for plain HTTP."""
    import ssl

    import httpx

    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.Client(timeout=timeout, headers=dict(headers or {}), trust_env=False, verify=trust)
