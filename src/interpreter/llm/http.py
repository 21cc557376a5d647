"""HTTP to model servers: sending a request, reading the streamed reply, and cutting both off from another thread.

A wire format (`WireFormat`) turns a request into a body and a reply into chunks in OpenAI's shape.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import (
    BrokenStreamError,
    ModelError,
    ModelTimeoutError,
    NotAStreamError,
    RequestRefusedError,
    WrongKeyError,
)
from interpreter.llm.computer_use import Screen, kind_of, screen_in
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
_ENOUGH = 7  # bytes of the body, to see what it is
_BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"  # the end mark of Chat Completions
_EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


@dataclass(frozen=True)
class Sent:
    """A request that was sent."""

    endpoint: Endpoint
    body: dict[str, Any]
    screen: Screen | None = None  # if the model has a computer tool of its provider
    chat: Sequence[Mapping[str, Any]] = ()  # the messages that the body was made from


class WireFormat(Protocol):
    """The request and the reply of one family of servers."""

    path: str

    def body(self, endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
        """The request's body. Parameters that are not set are not sent."""

    def adapt(self, endpoint: Endpoint, error: RequestRefusedError, params: Mapping[str, Any]) -> bool:
        """Remember what the server objects to. Returns whether the request is worth sending again without it."""

    def chunks(self, events: Iterator[bytes], framed: bool, sent: Sent) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed reply. If it is `framed`, HTTP marks its end."""

    def whole(self, answer: dict[str, Any], sent: Sent) -> dict[str, Any]:
        """The reply of a server that does not stream, as one chunk."""


class Connections:
    """Keeps connections open between requests, and can shut them all at once."""

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.Client] = {}
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._sendings: set[_Sending] = set()
        self.direct = False  # never use a proxy
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
        """The chunks of the reply as they arrive, or a typed error. Ends silently when cancelled."""
        sent = Sent(endpoint, wire_format.body(endpoint, params), screen_in(params.get("tools")), params["messages"])
        kind = kind_of(endpoint.wire, endpoint.model) if sent.screen is not None else None
        if kind is not None and kind.beta:
            endpoint = replace(endpoint, extra_headers={**endpoint.extra_headers, "anthropic-beta": kind.beta})
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
        """End all reads and writes, from any thread."""
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

        def note_socket(event: str, info: Mapping[str, Any]) -> None:
            if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
                self.watch(info["return_value"].get_extra_info("socket"), cancelled)

        silence, connecting = timeouts
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        where = endpoint.base_url
        try:
            client = self.client(endpoint)
            request = client.build_request(
                "POST",
                where + path,
                params=dict(endpoint.query) or None,
                headers={**_HEADERS, **endpoint.headers},
                content=content,
                timeout=httpx.Timeout(silence, connect=connecting, pool=None),
                extensions={"trace": note_socket},
            )
            with contextlib.closing(self._send(partial(client.send, request, stream=True), cancelled)) as response:
                yield response
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

    def _send(self, send: Callable[[], httpx.Response], cancelled: threading.Event) -> httpx.Response:
        """The beginning of the reply, or an error as soon as the request is cut off."""
        sending = _Sending(send)
        self._sendings.add(sending)
        if cancelled.is_set():
            sending.give_up()
        try:
            response = sending.response()
        except (KeyboardInterrupt, SystemExit):
            sending.give_up()
            self.cut()  # or its thread keeps waiting
            raise
        finally:
            self._sendings.discard(sending)
        if response is None:
            raise BrokenStreamError("The request was given up.")
        return response

    def client(self, endpoint: Endpoint) -> httpx.Client:
        """The client for an endpoint. The first call loads httpx, which takes a moment."""
        import httpx

        # Plain HTTP skips reading certificates, which takes longer than a request. A proxy can't reach this machine.
        is_secure, is_near = endpoint.base_url.startswith("https:"), endpoint.is_loopback or self.direct
        with self._lock:
            if (is_secure, is_near) not in self._clients:
                trust = httpx.create_ssl_context() if is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                self._clients[is_secure, is_near] = httpx.Client(verify=trust, trust_env=not is_near)
            return self._clients[is_secure, is_near]

    def watch(self, connection: socket.socket, cancelled: threading.Event) -> None:
        """Let `cut` end a wait on this connection."""
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


def _answer(response: httpx.Response, sent: Sent, wire_format: WireFormat) -> Iterator[dict[str, Any]]:
    endpoint = sent.endpoint
    if not response.is_success:
        response.read()
        raise error_for(read_failure(response.status_code, response.headers, response.content), endpoint)
    pieces = response.iter_raw() if "content-encoding" not in response.headers else response.iter_bytes()
    first = b""
    for piece in pieces:
        first += piece
        if len(first.strip()) >= _ENOUGH:
            break
    begins = first.removeprefix(_BOM).lstrip()
    kind = response.headers.get("content-type", "")
    is_lines = kind.startswith("application/x-ndjson")
    if begins.startswith((b"{", b"[")) and not is_lines:
        yield _whole(b"".join(chain([first], pieces)), sent, wire_format, kind)
    elif is_lines or begins.startswith(_EVENT_FIELDS):
        read = _lines if is_lines else event_data
        framed = "transfer-encoding" in response.headers or "content-length" in response.headers
        for chunk in wire_format.chunks(read(chain([first], pieces)), framed, sent):
            if chunk.get("error"):
                raise error_for(failure_of(chunk), endpoint)
            yield chunk
    elif not begins:
        raise BrokenStreamError(f"The server at {endpoint.base_url} sent an empty reply. Try again.")
    else:
        raise not_a_stream(endpoint, kind)


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


class _Sending:
    """Sends in a separate thread, because looking up a name or connecting can't be interrupted."""

    def __init__(self, send: Callable[[], httpx.Response]) -> None:
        self._send = send
        self._came: queue.SimpleQueue[httpx.Response | Exception | None] = queue.SimpleQueue()
        self._settled = False  # answered or given up
        self._settling = threading.RLock()  # a signal handler may give up in the waiting thread
        self._thread = threading.Thread(target=self._run, name="request", daemon=True)

    def response(self) -> httpx.Response | None:
        """The beginning of the reply, or None after `give_up`."""
        self._thread.start()
        came = self._came.get()
        if isinstance(came, Exception):
            raise came
        return came

    def give_up(self) -> None:
        """Release the waiting thread. A reply that still arrives is closed."""
        with self._settling:
            if not self._settled:
                self._settled = True
                self._came.put(None)

    def _run(self) -> None:
        came: httpx.Response | Exception
        try:
            came = self._send()
        except Exception as error:  # noqa: BLE001 - raised in the waiting thread
            came = error
        with self._settling:
            is_late, self._settled = self._settled, True
            if not is_late:
                self._came.put(came)
        if is_late and not isinstance(came, Exception):
            with contextlib.suppress(Exception):
                came.close()


def event_data(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event, however the bytes are split. Comments and other fields are skipped.

    Written by hand: httpx-sse works on decoded lines and costs as much per event as reading it from the network.
    """
    held: list[bytes] = []  # parts of an unfinished line
    data: list[bytes] = []
    after_return = False
    for piece in chain(pieces, [b"\n\n"]):  # some servers omit the empty line after the last event
        if not data and not held and not after_return and (only := _only_data(piece)):
            yield only
            continue
        if after_return and piece:
            piece, after_return = piece.removeprefix(b"\n"), False
        if b"\r" in piece:
            after_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = b"".join([*held, lines[0]])
            held = []
        if rest:
            held.append(rest)
        for line in lines:
            line = line.removeprefix(_BOM)
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                yield b"\n".join(data)
                data = []


def _only_data(piece: bytes) -> bytes:
    """The data of a piece that is exactly one event with one line of data, as nearly all are; otherwise nothing."""
    if not piece.endswith(b"\n\n") or b"\r" in piece:
        return b""
    start = piece.find(b"\n") + 1 if piece.startswith(b"event: ") else 0
    if not piece.startswith(b"data: ", start) or piece.find(b"\n", start) != len(piece) - 2:
        return b""
    return piece[start + 6 : -2]


def json_objects(data: bytes) -> list[dict[str, Any]]:
    """The objects in the data of one event: nearly always one, none for the end mark of Chat Completions."""
    from jiter import from_json

    try:
        found = [from_json(data, cache_mode="keys")]
    except ValueError:  # half characters, or objects without an empty line between them
        lines = [line for line in data.splitlines() if line != DONE and line.strip()]
        try:
            found = [json.loads(line) for line in lines]
        except ValueError as error:
            raise BrokenStreamError("The server sent something in the middle of its reply that is no JSON.") from error
    return [each for each in found if isinstance(each, dict)]


def delta_chunk(**delta: Any) -> dict[str, Any]:
    """A piece of a reply in OpenAI's shape."""
    return {"choices": [{"delta": delta}]}


def call_chunk(index: int, call_id: str, name: str) -> dict[str, Any]:
    """The beginning of a tool call in OpenAI's shape."""
    function = {"name": name, "arguments": ""}
    return delta_chunk(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])


def arguments_chunk(index: int, piece: str) -> dict[str, Any]:
    """A piece of the arguments of a tool call in OpenAI's shape."""
    return delta_chunk(tool_calls=[{"index": index, "function": {"arguments": piece}}])


def joined_chunk(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """All chunks of a reply as one; the error alone if one of them has an error."""
    joined: dict[str, Any] = {}
    delta: dict[str, Any] = {}
    finish_reason = "stop"
    for chunk in chunks:
        if "error" in chunk:
            return chunk
        joined |= chunk
        for choice in chunk["choices"]:
            finish_reason = choice.get("finish_reason") or finish_reason
            for key, piece in choice["delta"].items():
                delta[key] = delta[key] + piece if key in delta else piece
    return {**joined, "choices": [{"delta": delta, "finish_reason": finish_reason}]}


def plain_client(timeout: httpx.Timeout, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """A client for this machine: no proxy, and no certificates read for plain HTTP."""
    import httpx

    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.Client(timeout=timeout, headers=dict(headers or {}), trust_env=False, verify=trust)
