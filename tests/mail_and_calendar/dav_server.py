"""A real CalDAV and CardDAV server on loopback, over TLS: Radicale."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import httpx
from radicale import config
from radicale.app import Application

from mail_and_calendar.mail_servers import PASSWORD, Certificate

CALENDAR = (
    '<C:mkcalendar xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><set><prop>'
    "<displayname>{name}</displayname></prop></set></C:mkcalendar>"
)
TASKS = CALENDAR.replace(
    "</prop>",
    '<C:supported-calendar-component-set><C:comp name="VTODO"/></C:supported-calendar-component-set></prop>',
)
BOOK = (
    '<mkcol xmlns="DAV:" xmlns:R="urn:ietf:params:xml:ns:carddav"><set><prop><resourcetype><collection/>'
    "<R:addressbook/></resourcetype><displayname>{name}</displayname></prop></set></mkcol>"
)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that disconnect because they don't trust the certificate."""


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class DavServer:
    """A server where all users have the same password, and their data is below their name."""

    def __init__(self, folder: Path, certificate: Certificate) -> None:
        logging.getLogger("radicale").setLevel(logging.CRITICAL)
        users = folder / "users"
        users.write_text("".join(f"user{number}:{PASSWORD}\n" for number in range(200)), "utf-8")
        settings = config.load()
        auth = {"type": "htpasswd", "htpasswd_filename": str(users), "htpasswd_encryption": "plain", "delay": "0"}
        settings.update({"auth": auth, "storage": {"filesystem_folder": str(folder / "data")}}, "test", privileged=True)
        self._server = make_server("127.0.0.1", 0, Application(settings), _Server, _Handler)
        self._server.socket = certificate.context().wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.certificate = certificate
        self.url = f"https://localhost:{self._server.server_port}/"
        self._users = 0
        self._client = httpx.Client(verify=False, trust_env=False, timeout=60)

    def account(self, **more: Any) -> dict[str, Any]:
        """Make an account of a new user."""
        self._users += 1
        given = {"url": self.url, "user": f"user{self._users}", "password_variable": "MAIL_PASSWORD"}
        return {**given, "certificate": str(self.certificate.cert), **more}

    def make(self, account: dict[str, Any], place: str, body: str) -> None:
        self.send(account, "MKCOL" if "mkcol" in body else "MKCALENDAR", f"{place}/", body)

    def put(self, account: dict[str, Any], place: str, text: str) -> None:
        self.send(account, "PUT", place, text)

    def get(self, account: dict[str, Any], place: str) -> str:
        return self.send(account, "GET", place).text

    def send(self, account: dict[str, Any], method: str, place: str, body: str = "") -> httpx.Response:
        auth = httpx.BasicAuth(account["user"], PASSWORD)
        url = f"{self.url}{account['user']}/{place}"
        kind = {"Content-Type": "text/calendar" if place.endswith(".ics") else "text/vcard"}
        headers = kind if method == "PUT" else {}
        answer = self._client.request(method, url, auth=auth, content=body.encode(), headers=headers)
        answer.raise_for_status()
        return answer

    def close(self) -> None:
        self._client.close()
        self._server.shutdown()
        self._thread.join(60)
        self._server.server_close()
