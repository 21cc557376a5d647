"""Real mail servers on loopback, with a self-signed certificate: Dovecot for IMAP, aiosmtpd for SMTP."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import grp
import json
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from ports import free_ports

PROGRAM = shutil.which("dovecot", path=f"{os.environ['PATH']}:/usr/sbin")
PASSWORD = "pässword"
DOVECOT = """
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <{cert}
ssl_key = <{key}
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {login_user}
first_valid_uid = 0
auth_mechanisms = plain login xoauth2
auth_failure_delay = 0
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {folder}/oauth.conf
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home/%u
}}
mail_location = maildir:~/Maildir
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {plain_port}
  }}
  inet_listener imaps {{
    port = {port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
  # One wrong password would slow down all connections from loopback.
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
"""


OAUTH = """
introspection_mode = auth
introspection_url = http://127.0.0.1:{tokens}/
username_attribute = user
active_attribute = active
active_value = yes
"""
TOKEN = "ya29.a0-_~+/token=="


class TokenServer(BaseHTTPRequestHandler):
    """Tells Dovecot whether a token is valid, and which user it belongs to."""

    def do_GET(self) -> None:
        is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        data = json.dumps({"active": "yes" if is_known else "no", "user": "oauth-user"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


class Certificate(NamedTuple):
    cert: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context


def make_certificate(folder: Path) -> Certificate:
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(made.key), "-out", str(made.cert), "-days", "3650", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return made


class Dovecot:
    """A server where any user has a mailbox, with one password for all. As root, it runs as Dovecot's users."""

    def __init__(self, folder: Path, certificate: Certificate) -> None:
        self.folder = folder
        is_root = os.getuid() == 0
        self._owner = pwd.getpwnam("dovecot") if is_root else pwd.getpwuid(os.getuid())
        values = {"folder": folder, "cert": certificate.cert, "key": certificate.key, "password": PASSWORD}
        values |= {"user": self._owner.pw_name}
        values |= {"uid": self._owner.pw_uid, "gid": self._owner.pw_gid}
        values |= {"group": grp.getgrgid(self._owner.pw_gid).gr_name}
        values |= {"login_user": "dovenull" if is_root else self._owner.pw_name}
        self._own(folder / "home")
        self._tokens = ThreadingHTTPServer(("127.0.0.1", 0), TokenServer)
        threading.Thread(target=self._tokens.serve_forever, args=(0.05,), daemon=True).start()
        (folder / "oauth.conf").write_text(OAUTH.format(tokens=self._tokens.server_port))
        # It needs a free port, and another process may have taken one first.
        assert any(self._starts(values) for _ in range(5)), "it doesn't start on any port"

    def _starts(self, values: dict[str, Any]) -> bool:
        self.port, self.plain_port = free_ports(2)
        config = self.folder / "dovecot.conf"
        config.write_text(DOVECOT.format_map(values | {"port": self.port, "plain_port": self.plain_port}))
        self._process = subprocess.Popen([PROGRAM or "dovecot", "-F", "-c", str(config)])
        return listens(self.port, self._process)

    def deliver(self, user: str, mail: EmailMessage | bytes, seen: bool = False) -> None:
        """Put a mail into a user's inbox."""
        box = self.folder / "home" / user / "Maildir"
        for each in (box.parent, box, box / "new", box / "cur", box / "tmp"):
            self._own(each)
        count = len(list((box / "new").iterdir())) + len(list((box / "cur").iterdir()))
        name = f"{1_700_000_000 + count}.M{count}.here"
        file = box / "cur" / f"{name}:2,S" if seen else box / "new" / name
        file.write_bytes(mail if isinstance(mail, bytes) else mail.as_bytes())
        os.chown(file, self._owner.pw_uid, self._owner.pw_gid)

    def _own(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)

    def flags(self, user: str) -> list[str]:
        """Return the flags of the mails, as the server keeps them in file names."""
        return [file.name.rpartition(",")[2] for file in (self.folder / "home" / user / "Maildir" / "cur").iterdir()]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._tokens.shutdown()
        self._tokens.server_close()


class PostOffice:
    """An SMTP server that keeps its mails; `encrypted` from the first byte, otherwise after STARTTLS."""

    def __init__(self, certificate: Certificate, encrypted: bool) -> None:
        self.mails: list[tuple[list[str], bytes]] = []
        self.refused: dict[str, str] = {}  # the server's answer by recipient
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._certificate, self._encrypted = certificate, encrypted
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(30)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self) -> asyncio.Server:
        tls = self._certificate.context()
        more: dict[str, Any] = {"auth_require_tls": False} if self._encrypted else {"tls_context": tls}
        return await self._loop.create_server(
            lambda: SMTP(self, authenticator=self._check, auth_required=True, loop=self._loop, **more),
            "127.0.0.1",
            0,
            ssl=tls if self._encrypted else None,
        )

    def _check(self, server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        right = isinstance(given, LoginPassword) and given.password == PASSWORD.encode()
        return AuthResult(success=right, handled=right)

    async def auth_XOAUTH2(self, server: SMTP, args: list[str]) -> AuthResult:
        """As on Google's servers, a refusal is a challenge that the client has to answer."""
        if base64.b64decode(args[1]).decode() == f"user=me@example.org\1auth=Bearer {TOKEN}\1\1":
            return AuthResult(success=True)
        await server.challenge_auth('{"status":"400"}')
        return AuthResult(success=False, handled=False)

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        self.mails.append((list(envelope.rcpt_tos), envelope.content))
        return "250 OK"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _finish(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


@contextlib.contextmanager
def silent_server() -> Iterator[int]:
    """Accept connections and never send anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a server answers; false if it has ended."""
    end = time.monotonic() + 60
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
            return process.poll() is None
        assert time.monotonic() < end, f"no server listens on {port}"
        time.sleep(0.02)
    return False
