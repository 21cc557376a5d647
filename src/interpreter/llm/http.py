"""HTTP to model servers: sending a request, reading the streamed reply, and cutting both off from another thread.

An `Exchange` turns a request into a body and its reply into chunks in OpenAI's shape.
"""

from __future__ import annotations

import contextlib
import json
import math
import socket
import ssl
import threading
import time
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from interpreter.errors import (
    BrokenStreamError,
    ModelError,
    ModelTimeoutError,
    NotAStreamError,
    RequestRefusedError,
    WrongKeyError,
)
from interpreter.llm.failures import (
    MALFORMED,
    error_for,
    failure_of,
    malformed,
    not_a_stream,
    read_failure,
    too_large,
    unreachable,
)
from interpreter.llm.native_tools import native_tool_in
from interpreter.llm.providers import Endpoint
from interpreter.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Future

    import httpx


T = TypeVar("T")

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",  # a compressed stream comes late and in lumps
    "User-Agent": f"open-interpreter/{__version__}",
}
_ENOUGH = 7  # bytes of the body that show its kind ...
_MAX_SPACE = 65536  # ... behind no more space than this
MAX_EVENT_BYTES = 4 * 1024 * 1024  # of one event or line
MAX_ANSWER_BYTES = 8 * 1024 * 1024  # of an answer that is not streamed; as lists, it takes 30 times that in memory
_MAX_REPLY_BYTES = 256 * 1024 * 1024  # of a stream; a token comes with hundreds of bytes around it
_MAX_FAILURE_BYTES = 256 * 1024  # of an error; the rest is not read
_MAX_DEPTH = 200  # JSON that is nested deeper can't be sent back
_BOM = b"\xef\xbb\xbf"
DONE = b"[DONE]"  # the end mark of Chat Completions


Replies = MutableMapping[str, list[dict[str, Any]]]  # sent back unchanged, by the digest of the request


class Exchange(ABC):
    """One request and its reply, in the wire format of a family of servers. Each format is a subclass."""

    path = ""
    # Fields that a server may reject by name, each with the name to send it under instead, or None to leave it out.
    can_do_without: ClassVar[Mapping[str, str | None]] = {}

    def __init__(self, endpoint: Endpoint, params: Mapping[str, Any], replies: Replies) -> None:
        self.endpoint, self.replies = endpoint, replies
        self.system = [message["content"] for message in params["messages"] if message["role"] == "system"]
        self.chat = [message for message in params["messages"] if message["role"] != "system"]
        self.native_tool = native_tool_in(params.get("tools"))
        self.is_framed = False  # HTTP marks the end of the reply
        self.has_ended = False  # the reply said that it is complete
        self.body = self.make_body(params)
        for name in endpoint.refused_fields:
            value, other_name = self.body.pop(name, None), self.can_do_without.get(name)
            if other_name and value is not None:
                self.body[other_name] = value

    @abstractmethod
    def make_body(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Build the request's body, also with fields that the endpoint refuses. Unset parameters are left out."""

    @abstractmethod
    def read(self, event: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Convert one event of a streamed reply to chunks in OpenAI's shape; unknown events have none."""

    @abstractmethod
    def read_whole(self, answer: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Convert a reply that was not streamed to chunks."""

    def finish(self) -> None:
        """Raise an error if the reply is incomplete."""
        if not self.has_ended:
            raise BrokenStreamError("The server stopped in the middle of its reply. Try again.")


class Connections:
    """Keeps connections open between requests, and can close them all at once.

    Remembers what each server objects to, so that it isn't sent again.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[bool, bool], httpx.Client] = {}
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._sendings: set[Future[Any]] = set()
        self._objections: dict[tuple[str, str, str], set[str]] = {}
        self.direct = False  # never use a proxy
        self._lock = threading.RLock()  # a signal handler may cut off the thread that holds it
        self._open_clients = contextlib.ExitStack()
        weakref.finalize(self, self._open_clients.close)

    def ask(
        self,
        wire_format: type[Exchange],
        endpoint: Endpoint,
        params: Mapping[str, Any],
        replies: Replies,
        cancelled: threading.Event,
        timeouts: tuple[float, float, float],
    ) -> Iterator[dict[str, Any]]:
        """Yield the chunks of the reply as they arrive, or raise a typed error; end silently when cancelled.

        `timeouts`: for a silence, for connecting, and for the whole reply.
        """
        native = native_tool_in(params.get("tools"))
        if native is not None and native.beta:
            endpoint = replace(endpoint, extra_headers={**endpoint.extra_headers, "anthropic-beta": native.beta})
        known = self._objections.setdefault((endpoint.wire, endpoint.base_url, endpoint.model), set())
        while True:
            asked = replace(endpoint, refused_fields=(*endpoint.refused_fields, *known))
            exchange = wire_format(asked, params, replies)
            try:
                with self._open(exchange, cancelled, timeouts) as arriving:
                    for chunk in _answer(arriving, exchange):
                        if cancelled.is_set():
                            return
                        if arriving.is_due:
                            arriving.note_progress(chunk)
                        yield chunk
                return
            except MALFORMED as error:
                raise malformed(f"The server at {endpoint.base_url}", error) from error
            except ModelError as error:
                if cancelled.is_set():
                    return
                if not isinstance(error, RequestRefusedError) or not _adapt(known, error, exchange):
                    raise

    def cut(self) -> None:
        with self._lock:
            for connection in list(self._sockets):
                _shut(connection)
            for sending in list(self._sendings):
                sending.cancel()

    @contextlib.contextmanager
    def _open(
        self, exchange: Exchange, cancelled: threading.Event, timeouts: tuple[float, float, float]
    ) -> Iterator[_Arriving]:
        import httpx

        endpoint = exchange.endpoint
        if endpoint.key and not endpoint.key.isascii():
            raise WrongKeyError("The key contains invalid characters. Copy it again, without quotes or dots.")

        silence, connecting, total = timeouts
        ends = time.monotonic() + total
        opened: list[socket.socket] = []
        headers_due = time.monotonic() + connecting + silence

        def note_progress(event: str, info: Mapping[str, Any]) -> None:
            nonlocal headers_due
            if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
                opened.append(info["return_value"].get_extra_info("socket"))
                self.watch(opened[-1], cancelled)
            elif event.endswith(".send_request_body.complete"):
                headers_due = time.monotonic() + silence

        content = json.dumps(exchange.body, ensure_ascii=False).encode("utf-8", "replace")
        where = endpoint.base_url
        try:
            client = self.client(endpoint)
            request = client.build_request(
                "POST",
                where + exchange.path,
                params=dict(endpoint.query) or None,
                headers={**_HEADERS, **endpoint.headers},
                content=content,
                timeout=httpx.Timeout(min(silence, total), connect=connecting, pool=None),
                extensions={"trace": note_progress},
            )
            send = partial(client.send, request, stream=True)
            with contextlib.closing(self.send(send, cancelled, lambda: min(headers_due, ends), silence)) as response:
                yield _Arriving(response, where, silence, ends)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise unreachable(endpoint, error) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            for connection in opened:
                _shut(connection)  # or the thread that sends keeps waiting
            raise _silent(where) from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise NotAStreamError(
                f"{where!r} is not a server URL. Set api_base to one, such as http://localhost:8000/v1."
            ) from error
        except httpx.HTTPError as error:
            raise BrokenStreamError(f"The connection to {where} was lost ({error}). Try again.") from error

    def send(
        self,
        send: Callable[[], T],
        cancelled: threading.Event,
        due: Callable[[], float] = lambda: math.inf,
        step: float | None = None,
    ) -> T:
        """Run `send` and return its result; raise an error as soon as the request is cut off.

        It runs in a separate thread, because looking up a name or connecting can't be interrupted. It may postpone the
        deadline `due`, by at least `step` seconds.
        """
        from concurrent.futures import CancelledError, Future, InvalidStateError

        answered: Future[T] = Future()

        def run() -> None:
            with contextlib.suppress(InvalidStateError):  # cut off, and failed as well
                try:
                    response = send()
                except Exception as error:  # noqa: BLE001 - raised in the waiting thread
                    answered.set_exception(error)
                    return
                try:
                    answered.set_result(response)
                finally:
                    if answered.cancelled() and hasattr(response, "close"):
                        response.close()

        self._sendings.add(answered)
        if cancelled.is_set():
            answered.cancel()
        threading.Thread(target=run, name="request", daemon=True).start()
        try:
            while True:
                try:
                    return answered.result(None if step is None else max(0, min(step, due() - time.monotonic())))
                except TimeoutError:
                    if answered.done() or time.monotonic() >= due():
                        raise
        except CancelledError as error:
            raise BrokenStreamError("The request was abandoned.") from error
        except (KeyboardInterrupt, SystemExit):
            self.cut()  # or its thread keeps waiting
            raise
        finally:
            answered.cancel()  # its thread may still wait for the end of the headers
            self._sendings.discard(answered)

    def client(self, endpoint: Endpoint) -> httpx.Client:
        """Return the client for an endpoint. The first call loads httpx, which takes a moment."""
        import httpx

        # Plain HTTP skips reading certificates, which takes longer than a request. A proxy can't reach this machine.
        is_secure, is_near = endpoint.base_url.startswith("https:"), endpoint.is_loopback or self.direct
        with self._lock:
            if (is_secure, is_near) not in self._clients:
                trust = httpx.create_ssl_context() if is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                client = httpx.Client(verify=trust, trust_env=not is_near)
                self._clients[is_secure, is_near] = self._open_clients.enter_context(client)
            return self._clients[is_secure, is_near]

    def watch(self, connection: socket.socket, cancelled: threading.Event) -> None:
        """Let `cut` end a wait on this connection."""
        with self._lock:
            self._sockets.add(connection)
        if cancelled.is_set():
            _shut(connection)


def _shut(connection: socket.socket) -> None:
    # Of the base class: a TLS socket's own method forgets its encryption while another thread reads.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _adapt(known: set[str], error: RequestRefusedError, exchange: Exchange) -> bool:
    """Remember what the server objects to; return whether the request is worth sending again without it."""
    # A field may be named with a part of it: reasoning.summary, include[0].
    objections = {param.partition(".")[0].partition("[")[0] for param in error.params}
    if not error.params and error.status in (400, 422):
        # A server that doesn't say what it objects to most likely doesn't know the newest fields.
        objections = {"stream_options", "return_progress"}
        if objections & known:
            known -= objections  # refused without them too, so the reason was another
            return False
    new = objections & exchange.can_do_without.keys() & exchange.body.keys()
    known |= new
    return bool(new)


class _Arriving:
    """A response and its bytes as they arrive, within the limits of its size and time."""

    def __init__(self, response: httpx.Response, where: str, silence: float, ends: float) -> None:
        self.response = response
        self._where, self._silence, self._ends = where, silence, ends
        self._last = time.monotonic()  # when something of the reply came
        self.is_due = False  # the next chunk is worth looking at

    def note_progress(self, chunk: dict[str, Any]) -> None:
        """Reset the silence timer if the chunk has content."""
        if "prompt_progress" in chunk or any(
            any((choice.get("delta") or {}).values()) for choice in chunk.get("choices") or ()
        ):
            self._last, self.is_due = time.monotonic(), False

    def __iter__(self) -> Iterator[bytes]:
        coding = self.response.headers.get("content-encoding", "identity").lower()
        if coding not in ("identity", "gzip", "deflate"):
            raise NotAStreamError(
                f"The server at {self._where} compressed its reply as {coding!r}, which was not requested."
            )
        size = 0
        pieces = self.response.iter_raw()
        for piece in pieces if coding == "identity" else _inflated(pieces):
            size += len(piece)
            now = time.monotonic()
            self.is_due = now > self._last + self._silence / 10
            if now > self._last + self._silence:
                raise _silent(self._where)
            if now > self._ends:
                raise ModelTimeoutError(
                    f"The reply from {self._where} took too long. To wait longer, raise the setting llm.reply_timeout."
                )
            if size > _MAX_REPLY_BYTES:
                raise too_large(f"more than {_MAX_REPLY_BYTES:,} bytes")
            yield piece


def _silent(where: str) -> ModelTimeoutError:
    return ModelTimeoutError(f"No reply from {where} in time. Try again, or raise the setting llm.timeout.")


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a little at a time, however large the result is."""
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
    for piece in pieces:
        while piece:
            yield inflate.decompress(piece, MAX_EVENT_BYTES // 64)
            piece = inflate.unconsumed_tail


def _joined(pieces: Iterable[bytes], most: int) -> bytes:
    """Join the pieces, up to the one that exceeds `most` bytes."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) > most:
            break
    return bytes(held)


def _answer(arriving: _Arriving, exchange: Exchange) -> Iterator[dict[str, Any]]:
    endpoint, response, pieces = exchange.endpoint, arriving.response, iter(arriving)
    if not response.is_success:
        body = _joined(pieces, _MAX_FAILURE_BYTES)
        raise error_for(read_failure(response.status_code, response.headers, body), endpoint)
    first = b""
    for piece in pieces:
        first += piece
        if len(first.strip()) >= _ENOUGH:
            break
        if len(first) > _MAX_SPACE:
            raise too_large("nothing but space")
    begins = first.removeprefix(_BOM).lstrip()
    kind = response.headers.get("content-type", "")
    is_lines = kind.startswith("application/x-ndjson")
    exchange.is_framed = "transfer-encoding" in response.headers or "content-length" in response.headers
    chunks: Iterable[dict[str, Any]]
    if begins.startswith((b"{", b"[")) and not is_lines:
        try:
            body = _joined(chain([first], pieces), MAX_ANSWER_BYTES)
            if len(body) > MAX_ANSWER_BYTES:
                raise too_large(f"more than {MAX_ANSWER_BYTES:,} bytes")
            answer = loads(body)
            if not isinstance(answer, dict) or answer.get("error"):
                raise error_for(failure_of(answer), endpoint)
            chunks = exchange.read_whole(answer)
        except MALFORMED as error:
            raise not_a_stream(endpoint, kind) from error
    elif is_lines or begins.startswith((b"data:", b"event:", b"id:", b"retry:", b":")):
        chunks = read_events((json_lines if is_lines else event_data)(chain([first], pieces)), exchange)
    elif not begins:
        raise BrokenStreamError(f"The server at {endpoint.base_url} sent an empty reply. Try again.")
    else:
        raise not_a_stream(endpoint, kind)
    for chunk in chunks:
        if chunk.get("error"):
            raise error_for(failure_of(chunk), endpoint)
        yield chunk


def read_events(events: Iterable[bytes], exchange: Exchange) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed reply; raise an error if it is incomplete."""
    from jiter import from_json

    done = False
    for data in events:
        if done:
            continue  # read to the end, so that the connection can be used again
        try:
            events_in_data = [from_json(data, cache_mode="keys")]
        except ValueError:  # the end mark, half characters, or objects without an empty line between them
            if data == DONE:
                done = exchange.has_ended = True
                continue
            try:
                events_in_data = [loads(line) for line in data.splitlines() if line != DONE and line.strip()]
            except ValueError as error:
                raise BrokenStreamError("The server sent invalid JSON in the middle of its reply.") from error
        for event in events_in_data:
            if isinstance(event, dict):
                yield from exchange.read(event)
    exchange.finish()


def json_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines that are not blank, however the bytes are split."""
    held = bytearray()  # an unfinished line
    for piece in chain(pieces, [b"\n"]):
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = bytes(held) + lines[0]
            held.clear()
        held += rest
        if len(held) > MAX_EVENT_BYTES:
            raise too_large(f"a line of more than {MAX_EVENT_BYTES:,} bytes")
        yield from filter(bytes.strip, lines)


def event_data(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event, however the bytes are split; skip comments and other fields.

    Written by hand: httpx-sse works on decoded lines and costs as much per event as reading it from the network.
    """
    held = bytearray()  # an unfinished line
    data: list[bytes] = []
    after_return = False
    size = 0  # of the unfinished event
    for piece in chain(pieces, [b"\n\n"]):  # some servers omit the empty line after the last event
        is_whole = piece.endswith(b"\n\n") and b"\r" not in piece
        if is_whole and not data and not held and not after_return:  # nearly always one event with one line of data
            start = piece.find(b"\n") + 1 if piece.startswith(b"event: ") else 0
            if piece.startswith(b"data: ", start) and piece.find(b"\n", start) == len(piece) - 2:
                yield piece[start + 6 : -2]
                continue
        if after_return and piece:
            piece, after_return = piece.removeprefix(b"\n"), False
        if b"\r" in piece:
            after_return = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        size += len(piece)
        if size > MAX_EVENT_BYTES:
            raise too_large(f"a part of more than {MAX_EVENT_BYTES:,} bytes")
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = bytes(held) + lines[0]
            held.clear()
        held += rest
        for line in lines:
            line = line.removeprefix(_BOM)
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0


def loads(text: str | bytes | bytearray) -> Any:
    """Parse JSON; a ValueError if it is nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [each for values in inner for each in values]
    if level:
        raise ValueError("JSON is nested too deeply")
    return value


# Pieces of a reply in OpenAI's shape: of its text or reasoning, the beginning of a call, more of its arguments.


def delta_chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def call_chunk(index: int, call_id: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": ""}
    return delta_chunk(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])


def arguments_chunk(index: int, piece: str) -> dict[str, Any]:
    return delta_chunk(tool_calls=[{"index": index, "function": {"arguments": piece}}])


def plain_client(timeout: httpx.Timeout, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """Create a client for this machine: no proxy, and no certificates read for plain HTTP."""
    import httpx

    return httpx.Client(
        timeout=timeout,
        headers={"Accept-Encoding": "identity", **(headers or {})},
        trust_env=False,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )


def fetch_json(
    method: str,
    url: str,
    seconds: float,
    body: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    connect: float,
) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON object of a small answer from this machine; an empty object if it has none.

    Raises an HTTPError if it takes longer than `seconds`, or connecting longer than `connect`.
    """
    import httpx

    ends, read = time.monotonic() + seconds, bytearray()
    opened: list[socket.socket] = []

    def note_socket(event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(".connect_tcp.complete"):
            opened.append(info["return_value"].get_extra_info("socket"))

    def give_up() -> None:
        for connection in opened:
            _shut(connection)

    # The client's own time-out begins again with every byte, also of the headers.
    late = threading.Timer(seconds, give_up)
    late.daemon = True
    late.start()
    try:
        with (
            plain_client(httpx.Timeout(seconds, connect=connect), headers) as client,
            client.stream(method, url, json=body, extensions={"trace": note_socket}) as response,
        ):
            for piece in chain(response.iter_raw(), [b""]):  # it may end because it was given up
                read += piece
                if len(read) > MAX_EVENT_BYTES or time.monotonic() > ends:
                    raise httpx.ReadTimeout("its answer is too large or too slow")
    finally:
        late.cancel()
    try:
        answer = loads(read)
    except ValueError:
        answer = {}
    return response.status_code, answer if isinstance(answer, dict) else {}
