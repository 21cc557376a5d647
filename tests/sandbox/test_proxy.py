"""The proxy connects to listed hosts, never to this machine or its network, and records what it refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from interpreter.sandbox.proxy import Proxy, is_listed, is_public
from sandbox.loopback_server import QuietHandler, serving

PRIVATE = (
    *("127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1"),
    *(
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
    ),
    *(
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
    ),
    *("2002:a9fe:a9fe::1", "fec0::1", "192.0.0.192", "192.0.0.9", "168.63.129.16", "100.100.100.200", "192.88.99.1"),
    *("64:ff9b:1::1", "64:ff9b:1:a9fe:a9:fe00::", "::127.0.0.1", "::169.254.169.254", "::ffff:0:127.0.0.1"),
    *("64:ff9b::c000:c0", "::ffff:168.63.129.16", "2001:0:a9fe:a9fe::1", "2001::1", "2002:5db8:d822::1", "2001:db8::1"),
    *("3fff::1", "5f00::1", "100::1", "240.0.0.1", "4000::1"),
)


class Hello(QuietHandler):
    def do_GET(self) -> None:
        body = f"{self.path} {self.headers.get('Proxy-Authorization')} {self.headers['Connection']}".encode()
        self.answer(body)


@pytest.fixture
def server() -> Iterator[int]:
    with serving(Hello) as port:
        yield port


@pytest.fixture
def make_proxy() -> Iterator[Any]:
    proxies: list[Proxy] = []

    def make(*hosts: str, allow_private: bool = True, resolve: Any = None) -> tuple[Proxy, int]:
        proxies.append(Proxy(hosts, resolve or (lambda host, port: ["127.0.0.1"]), allow_private=allow_private))
        return proxies[-1], proxies[-1].listen()

    yield make
    for proxy in proxies:
        proxy.close()


def send_request(port: int, request: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(request.encode())
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(4096), b"")).decode()


def test_a_listed_host_is_reached_through_a_tunnel(make_proxy: Any, server: int) -> None:
    proxy, port = make_proxy(f"shop.example:{server}")
    answer = send_request(port, f"CONNECT shop.example:{server} HTTP/1.1\r\n\r\nGET /a HTTP/1.0\r\n\r\n")
    assert answer.startswith("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.0 200") and answer.endswith(
        "/a None None"
    )
    (verdict,) = proxy.take_verdicts()
    assert verdict.allowed and verdict.host == "shop.example" and proxy.take_verdicts() == []


def test_plain_requests_are_forwarded_without_proxy_headers(make_proxy: Any, server: int) -> None:
    _, port = make_proxy(f"shop.example:{server}")
    request = f"GET http://shop.example:{server}/b?c=d HTTP/1.1\r\nHost: x\r\nProxy-Authorization: y\r\nConnection: keep-alive\r\n\r\n"
    assert send_request(port, request).endswith("/b?c=d None close")


@pytest.mark.parametrize(
    "target", ["evil.example:443", "shop.example:22", "shop.example.evil.example:443", "127.0.0.1:443"]
)
def test_unlisted_hosts_are_refused_and_recorded(make_proxy: Any, target: str) -> None:
    proxy, port = make_proxy("shop.example")
    assert send_request(port, f"CONNECT {target} HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403")
    (verdict,) = proxy.take_verdicts()
    assert not verdict.allowed and not verdict.listed


@pytest.mark.parametrize("address", PRIVATE)
def test_listed_hosts_with_private_addresses_are_refused(make_proxy: Any, address: str) -> None:
    proxy, port = make_proxy("shop.example", allow_private=False, resolve=lambda host, port: ["93.184.216.34", address])
    assert send_request(port, "CONNECT shop.example:443 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403")
    (verdict,) = proxy.take_verdicts()
    assert verdict.listed and address in verdict.why


def test_host_names_are_resolved_once(make_proxy: Any, server: int) -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    _, port = make_proxy(f"shop.example:{server}", resolve=resolve)
    assert "200" in send_request(port, f"CONNECT shop.example:{server} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n")
    assert asked == ["shop.example"]


@pytest.mark.parametrize(
    "request_",
    [
        *("nonsense\r\n\r\n", "GET /local HTTP/1.1\r\n\r\n", "CONNECT x HTTP/1.1\r\n\r\n", "GET"),
        *("CONNECT shop.example:65536 HTTP/1.1\r\n\r\n", f"CONNECT shop.example:{'9' * 5000} HTTP/1.1\r\n\r\n"),
    ],
)
def test_malformed_requests_are_rejected(make_proxy: Any, request_: str) -> None:
    _, port = make_proxy("shop.example")
    assert send_request(port, request_).startswith("HTTP/1.1 400")


def test_an_unreachable_server_is_not_a_denial(make_proxy: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
        proxy, port = make_proxy(f"shop.example:{closed}")
        assert send_request(port, f"CONNECT shop.example:{closed} HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 502")
    assert proxy.take_verdicts() == []


def test_hosts_can_be_allowed_while_the_proxy_runs(make_proxy: Any, server: int) -> None:
    proxy, port = make_proxy()
    request = f"CONNECT shop.example:{server} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n"
    assert "403" in send_request(port, request)
    proxy.allow_only([f"shop.example:{server}"])
    assert "403" not in send_request(port, request)


@pytest.mark.parametrize(
    ("host", "port", "listed"),
    [
        ("pypi.org", 443, True),
        ("PyPI.org.", 443, True),
        ("pypi.org", 8443, False),
        ("files.pypi.org", 443, False),
        ("a.npmjs.org", 443, True),
        ("a.b.npmjs.org", 80, True),
        ("npmjs.org", 443, False),
        ("evilnpmjs.org", 443, False),
        ("example.com", 8080, True),
        ("example.com", 443, False),
    ],
)
def test_hosts_match_names_wildcards_and_ports(host: str, port: int, listed: bool) -> None:
    assert is_listed(host, port, ["pypi.org", "*.npmjs.org", "example.com:8080"]) is listed


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_public_addresses_are_recognized(address: str) -> None:
    assert is_public(address)


def test_removing_a_host_closes_its_connections(make_proxy: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = listening.getsockname()[1]
        proxy, port = make_proxy(f"shop.example:{there}", f"other.example:{there}")
        ends = []
        for host in ("shop", "other"):
            client = socket.create_connection(("127.0.0.1", port), 30)
            client.sendall(f"CONNECT {host}.example:{there} HTTP/1.1\r\n\r\n".encode())
            server, _ = listening.accept()
            assert client.recv(1000).endswith(b"\r\n\r\n")
            ends.append((client, server))
        proxy.allow_only([f"other.example:{there}"])
        assert ends[0][0].recv(1) == b""
        ends[1][1].sendall(b"still here")
        assert ends[1][0].recv(100) == b"still here"
        for end in (*ends[0], *ends[1]):
            end.close()
