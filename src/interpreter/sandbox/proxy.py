"""The only way out of a sandbox: a proxy outside that connects to listed hosts and records what it refused.

A runtime's first process listens in its own, empty network and hands the listening socket over, so connections made
there arrive here. A name is looked up once, its addresses are checked, and the connection goes to exactly such an
address.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

# Public addresses are IPv4 addresses that the registries call global and IPv6 global unicast addresses, except these:
# among them are the metadata services of clouds, and addresses that embed another one (6to4, Teredo).
UNICAST = ipaddress.ip_network("2000::/3")
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address in the last 32 bits
NOT_PUBLIC = [
    ipaddress.ip_network(text)
    for text in (
        *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "100.64.0.0/10", "240.0.0.0/4", "224.0.0.0/4"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
]
USUAL_PORTS = (80, 443)


def is_listed(host: str, port: int, listed: Iterable[str]) -> bool:
    """Check a host against the list: `pypi.org`, `*.pypi.org` for all below it, `host:8080` for another port."""
    host = host.rstrip(".").lower()
    for entry in listed:
        name, _, wanted = entry.strip().lower().partition(":")
        if port not in ((int(wanted),) if wanted.isdigit() else USUAL_PORTS):
            continue
        if host == name or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def is_public(text: str) -> bool:
    """Check that an address is in the public network: not this machine, its neighbours or a metadata service."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if address in TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is None:
            return address in UNICAST and not any(address in network for network in NOT_PUBLIC)
        address = inner
    return address.is_global and not any(address in network for network in NOT_PUBLIC)


MAX_HEAD_BYTES = 64 * 1024
TIMEOUT = 30.0  # seconds to send a request's head, and to connect
MAX_CONNECTIONS = 256
CHUNK = 64 * 1024
REMEMBERED = 1000
REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n")
PLAIN = re.compile(r"http://(?:[^/@]*@)?(\[[^\]]+\]|[^/:]+)(?::(\d+))?(/.*)?", re.IGNORECASE)
ADDRESSED = re.compile(r"(\[[^\]]+\]|[^:]+):(\d+)")
HOP_BY_HOP = (b"proxy-connection:", b"proxy-authorization:", b"connection:", b"keep-alive:")

Resolve = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True)
class ProxyVerdict:
    """A connection that was asked for, and whether it was allowed."""

    host: str
    port: int
    allowed: bool
    why: str = ""
    listed: bool = True  # False if it was refused because the list lacks it


class ProxyRefused(Exception):
    """A connection was refused; the message is for the program that asked for it."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Proxy:
    """Serves the runtimes of one sandbox until it is closed."""

    def __init__(self, hosts: Sequence[str], resolve: Resolve | None = None, allow_private: bool = False) -> None:
        self.hosts = list(hosts)
        self._resolve = resolve or addresses_of
        self._allow_private = allow_private  # only for tests, whose servers are local
        self._verdicts: list[ProxyVerdict] = []
        self._open: dict[socket.socket, tuple[str, int]] = {}  # connections to servers
        self._lock = threading.Lock()
        self._places = threading.Semaphore(MAX_CONNECTIONS)
        self._wake, self._waker = os.pipe()
        self._lines: list[socket.socket] = []
        self._thread: threading.Thread | None = None

    # -- runtimes --------------------------------------------------------------------------------------------

    def expect(self) -> socket.socket:
        """Expect a runtime to start. Returns the end of a line over which it sends its listening socket."""
        ours, theirs = socket.socketpair()
        with self._lock:
            self._lines.append(ours)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="sandbox proxy", daemon=True)
                self._thread.start()
            os.write(self._waker, b".")
        return theirs

    def listen(self) -> int:
        """Listen on this machine, for systems without separate networks. Returns the port."""
        listening = socket.create_server(("127.0.0.1", 0))
        with self.expect() as line:
            socket.send_fds(line, [b"."], [listening.fileno()])
        with listening:
            return int(listening.getsockname()[1])

    def allow_only(self, hosts: Sequence[str]) -> None:
        """Replace the list of hosts. Connections to hosts that are no longer on it are cut at once."""
        with self._lock:
            self.hosts[:] = hosts
            cut = [end for end, (host, port) in self._open.items() if not is_listed(host, port, hosts)]
            for end in cut:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def take_verdicts(self) -> list[ProxyVerdict]:
        with self._lock:
            taken, self._verdicts = self._verdicts, []
        return taken

    def close(self) -> None:
        with self._lock:
            waker, self._waker = self._waker, -1  # never close it twice: the number may belong to another file by then
            never_began = self._thread is None
        if waker != -1:
            os.close(waker)
            if never_began:
                os.close(self._wake)

    def _serve(self) -> None:
        listening: list[socket.socket] = []
        while True:
            watched: list[int | socket.socket] = [self._wake, *self._lines, *listening]
            ready, _, _ = select.select(watched, [], [])
            if self._wake in ready and not os.read(self._wake, 4096):
                break
            for line in [line for line in self._lines if line in ready]:
                listening += self._received(line)
            for each in [each for each in listening if each in ready]:
                if not self._accept(each):
                    listening.remove(each)
        for each in (*self._lines, *listening):
            each.close()
        os.close(self._wake)

    def _received(self, line: socket.socket) -> list[socket.socket]:
        """Receive the listening socket of a runtime that has started; none if it could not start."""
        with self._lock:
            self._lines.remove(line)
        with line, contextlib.suppress(OSError):
            _, fds, _, _ = socket.recv_fds(line, 1, 1)
            received = [socket.socket(fileno=fd) for fd in fds]
            for each in received:
                each.setblocking(False)  # a process inside may share it and be quicker
            return received
        return []

    def _accept(self, listening: socket.socket) -> bool:
        try:
            client, _ = listening.accept()
        except BlockingIOError:
            return True
        except OSError:
            listening.close()
            return False
        client.setblocking(True)
        if self._places.acquire(blocking=False):
            threading.Thread(target=self._serve_one, args=(client,), name="sandbox connection", daemon=True).start()
        else:
            client.close()
        return True

    # -- connections -----------------------------------------------------------------------------------------

    def _serve_one(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(OSError):
                client.settimeout(TIMEOUT)
                try:
                    host, port, greeting, begin = read_request(client)
                    with self._connected(host, port) as server:
                        client.sendall(greeting)
                        server.sendall(begin)
                        client.settimeout(None)
                        join(client, server)
                except ProxyRefused as refusal:
                    client.sendall(answer(refusal.status, f"{refusal}\n"))
        finally:
            self._places.release()

    @contextlib.contextmanager
    def _connected(self, host: str, port: int) -> Iterator[socket.socket]:
        """Connect to a server if the list and its address allow that.

        Refusals are recorded and raised as ProxyRefused.
        """
        try:
            if not is_listed(host, port, list(self.hosts)):
                raise ProxyRefused("403 Forbidden", f"{host}:{port} is not an allowed host (setting sandbox_hosts).")
            address = self._judged(host, port)
            try:
                server = socket.create_connection((address, port), TIMEOUT)
            except OSError as error:
                raise ProxyRefused("502 Bad Gateway", f"{host}:{port}: {error.strerror or error}") from error
        except ProxyRefused as refusal:
            if refusal.status.startswith("403"):
                self._note(ProxyVerdict(host, port, False, str(refusal), is_listed(host, port, list(self.hosts))))
            raise
        self._note(ProxyVerdict(host, port, True))
        server.settimeout(None)
        try:
            with self._lock:
                self._open[server] = (host, port)
                if not is_listed(host, port, self.hosts):  # removed from the list in the meantime
                    server.shutdown(socket.SHUT_RDWR)
            yield server
        finally:
            with self._lock:
                self._open.pop(server, None)
            server.close()

    def _judged(self, host: str, port: int) -> str:
        """Resolve a host once and check its addresses, so that a second look-up cannot give another address."""
        try:
            addresses = list(self._resolve(host, port))
        except OSError as error:
            raise ProxyRefused("502 Bad Gateway", f"can't resolve {host}: {error.strerror or error}") from error
        if not addresses:
            raise ProxyRefused("502 Bad Gateway", f"{host} has no address.")
        inside = [address for address in addresses if not is_public(address)]
        if inside and not self._allow_private:
            raise ProxyRefused("403 Forbidden", f"{host} is {inside[0]}, an address on this machine or its network.")
        return addresses[0]

    def _note(self, verdict: ProxyVerdict) -> None:
        with self._lock:
            self._verdicts = [*self._verdicts, verdict][-REMEMBERED:]


def addresses_of(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def read_request(client: socket.socket) -> tuple[str, int, bytes, bytes]:
    """Parse a request into host, port, the client's reply once connected, and the first bytes for the server."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(CHUNK)
        if not piece or len(data) > MAX_HEAD_BYTES:
            raise ProxyRefused("400 Bad Request", "The request is incomplete.")
        data += piece
    head, end, rest = data.partition(b"\r\n\r\n")
    request = REQUEST.match(head + end)
    if request is None:
        raise ProxyRefused("400 Bad Request", "The sandbox's proxy only supports HTTP.")
    target = request[2].decode("ascii", "replace")
    if request[1] == b"CONNECT":
        return *split(ADDRESSED.fullmatch(target), 443), b"HTTP/1.1 200 Connection established\r\n\r\n", rest
    plain = PLAIN.fullmatch(target)
    path = ((plain[3] if plain else None) or "/").encode("ascii", "replace")
    begin = request[1] + b" " + path + b" HTTP/1.1\r\n" + headers(head) + rest
    return *split(plain, 80), b"", begin


def split(match: re.Match[str] | None, usual: int) -> tuple[str, int]:
    port = match[2] or usual if match is not None else ""
    if match is None or len(str(port)) > 5 or int(port) > 65535:
        raise ProxyRefused("400 Bad Request", "The request names no host and port.")
    return match[1].strip("[]"), int(port)


def headers(head: bytes) -> bytes:
    """Drop the headers meant for a proxy, and make the connection end after one request."""
    lines = [line for line in head.split(b"\r\n")[1:] if not line.lower().startswith(HOP_BY_HOP)]
    return b"".join(line + b"\r\n" for line in [*lines, b"Connection: close"]) + b"\r\n"


def answer(status: str, message: str) -> bytes:
    body = message.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def join(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes in both directions until both sides are done."""
    towards = {one: other, other: one}
    open_ends = [one, other]
    while open_ends:
        ready, _, _ = select.select(open_ends, [], [])
        for end in ready:
            data = end.recv(CHUNK)
            if data:
                towards[end].sendall(data)
                continue
            open_ends.remove(end)
            with contextlib.suppress(OSError):
                towards[end].shutdown(socket.SHUT_WR)
