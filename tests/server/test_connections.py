"""Clients that open connections and send no whole request: they don't keep the server from others."""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from interpreter.config.homes import our_folder
from interpreter.frontends.server import connections, gate
from ports import free_ports
from running_server import Serving, serving
from waiting import LIMIT, until

HALF = b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def raw_connection(port: int, data: bytes = b"") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
    opened.sendall(data)
    return opened


def has_ended(connection: socket.socket) -> bool:
    """Whether the server has closed it, which is not waited for."""
    connection.setblocking(False)
    try:
        return connection.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@contextmanager
def server_with_few_descriptors() -> Iterator[tuple[subprocess.Popen[str], int]]:
    [port] = free_ports(1)
    flags = ["--serve", "--port", str(port), "--model", "gpt-4o", "--api_base", "http://127.0.0.1:1", "--api_key", "x"]
    command = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", sys.executable, "-m", "interpreter", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        assert process.stderr is not None
        assert any("For scripts" in line for line in process.stderr)
        yield process, port
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("this process can't open so many connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("many_addresses", [False, True])
def test_half_sent_requests_do_not_use_up_the_descriptors(
    home: Path, many_descriptors: None, many_addresses: bool
) -> None:
    with server_with_few_descriptors() as (process, port), ExitStack() as held:
        token = (our_folder("data") / "server" / "token").read_text()
        headers = {"Authorization": f"Bearer {token}"}
        for number in range(1100):
            source = (f"127.0.0.{2 + number % 50}" if many_addresses else "127.0.0.1", 0)
            opened = held.enter_context(
                closing(socket.create_connection(("127.0.0.1", port), timeout=LIMIT, source_address=source))
            )
            opened.sendall(HALF)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=10, trust_env=False) as http:
            session = http.post("/api/sessions", json={}).json()["id"]
            run = http.post(f"/api/sessions/{session}/run", json={"language": "python", "code": "print(6 * 7)"})
            assert "42" in run.text
        process.terminate()
        _, errors = process.communicate(timeout=LIMIT)
    assert "out of system resource" not in errors and "Traceback" not in errors


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.3)
    monkeypatch.setattr(connections, "KEEP_ALIVE", 0.2)
    monkeypatch.setattr(gate, "_BODY_TIMEOUT", 0.3)


@pytest.mark.parametrize(
    "half",
    [b"", b"GET /", HALF, b"POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"],
    ids=["nothing", "half a line", "half the headers", "half a body"],
)  # fmt: skip
def test_a_request_without_a_token_has_a_deadline(home: Path, hurried: None, half: bytes) -> None:
    with serving() as served:
        port = served.application.port
        with raw_connection(port, half.replace(b"{host}", f"127.0.0.1:{port}".encode())) as opened:
            while opened.recv(65536):
                pass


def request_of(served: Serving, line: str, *headers: str) -> bytes:
    known = [f"Host: 127.0.0.1:{served.application.port}", f"Authorization: Bearer {served.users.token}"]
    return "\r\n".join([line, *known, *headers, "", ""]).encode()


def test_a_body_that_drips_has_a_deadline(home: Path, hurried: None) -> None:
    with serving() as served:
        headers = ["Content-Type: application/json", "Content-Length: 5000"]
        half = request_of(served, "POST /api/sessions HTTP/1.1", *headers)
        with raw_connection(served.application.port, half) as opened:
            answer, ends = b"", time.monotonic() + LIMIT
            opened.settimeout(0.05)
            while b"408" not in answer:
                assert time.monotonic() < ends
                opened.send(b" ")
                try:
                    answer += opened.recv(65536)
                except TimeoutError:
                    continue
            until(lambda: has_ended(opened), "the end of the connection")


def test_the_next_request_of_a_connection_has_a_deadline_too(home: Path, hurried: None) -> None:
    with serving() as served:
        whole = request_of(served, "GET /api/me HTTP/1.1")
        with raw_connection(served.application.port, whole) as opened:
            assert b"200 OK" in opened.recv(65536)
            opened.sendall(whole[:40])
            while opened.recv(65536):
                pass


def test_a_request_with_a_token_takes_as_long_as_it_likes(home: Path, hurried: None) -> None:
    with serving() as served:
        session = served.session()
        assert "done" in served.run(session, "import time; time.sleep(1.5); print('done')")
        assert len(served.events(session, after="1000000", wait=1.5)) == 0
        upload = b"x" * 3_000_000
        kind = {"Content-Type": "application/octet-stream"}

        def pieces() -> Any:
            for start in range(0, len(upload), 500_000):
                time.sleep(0.15)  # slower than the deadline, but steady
                yield upload[start : start + 500_000]

        path = f"/api/sessions/{session}/files/large.bin"
        assert served.http.put(path, content=pieces(), headers=kind).json()["size"] == len(upload)


def test_an_address_keeps_only_its_newest_connections_without_a_token(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_WAITING_OF_ADDRESS", 4)
    with serving() as served, ExitStack() as held:
        port = served.application.port
        elsewhere = held.enter_context(
            closing(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0)))
        )
        streaming = held.enter_context(closing(raw_connection(port)))
        session = served.session()
        accept = ["Accept: text/event-stream"]
        streaming.sendall(request_of(served, f"GET /api/sessions/{session}/events?after=0 HTTP/1.1", *accept))
        assert b"200 OK" in streaming.recv(65536)
        opened = [held.enter_context(closing(raw_connection(port, HALF))) for _ in range(10)]
        until(lambda: all(map(has_ended, opened[:6])), "the end of the oldest")
        assert served.http.get("/api/me").status_code == 200
        assert not any(map(has_ended, [elsewhere, streaming, opened[-1]]))


def connection_from(source: int, port: int) -> socket.socket:
    """A connection that ends with a reset, so that its own port is free at once."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    opened.settimeout(LIMIT)
    opened.bind(("127.0.0.1", source))
    opened.connect(("127.0.0.1", port))
    return opened


def test_a_client_that_comes_back_from_the_same_port_has_a_deadline_too(home: Path, hurried: None) -> None:
    with serving() as served:
        [source] = free_ports(1)
        for _ in range(20):
            connection_from(source, served.application.port).close()
            with connection_from(source, served.application.port) as opened:
                opened.sendall(HALF)
                while opened.recv(65536):
                    pass
