"""The gate: requests with a wrong token, origin or host change nothing."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from interpreter.errors import UsageError
from interpreter.frontends.server.application import ALL_ROUTES, Application
from interpreter.frontends.server.gate import Users
from interpreter.frontends.server.routes import SOCKETS
from interpreter.frontends.server.sessions import SessionKey
from interpreter.session import PlanStep
from model_replies import text
from running_server import Serving, ends_turn, serving, stored
from waiting import LIMIT, until


def fill_path(path: str, session: str) -> str:
    path = path.replace("{id}", session).replace("{number:int}", "0").replace("{path:path}", "notes.txt")
    return re.sub(r"{\w+(:\w+)?}", "x", path)


@pytest.fixture(scope="module")
def victim(shared: Serving) -> str:
    """A session of the local user, with a file in its workspace."""
    session = shared.session(title="mine")
    Path("notes.txt").write_text("mine")
    return session


@pytest.fixture(scope="module")
def stranger(shared: Serving) -> httpx.Client:
    return shared.user("stranger")


def attempts(served: Serving, stranger: httpx.Client) -> dict[str, tuple[dict[str, str], bool]]:
    """By name: the headers of an attempt, and whether it applies only to a session's addresses."""
    right = {"Authorization": f"Bearer {served.users.token}"}
    return {
        "no token": ({}, False),
        "wrong token": ({"Authorization": "Bearer wrong"}, False),
        "another auth scheme": ({"Authorization": "Basic x"}, False),
        "another origin": ({**right, "Origin": "http://evil.example"}, False),
        "an origin with the same prefix": ({**right, "Origin": f"{served.url}.evil.example"}, False),
        "a null origin": ({**right, "Origin": "null"}, False),
        "another host": ({**right, "Host": "evil.example"}, False),
        "another port": ({**right, "Host": "127.0.0.1:1"}, False),
        "another site": ({**right, "Sec-Fetch-Site": "cross-site"}, False),
        "another user": ({"Authorization": stranger.headers["Authorization"]}, True),
    }


@pytest.mark.parametrize("route", ALL_ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_refuses_unauthorized_requests(
    shared: Serving, victim: str, stranger: httpx.Client, route: Any, home: Path
) -> None:
    address, before = fill_path(route.path, victim), stored(shared.hub.folder.parent)
    assert before
    body = {"media": b"x"} if route.method in ("POST", "PUT", "PATCH", "DELETE") else {}
    for name, (headers, of_session) in attempts(shared, stranger).items():
        if of_session and "{id}" not in route.path:
            continue
        kind = {"Content-Type": "application/octet-stream" if route.effect == "upload" else "application/json"}
        content = b"{}" if body else None
        with shared.client() as client:
            given = {**headers, **(kind if body else {})}
            answer = client.request(route.method, address, headers=given, content=content)
        assert 400 <= answer.status_code < 500, (name, answer.status_code, answer.text)
        assert shared.users.token not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
        shared.application.gate._failures._left.clear()  # wrong tokens have their own limit, tested below
    if body:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/x-json"):
            answer = shared.http.request(route.method, address, content=b"{}", headers={"Content-Type": kind})
            assert answer.status_code == 415, kind
    assert stored(shared.hub.folder.parent) == before


@pytest.mark.parametrize("socket_path", [path for path, _, _ in SOCKETS])
def test_every_websocket_refuses_unauthorized_connections(
    shared: Serving, victim: str, stranger: httpx.Client, socket_path: str
) -> None:
    address = shared.url.replace("http", "ws", 1) + fill_path(socket_path, victim)
    for name, (headers, of_session) in attempts(shared, stranger).items():
        if (of_session and "{id}" not in socket_path) or (
            name in ("no token", "another auth scheme") and socket_path == "/"
        ):
            continue  # there the token may come as the first frame
        given = {key: value for key, value in headers.items() if key != "Host"}
        bound = socket.create_connection(("127.0.0.1", shared.application.port))
        target = address.replace(f"127.0.0.1:{shared.application.port}", headers.get("Host", address.split("/")[2]))
        with pytest.raises(InvalidStatus) as refused:
            connect(target, sock=bound, additional_headers=given, proxy=None).close()
        assert 400 <= refused.value.response.status_code < 500, name
        shared.application.gate._failures._left.clear()


def test_a_refused_websocket_logs_no_error(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving() as served, pytest.raises(InvalidStatus):
        connect(f"{served.url.replace('http', 'ws', 1)}/nowhere", proxy=None)
    assert "ERROR" not in capfd.readouterr().err


@pytest.mark.full
def test_a_connection_stays_open_between_requests(shared: Serving) -> None:
    client = http.client.HTTPConnection("127.0.0.1", shared.application.port, timeout=60)
    client.connect()
    client.auto_open = 0
    for pause in (0.0, 7.0):
        time.sleep(pause)
        client.request("GET", "/api/me", headers={"Authorization": f"Bearer {shared.users.token}"})
        assert b"local" in client.getresponse().read()
    client.close()


def test_dns_rebinding_is_refused(shared: Serving) -> None:
    """DNS rebinding: another host name that resolves to this server, with everything else right."""
    name = f"rebound.example:{shared.application.port}"
    headers = {"Host": name, "Origin": f"http://{name}"}
    assert shared.http.get("/api/me", headers=headers).status_code == 421
    cookie = f"{shared.application.gate.cookie_name}={shared.users.cookie(shared.users.find('local'))}"  # type: ignore[arg-type]
    with shared.client() as client:
        assert client.get("/api/me", headers={**headers, "Cookie": cookie}).status_code == 421
        assert client.get("/api/me", headers={"Cookie": cookie}).status_code == 200


def test_the_start_link_works_once_and_sets_a_strict_cookie(shared: Serving) -> None:
    link = shared.application.start_link
    with shared.client() as browser, shared.client() as thief:
        answer = browser.get(link)
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 303 and answer.headers["location"] == "/"
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert shared.users.token not in cookie and link.partition("token=")[2] not in answer.text + cookie
        assert thief.get(link).status_code == 403
        assert thief.get("/").status_code == 401
        assert browser.get("/").status_code == 200
        assert link.partition("token=")[2] not in browser.get("/").text
        # With a cookie, requests that change something must come from our own page.
        assert browser.post("/api/sessions", json={}).status_code == 403
        assert browser.post("/api/sessions", json={}, headers={"Origin": shared.url}).status_code == 201


def test_a_token_signs_a_browser_in(shared: Serving) -> None:
    with shared.client() as browser:
        assert browser.post("/login", json={"token": "wrong"}).status_code == 403
        assert browser.post("/login", content=b"token=x", headers={"Content-Type": "text/plain"}).status_code == 415
        assert browser.post("/login", json={"token": shared.users.token}).status_code == 204
        assert browser.get("/api/me").json()["name"] == "local"


def test_cookies_of_other_local_servers_do_not_sign_the_user_out(shared: Serving) -> None:
    user = shared.users.find("local")
    assert user is not None
    own = f"{shared.application.gate.cookie_name}={shared.users.cookie(user)}"
    for other in ('settings={"a": 1}', "name=two words", "flag", "é=1"):
        with shared.client(Cookie=f"{other}; {own}".encode()) as browser:  # type: ignore[arg-type]
            assert browser.get("/api/me").status_code == 200, other


def test_a_viewer_can_only_read_shared_sessions(shared: Serving, victim: str) -> None:
    viewer = shared.user("vera:viewer")
    assert viewer.get(f"/api/sessions/{victim}").status_code == 404
    assert shared.http.put(f"/api/sessions/{victim}/share", json={"users": ["vera"]}).json() == {"users": ["vera"]}
    assert viewer.get(f"/api/sessions/{victim}/events").status_code == 200
    assert [row["id"] for row in viewer.get("/api/sessions").json()["sessions"]] == [victim]
    for route in ALL_ROUTES:
        if route.effect != "read":
            kind = "application/octet-stream" if route.effect == "upload" else "application/json"
            answer = viewer.request(
                route.method, fill_path(route.path, victim), content=b"{}", headers={"Content-Type": kind}
            )
            assert answer.status_code == 403, route.path
    shared.http.put(f"/api/sessions/{victim}/share", json={"users": []})
    assert viewer.get(f"/api/sessions/{victim}/events").status_code == 404


def test_replacing_a_token_closes_open_websockets(shared: Serving, victim: str) -> None:
    token = shared.users.add("peter:viewer")
    shared.http.put(f"/api/sessions/{victim}/share", json={"users": ["peter"]})
    address = f"{shared.url.replace('http', 'ws', 1)}/api/sessions/{victim}/events"
    with connect(address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None) as open_socket:
        open_socket.send(json.dumps({"type": "cancel"}))
        while "error" not in (frame := json.loads(open_socket.recv(60))):
            pass
        assert frame["error"]["type"] == "role"
        shared.users.add("peter:viewer")
        open_socket.send(json.dumps({"type": "cancel"}))
        with pytest.raises(ConnectionClosed, match="4401"):
            list(iter(open_socket.recv, None))
    assert shared.client(token).get("/api/me").status_code == 401


def test_replacing_a_token_ends_event_streams(shared: Serving, victim: str) -> None:
    reader = shared.user("stan")
    session = reader.post("/api/sessions", json={}).json()["id"]
    path, accept = f"/api/sessions/{session}/events", {"Accept": "text/event-stream"}
    with reader.stream("GET", path, headers=accept) as stream:
        shared.users.add("stan")
        live = shared.hub.find(SessionKey("stan", session))
        assert live is not None
        live.interpreter.session.plan([PlanStep("something new")], live.interpreter.user)
        with pytest.raises(httpx.TransportError):
            stream.read()


def test_server_names_allow_a_tls_proxy_in_front(home: Path) -> None:
    with serving(server_names=["interpreter.example.com"]) as served:
        name = {"Host": "interpreter.example.com"}
        for origin, status in (("https://interpreter.example.com", 200), ("https://example.com", 403)):
            assert served.http.get("/api/me", headers={**name, "Origin": origin}).status_code == status
        assert served.http.get("/api/me", headers={"Origin": served.url.replace("http", "https")}).status_code == 403


def test_the_audit_log_names_users_but_no_secrets(shared: Serving) -> None:
    name = "trail"
    client = shared.user(name)
    client.post("/api/sessions", json={"title": "secret title"})
    link = shared.application.start_link
    httpx.get(link, trust_env=False)
    trail = (shared.hub.folder / "audit.jsonl").read_text()
    rows = [json.loads(line) for line in trail.splitlines()]
    assert {"user": name, "method": "POST", "path": "/api/sessions", "status": 201}.items() <= rows[-2].items()
    assert "secret title" not in trail and link.partition("token=")[2] not in trail
    assert client.headers["Authorization"].split()[1] not in trail
    assert (shared.hub.folder / "audit.jsonl").stat().st_mode & 0o077 == 0
    assert [row["user"] for row in client.get("/api/audit").json()["entries"]] == [name]


def test_the_audit_log_includes_websocket_frames(home: Path) -> None:
    with serving(text("Yes."), text("Yes.")) as served:
        session, token = served.session(), {"Authorization": f"Bearer {served.users.token}"}
        address = served.url.replace("http", "ws", 1)

        def frames() -> list[str]:
            entries = served.http.get("/api/audit").json()["entries"]
            return [row["path"] for row in entries if row["method"] == "FRAME"]

        events = f"/api/sessions/{session}/events"
        with connect(f"{address}{events}", additional_headers=token, proxy=None) as socket:
            socket.send(json.dumps({"type": "message", "content": "a secret plan"}))
            while not ends_turn(json.loads(socket.recv(60))):
                pass
        with connect(f"{address}/", additional_headers=token, proxy=None) as socket:
            for content, kind in (("a secret plan", "message"), ("stop", "command")):
                socket.send(json.dumps({"role": "user", "type": kind, "content": content, "end": True}))
                while kind == "message" and "complete" not in socket.recv(60):
                    pass
            until(lambda: len(frames()) == 3, "the last frame")
        assert frames() == [f"{events} message", "/ message", "/ command stop"]
        assert "secret plan" not in (served.hub.folder / "audit.jsonl").read_text()


def test_request_rate_and_body_size_are_limited(home: Path) -> None:
    with serving(server_rate=5, server_max_body=2000) as served:
        large = b"[" + b" " * 5000 + b"]"
        assert (
            served.http.post("/api/sessions", content=large, headers={"Content-Type": "application/json"}).status_code
            == 413
        )

        def pieces() -> Any:
            for _ in range(50):
                yield b" " * 100

        assert (
            served.http.post(
                "/api/sessions", content=pieces(), headers={"Content-Type": "application/json"}
            ).status_code
            == 413
        )
        answers = [served.http.get("/api/me").status_code for _ in range(10)]
        assert answers[0] == 200 and answers[-1] == 429
        wrong = [served.client("wrong").get("/api/me").status_code for _ in range(40)]
        assert wrong[0] == 401 and wrong[-1] == 429


def test_wrong_tokens_do_not_lock_out_right_ones_from_the_same_address(home: Path) -> None:
    with serving() as served, served.client("wrong") as guesser, served.client() as browser:
        cookie = f"{served.application.gate.cookie_name}={served.users.cookie(served.users.find('local'))}"  # type: ignore[arg-type]
        assert [guesser.get("/api/me").status_code for _ in range(40)][-1] == 429
        assert served.http.get("/api/me").status_code == 200
        assert served.client(Cookie=cookie).get("/api/me").status_code == 200
        assert browser.get("/start?token=wrong").status_code == 429
        assert browser.get(served.application.start_link).status_code == 303
        assert browser.post("/login", json={"token": "wrong"}).status_code == 429
        assert browser.post("/login", json={"token": served.users.token}).status_code == 204
        address = f"{served.url.replace('http', 'ws', 1)}/"
        with connect(address, proxy=None) as socket:
            socket.send(json.dumps({"auth": "wrong"}))
            with pytest.raises(ConnectionClosed, match="4429"):
                list(iter(socket.recv, None))
        with connect(address, proxy=None) as socket:
            socket.send(json.dumps({"auth": served.users.token}))
            assert json.loads(socket.recv(60)) == {"auth": True}


@pytest.mark.parametrize("size", ["zz", "ffffffffffffffffffffffff"])
def test_a_malformed_body_without_a_token_leaves_no_traceback(
    shared: Serving, size: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    port = shared.application.port
    head = f"POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as opened:
        opened.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n{size}\r\n\r\n".encode())
        while opened.recv(65536):
            pass
    assert shared.http.get("/api/me").status_code == 200
    assert "Traceback" not in capfd.readouterr().err + caplog.text


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_body_with_two_lengths_is_refused_and_the_connection_closed(shared: Serving, version: str) -> None:
    lengths = ["Content-Length: 2"] if version == "1.1" else []
    headers = [
        f"POST /api/sessions HTTP/{version}", f"Host: 127.0.0.1:{shared.application.port}",
        f"Authorization: Bearer {shared.users.token}", "Content-Type: application/json", *lengths,
        "Connection: keep-alive", "Transfer-Encoding: chunked", "", "2\r\n{}\r\n0\r\n",
        "GET /heartbeat HTTP/1.1", f"Host: 127.0.0.1:{shared.application.port}", "", "",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", shared.application.port), timeout=60) as opened:
        opened.sendall("\r\n".join(headers).encode())
        answer = b"".join(iter(lambda: opened.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1 ") == 1


def test_a_null_character_in_a_name_is_refused(shared: Serving, victim: str) -> None:
    files, kind = f"/api/sessions/{victim}/files", {"Content-Type": "application/octet-stream"}
    answers = [
        shared.http.get(f"{files}/a%00b"),
        shared.http.put(f"{files}/a%00b", content=b"x", headers=kind),
        shared.http.get(files, params={"path": "a\0b"}),
        shared.http.get(f"/api/sessions/{victim}%00"),
        shared.http.get(f"/api/sessions/{victim}/variables/python/a%00b"),
        shared.http.get("/download/a%00b"),
        shared.http.get("/settings/a%00b"),
        shared.http.post("/upload", files={"file": ("a.txt", b"x")}, data={"path": "a\0b"}),
        shared.http.post("/api/sessions", json={"workspace": "/tmp/a\0b"}),
    ]
    assert {answer.status_code for answer in answers} == {400}


def test_names_that_are_no_text_reach_a_client(home: Path) -> None:
    with serving() as served:
        session = served.session()
        served.run(session, "open(b'caf\\xe9', 'w').close()")
        events = served.http.get(f"/api/sessions/{session}/events", params={"after": 0})
        assert events.status_code == 200 and "caf\\udce9" in events.text
        refused = served.http.post(
            f"/api/sessions/{session}/run",
            content=b'{"language": "\\ud800", "code": "1"}',
            headers={"Content-Type": "application/json"},
        )
        assert refused.status_code < 500


def test_error_pages_reveal_no_internals(shared: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[BaseException] = []
    monkeypatch.setattr(shared.hub, "failed", seen.append)
    monkeypatch.setattr(shared.hub, "rows", lambda *_: 1 / 0)
    answer = shared.http.get("/api/sessions")
    assert answer.status_code == 500 and "ZeroDivision" not in answer.text and "routes.py" not in answer.text
    assert isinstance(seen[0], ZeroDivisionError)


def test_a_public_address_needs_tls_or_an_explicit_opt_out(home: Path) -> None:
    from interpreter import OpenInterpreter

    with pytest.raises(UsageError, match="--server_cert"):
        Application(OpenInterpreter(server_host="0.0.0.0")).bind()
    with pytest.raises(UsageError, match="both"):
        Application(OpenInterpreter(server_cert="cert.pem")).bind()
    Application(OpenInterpreter(server_host="0.0.0.0", server_port=0, server_without_tls=True)).bind().close()


@pytest.mark.needs("openssl")
def test_with_a_certificate_only_tls_is_served(home: Path, tmp_path: Path) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    kind = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", "req", *kind, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with serving(server_cert=certificate, server_key=key) as served:
        assert served.url.startswith("https://") and served.http.get("/api/me").status_code == 200
        with served.client() as browser:
            assert "Secure" in browser.get(served.application.start_link).headers["set-cookie"]
            plain = {"Origin": served.url.replace("https", "http")}
            assert browser.get("/api/me", headers=plain).status_code == 403
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{served.url.replace('https', 'http')}/api/me", trust_env=False)


def test_uploads_have_their_own_limit_and_leave_no_partial_files(home: Path) -> None:
    with serving(server_max_body=1000, server_max_upload=5000) as served:
        path, kind = f"/api/sessions/{served.session()}/files", {"Content-Type": "application/octet-stream"}

        def pieces() -> Any:
            for _ in range(10):
                yield b"x" * 1000

        assert served.http.put(f"{path}/fits.bin", content=b"x" * 5000, headers=kind).status_code == 200
        for content in (b"x" * 5001, pieces()):
            assert served.http.put(f"{path}/large.bin", content=content, headers=kind).status_code == 413
        assert sorted(each["name"] for each in served.http.get(path).json()["files"]) == ["fits.bin"]


def test_tokens_are_stored_as_digests(tmp_path: Path) -> None:
    users = Users(tmp_path)
    token = users.add("anna")
    assert token not in (tmp_path / "tokens.json").read_text()
    assert users.by_token(token).role == "owner"  # type: ignore[union-attr]
    assert Users(tmp_path).token == users.token, "it stays the same over restarts"
    assert all((tmp_path / name).stat().st_mode & 0o077 == 0 for name in ("token", "tokens.json", "cookie_key"))
    for wrong in ("local", "../x", "Anna", "a:admin", ""):
        with pytest.raises(UsageError):
            users.add(wrong)
    (tmp_path / "tokens.json").write_text("{broken")
    assert users.by_token(token) is None
