"""The gate in front of the server: every request and every WebSocket passes it, or nothing behind it runs.

It is one ASGI middleware and refuses by default. In order: the Host header, the Origin, the token, the route, the rate,
the role, the type and the size of the body. Tokens come in a header, or as a cookie that a browser got for the one-time
link of the start. They are kept as digests and compared in constant time. Roles are looked up for every request and
every frame, so that a token that was replaced ends at once.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from interpreter.config.homes import make_folder
from interpreter.errors import UsageError
from interpreter.frontends.server.connections import Connection, Listener
from interpreter.host import files

Scope = MutableMapping[str, Any]
Receive = Callable[[], Any]
Send = Callable[[MutableMapping[str, Any]], Any]
Role = Literal["owner", "viewer"]

LOCAL = "local"  # the user who started the server
START, LOGIN = "/start", "/login"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_COOKIE_DAYS = 30
_LINK_LIFETIME = 3600.0
_MAX_AUTH_FRAMES, _AUTH_TIMEOUT = 3, 20.0  # of the first frame of 0.4.3's WebSocket
_MAX_FAILURES = 30  # wrong tokens per minute and address
_BODY_TIMEOUT, _MIN_BODY_RATE = 60.0, 1000  # seconds, and bytes that buy another second
_MAX_NOTED = 60  # lines per minute about those who have no token
_OLD_AUDITS = 4  # files that were set aside
_CLOSE = {"connection": "close"}
_JSON, _BYTES, _FORM = "application/json", "application/octet-stream", "multipart/form-data"
_PROBLEM = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<meta name="color-scheme" content="light dark"><title>Open Interpreter</title><h1>Open Interpreter</h1><p>{}</p>'
)
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; sandbox",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
}


@dataclass(frozen=True)
class User:
    """The owner of a token."""

    name: str
    role: Role
    digest: str  # of the token


class Refused(Exception):
    """The gate or a handler refused a request: with the status, the reason and advice."""

    def __init__(self, status: int, kind: str, words: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(words)
        self.status, self.kind, self.headers = status, kind, headers or {}

    @property
    def body(self) -> bytes:
        return json.dumps({"error": {"type": self.kind, "message": str(self)}}).encode()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Users:
    """The users of the server and their tokens, of which the folder has only the digests; the local one's is a file."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        make_folder(folder)
        self._file, self._named = folder / "tokens.json", dict[str, User]()
        self._stamp: tuple[int, int] | None = None
        self.token = token or _kept(folder / "token", lambda: secrets.token_urlsafe(32))  # of the local user
        self._local = User(LOCAL, "owner", digest(self.token))
        self._key = _kept(folder / "cookie_key", lambda: secrets.token_hex(32)).encode()
        self._links: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def add(self, wanted: str) -> str:
        """Make and return a token for `NAME` or `NAME:viewer`, which replaces an earlier one."""
        name, _, role = wanted.partition(":")
        if not _NAME.fullmatch(name) or name == LOCAL or role not in ("", "owner", "viewer"):
            raise UsageError(
                "Name a user like `anna` or `anna:viewer`: lower-case letters, digits, - and _, and not `local`."
            )
        token = secrets.token_urlsafe(32)
        rows = {each.name: {"role": each.role, "sha256": each.digest} for each in self.named()}
        rows[name] = {"role": role or "owner", "sha256": digest(token)}
        _write_private(self._file, json.dumps(rows, indent=1).encode())
        return token

    def named(self) -> list[User]:
        """Return all users but the local one, as the file has them now."""
        try:
            stamp = self._file.stat()
        except OSError:
            self._stamp, self._named = None, {}
            return []
        if (stamp.st_mtime_ns, stamp.st_ino) != self._stamp:
            try:
                rows = json.loads(self._file.read_bytes())
                self._named = {name: User(name, row["role"], row["sha256"]) for name, row in rows.items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                self._named = {}  # with a damaged file, named users are refused
            self._stamp = (stamp.st_mtime_ns, stamp.st_ino)
        return list(self._named.values())

    def find(self, name: str) -> User | None:
        return next((user for user in (self._local, *self.named()) if user.name == name), None)

    def by_token(self, token: str) -> User | None:
        given, owner = digest(token), None
        for user in (self._local, *self.named()):
            if hmac.compare_digest(user.digest, given):
                owner = user
        return owner

    def link(self, user: str = LOCAL) -> str:
        """Make a token for one sign-in by link."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._links[digest(token)] = user, time.monotonic() + _LINK_LIFETIME
        return token

    def use_link(self, token: str) -> User | None:
        with self._lock:
            name, until = self._links.pop(digest(token), ("", 0.0))
        return self.find(name) if time.monotonic() < until else None

    def cookie(self, user: User) -> str:
        until = str(int(time.time()) + _COOKIE_DAYS * 86400)
        return f"{user.name}.{until}.{self._signature(user, until)}"

    def by_cookie(self, cookie: str) -> User | None:
        name, _, rest = cookie.partition(".")
        until, _, signature = rest.partition(".")
        user = self.find(name)
        if user is None or not until.isdigit() or int(until) < time.time():
            return None
        return user if hmac.compare_digest(self._signature(user, until), signature) else None

    def _signature(self, user: User, until: str) -> str:
        # It covers the digest of the token: a new token ends the cookies of the old one.
        signed = f"{user.name}.{until}.{user.digest}".encode()
        return base64.urlsafe_b64encode(hmac.digest(self._key, signed, "sha256")).decode().rstrip("=")


def _kept(path: Path, make: Callable[[], str]) -> str:
    """Read a secret from a file that only this account can read; make it on first use."""
    with suppress(OSError):
        saved = path.read_text("utf-8").strip()
        if saved:
            return saved
    _write_private(path, (made := make()).encode())
    return made


def _write_private(path: Path, data: bytes) -> None:
    folder, name = files.confined(path)
    with folder:
        folder.write_bytes(name, data, 0o600)


class Audit:
    """Records who did what and when: a JSON line for each change and each refusal, without query, body and token.

    A file that has become large is set aside; the oldest of those is deleted then.
    """

    def __init__(self, path: Path, largest: int = 5_000_000) -> None:
        self.path, self._largest = path, largest
        self._older = [path.with_name(f"{path.name}.{age}") for age in range(1, _OLD_AUDITS + 1)]
        self._lock = threading.Lock()

    def write(self, user: str, method: str, path: str, status: int, address: str) -> None:
        row = {"time": time.time(), "user": user, "method": method, "path": path[:500], "status": status}
        with suppress(OSError), self._lock:
            folder, name = files.confined(self.path)
            with folder:
                with folder.open(name, "ab", 0o600) as file:
                    file.write(json.dumps({**row, "address": address}).encode() + b"\n")
                    is_full = os.fstat(file.fileno()).st_size > self._largest
                names = [name, *(path.name for path in self._older)]
                for newer, older in reversed([*pairwise(names)] if is_full else []):
                    with suppress(FileNotFoundError):
                        folder.replace(newer, older)

    def read(self, user: str, most: int) -> list[dict[str, Any]]:
        """Return the newest `most` entries about a user, in order of time."""
        mark, entries = f'"user": {json.dumps(user)}'.encode(), list[dict[str, Any]]()
        for path in (self.path, *self._older):
            rows = []
            with suppress(OSError):
                for line in path.read_bytes().splitlines() if len(entries) < most else ():
                    with suppress(ValueError):  # the server may have ended in the middle of a line
                        rows += [json.loads(line)] if mark in line else []
            entries = [*rows, *entries][-most:]
        return entries


class Rates:
    """How often something may happen per minute, by key; the least recently seen keys are forgotten."""

    def __init__(self, per_minute: int) -> None:
        self._most = float(per_minute)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, key: str, cost: float = 1.0) -> bool:
        now = time.monotonic()
        left, then = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - then) * self._most / 60)
        allowed = left >= max(cost, 1.0)
        self._left[key] = (left - cost if allowed else left, now)
        if len(self._left) > 10_000:
            self._left.popitem(last=False)
        return allowed


@dataclass(frozen=True)
class Limits:
    rate: int
    body: int
    upload: int


class Gate:
    """The middleware. `known(method, path)` says what a route does: `read`, `write` or `upload`; None if it is none."""

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Any],
        users: Users,
        audit: Audit,
        limits: Limits,
        known: Callable[[str, str], str | None],
        secure: bool = False,
    ) -> None:
        self._app, self._users, self._audit, self._limits, self._known = app, users, audit, limits, known
        self._secure = secure
        self._rates, self._frames = Rates(limits.rate), Rates(limits.rate * 10)
        self._failures, self._strangers = Rates(_MAX_FAILURES), Rates(_MAX_NOTED)
        self._proxied: frozenset[str] = frozenset()  # names under which a proxy with TLS may be in front
        self.hosts: frozenset[str] = frozenset()  # accepted Host headers; if empty, all requests are refused
        self.cookie_name = "interpreter"
        self.listener: Listener | None = None

    def lead_to(self, app: Callable[[Scope, Receive, Send], Any], known: Callable[[str, str], str | None]) -> None:
        """Guard another application instead."""
        self._app, self._known = app, known

    def answer_to(self, names: Iterable[str], proxied: Iterable[str], port: int) -> None:
        """Accept these host names, with the port or, where it is the usual one, without.

        Names that a proxy forwards are also accepted as they are written: with another port, or with none.
        """
        usual = 443 if self._secure else 80
        self._proxied = frozenset(name.lower() for name in proxied)
        shown = [f"[{name}]" if ":" in name else name.lower() for name in (*names, *proxied)]
        self.hosts = frozenset(f"{name}:{port}" for name in shown) | {*(shown if port == usual else ())} | self._proxied
        self.cookie_name = f"interpreter_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            return
        visit = _Visit(scope, self.listener)
        try:
            await (self._http if scope["type"] == "http" else self._websocket)(visit, receive, send)
        except Refused as refused:
            self._note(visit, refused.status)
            if visit.started:  # a response ends in the middle, which the client notices
                if scope["type"] == "websocket":
                    with suppress(Exception):
                        await send({"type": "websocket.close", "code": 4000 + refused.status, "reason": refused.kind})
            elif scope["type"] == "http":
                headers = [(name.encode(), value.encode()) for name, value in refused.headers.items()]
                in_browser = "text/html" in visit.headers.get("accept", "")
                body = _PROBLEM.format(escape(str(refused))).encode() if in_browser else refused.body
                kind = "text/html; charset=utf-8" if in_browser else _JSON
                with suppress(Exception):  # a malformed body has ended the connection
                    await _respond(send, refused.status, body, headers, kind)
            else:
                await send(
                    {"type": "websocket.http.response.start", "status": refused.status, "headers": _common_headers()}
                )
                await send({"type": "websocket.http.response.body", "body": refused.body})
        finally:
            visit.end()

    # -- http ------------------------------------------------------------------------------------------------------

    async def _http(self, visit: _Visit, receive: Receive, send: Send) -> None:
        self._check_place(visit)
        method, path = visit.method, visit.path
        if path == START and method in ("GET", "HEAD"):
            token = parse_qs(visit.scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
            await self._sign_in(visit, send, self._users.use_link(token) if method == "GET" else None, 303)
            return
        if path == LOGIN and method == "POST":
            body = await self._whole(visit, receive)
            token = body.get("token") if isinstance(body, dict) else None
            await self._sign_in(visit, send, self._users.by_token(token) if isinstance(token, str) else None, 204)
            return
        user = visit.begin(self._user(visit))
        kind = self._known(method, path)
        if kind is None:
            raise Refused(404, "not_found", "There is nothing here. GET /openapi.json lists what there is.")
        self._admit(user, kind)
        self._check_body(visit, upload=kind == "upload")
        most = self._limits.upload if kind == "upload" else self._limits.body
        if (visit.length or 0) > most:
            raise Refused(413, "too_large", f"The request body is larger than {most:,} bytes.")
        visit.scope["user"] = user
        seconds: float | None = _BODY_TIMEOUT  # to wait for more of the body; None after it

        async def counted() -> Any:
            nonlocal seconds
            began = time.monotonic()
            try:
                async with asyncio.timeout(seconds):
                    message = await receive()
            except TimeoutError:
                raise Refused(408, "slow", "The request body came too slowly.", _CLOSE) from None
            size = len(message.get("body", b""))
            visit.read += size
            if visit.read > most:
                raise Refused(413, "too_large", f"The request body is larger than {most:,} bytes.")
            if seconds is not None:
                seconds += size / _MIN_BODY_RATE + began - time.monotonic()
            if not message.get("more_body"):
                seconds = None
            return message

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                visit.started, visit.status = True, message["status"]
                present = {name.lower() for name, _ in message.get("headers", ())}
                extra = [(name, value) for name, value in _HEADERS.items() if name not in present]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            elif message.get("more_body"):
                self._present(user)
            await send(message)

        try:
            await self._app(visit.scope, counted, guarded)
        except Refused:
            raise
        except Exception as error:  # the error page must not reveal internals
            if visit.started:
                raise
            raise Refused(500, "internal", "The server failed at this request. Its terminal says more.") from error
        if kind != "read":
            self._note(visit, visit.status)

    async def _sign_in(self, visit: _Visit, send: Send, user: User | None, status: int) -> None:
        if user is None:
            self._count_failure(visit)
            raise Refused(
                403,
                "token",
                "This link was used before, or is too old. Restart the server for a new one, or send your token.",
            )
        visit.begin(user)
        has_tls = self._secure or visit.headers.get("x-forwarded-proto") == "https"  # a lie harms only its sender
        cookie = (
            f"{self.cookie_name}={self._users.cookie(user)}; HttpOnly; SameSite=Strict; Path=/; "
            f"Max-Age={_COOKIE_DAYS * 86400}{'; Secure' if has_tls else ''}"
        )
        headers = [(b"set-cookie", cookie.encode()), *([(b"location", b"/")] if status == 303 else [])]
        self._note(visit, status)
        await _respond(send, status, b"", headers=headers)

    async def _whole(self, visit: _Visit, receive: Receive) -> Any:
        self._check_body(visit, upload=False)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > 10_000:
                raise Refused(413, "too_large", "The body is too large.")
            if not message.get("more_body"):
                break
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Refused(400, "json", "The body is not JSON.") from None

    # -- websocket ---------------------------------------------------------------------------------------------------

    async def _websocket(self, visit: _Visit, receive: Receive, send: Send) -> None:
        self._check_place(visit)
        kind = self._known("WEBSOCKET", visit.path)
        if kind == "frames" and visit.token is None and visit.cookie(self.cookie_name) is None:
            await self._authenticated_by_frame(visit, receive, send)
        else:
            visit.begin(self._user(visit))
        if kind is None:
            raise Refused(404, "not_found", "There is no WebSocket here.")
        assert visit.user is not None
        self._admit(visit.user, "read")
        name, present = visit.user.name, partial(self._present, visit.user)
        self._note(visit, 101)
        connecting = [{"type": "websocket.connect"}] if visit.started else []  # which the gate has received already

        async def checked() -> Any:
            message = connecting.pop() if connecting else await receive()
            if message["type"] == "websocket.receive":
                present()
                if len(message.get("text") or message.get("bytes") or "") > self._limits.body:
                    raise Refused(413, "too_large", "This frame is too large.")
                if not self._frames.allows(name):
                    raise Refused(429, "rate", "Too many frames. Wait a moment.")
            return message

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "websocket.send":
                present()
            elif message["type"] == "websocket.accept":
                if visit.started:
                    return
                visit.started = True
            await send(message)

        visit.scope["user"], visit.scope["user_now"] = visit.user, present
        await self._app(visit.scope, checked, guarded)

    async def _authenticated_by_frame(self, visit: _Visit, receive: Receive, send: Send) -> None:
        """Wait for the key in the first frame of a 0.4.3 client. Only then pass the socket on."""
        message = await receive()
        await send({"type": "websocket.accept"})
        visit.started = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_AUTH_TIMEOUT):
                for _ in range(_MAX_AUTH_FRAMES):
                    message = await receive()
                    if message["type"] != "websocket.receive":
                        break
                    try:
                        key = json.loads(message.get("text") or "null")["auth"]
                    except (ValueError, KeyError, TypeError, RecursionError):
                        key = None
                    user = self._users.by_token(key) if isinstance(key, str) else None
                    await send({"type": "websocket.send", "text": json.dumps({"auth": user is not None})})
                    if user is not None:
                        visit.begin(user)
                        return
                    self._count_failure(visit)
        raise Refused(401, "token", "Send your token first.")

    def _present(self, user: User) -> User:
        """Look the user up again: a token that was replaced or revoked ends what is open."""
        now = self._users.find(user.name)
        if now is None or now.digest != user.digest:
            raise Refused(401, "token", "This token is no longer valid.")
        return now

    # -- checks --------------------------------------------------------------------------------------------------------

    def _check_place(self, visit: _Visit) -> None:
        """Check that the request is unambiguous and meant for this server, and that no other web page made it."""
        if "transfer-encoding" in visit.headers and (
            "content-length" in visit.headers or visit.scope["http_version"] == "1.0"
        ):
            advice = "Give the length of the body once: with Content-Length or, in HTTP/1.1, with Transfer-Encoding."
            raise Refused(400, "length", advice, _CLOSE)
        if "\0" in visit.path:
            raise Refused(400, "path", "An address can't have a null character in it.")
        hosts, origins = (visit.headers.getlist(name) for name in ("host", "origin"))
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise Refused(
                421, "host", "This server does not answer to that name. Add it with --server_names if it is yours."
            )
        host = hosts[0].lower()
        schemes = ("https",) if self._secure else ("http", "https") if host in self._proxied else ("http",)
        is_foreign = bool(origins) and origins not in [[f"{each}://{host}"] for each in schemes]
        if is_foreign or visit.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refused(403, "origin", "Requests from other web pages are refused.")

    def _user(self, visit: _Visit) -> User:
        token, user = visit.token, None
        if token is None and (cookie := visit.cookie(self.cookie_name)) is not None:
            user, visit.by_cookie = self._users.by_cookie(cookie), True
            if user is not None and "origin" not in visit.headers and visit.method not in ("GET", "HEAD"):
                raise Refused(403, "origin", "With a cookie, a request needs an Origin header.")
        if token is not None:
            user = self._users.by_token(token)
        if user is None:
            self._count_failure(visit)
            raise Refused(
                401,
                "token",
                "Send your token in the header `Authorization: Bearer TOKEN`, or open the link of the start.",
            )
        return user

    def _count_failure(self, visit: _Visit) -> None:
        # Behind a proxy, all clients share one address: guessing must not lock out clients with a valid token.
        if not self._failures.allows(visit.address):
            raise Refused(429, "rate", "Too many wrong tokens. Wait a minute.")

    def _admit(self, user: User, kind: str) -> None:
        if not self._rates.allows(user.name):
            raise Refused(429, "rate", f"More than {self._limits.rate} requests in a minute. Wait a moment.")
        if kind != "read" and user.role != "owner":
            raise Refused(403, "role", "A viewer can only read.")

    def _check_body(self, visit: _Visit, upload: bool) -> None:
        """Accept only JSON, or files for an upload: any site's page can send plain text and forms without asking."""
        content_type = visit.headers.get("content-type", "")
        if not visit.length and not visit.headers.get("transfer-encoding") and not content_type:
            return
        kind = content_type.partition(";")[0].strip().lower()
        allowed = [_JSON, *([_BYTES] if upload else []), *([_FORM] if upload and not visit.by_cookie else [])]
        if kind not in allowed:
            raise Refused(415, "content_type", f"The body must be {' or '.join(allowed)}.")

    def _note(self, visit: _Visit, status: int) -> None:
        name = visit.user.name if visit.user is not None else ""
        if status == 429 or (not name and not self._strangers.allows("")):
            return  # otherwise clients could fill the disk
        self._audit.write(name, visit.method, visit.path, status, visit.address)


class _Visit:
    """One request or one WebSocket, as the gate sees it."""

    def __init__(self, scope: Scope, listener: Listener | None) -> None:
        self.scope, self._listener = scope, listener
        self.method = scope.get("method", "WEBSOCKET")
        self.path: str = scope["path"]
        self._peer: tuple[str, int] = scope.get("client") or ("", 0)
        self.address = self._peer[0]
        self.headers = Headers(raw=[(name.lower(), value) for name, value in scope.get("headers", ())])
        self.user: User | None = None
        self._connection: Connection | None = None  # once a right token has come over it
        self.by_cookie = self.started = False
        self.status, self.read = 0, 0

    def begin(self, user: User) -> User:
        """Record the user of this request, which lifts the deadline of the connection until `end`."""
        self.user = user
        if self._listener is not None and self._connection is None:
            self._connection = self._listener.begin(self._peer)
        return user

    def end(self) -> None:
        if self._listener is not None and self._connection is not None:
            self._listener.end(self._connection)

    @property
    def length(self) -> int | None:
        text = self.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    @property
    def token(self) -> str | None:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return token.strip()
        return self.headers.get("x-api-key") or None

    def cookie(self, name: str) -> str | None:
        # Parse it as browsers send it: other servers on this machine set cookies, too.
        return cookie_parser(self.headers.get("cookie", "")).get(name)


def _common_headers(kind: str = _JSON) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", kind.encode()), *_HEADERS.items()]


async def _respond(
    send: Send,
    status: int,
    body: bytes,
    headers: Iterable[tuple[bytes, bytes]] = (),
    kind: str = _JSON,
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*_common_headers(kind), *headers]})
    await send({"type": "http.response.body", "body": body})
