"""The application that is served. `serve` is what `interpreter --serve` starts."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.routing import Router as StarletteRouter

from interpreter.console_text import PROSE, visible
from interpreter.errors import UsageError
from interpreter.frontends.server import connections, openai, original, page
from interpreter.frontends.server.gate import LOCAL, Audit, Gate, Limits, Users
from interpreter.frontends.server.routes import ROUTES, Router, ServerState, leaf_routes
from interpreter.frontends.server.sessions import SessionManager
from interpreter.host import processes

if TYPE_CHECKING:
    import uvicorn

    from interpreter.api import OpenInterpreter

ALL_ROUTES = [*ROUTES, *page.ROUTES, *original.ROUTES, *openai.ROUTES]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
KEY_VARIABLE = "INTERPRETER_API_KEY"


class Application:
    """A hub of sessions with its gate, ready to be served."""

    def __init__(self, template: OpenInterpreter, folder: Path | None = None, token: str | None = None) -> None:
        self.settings = template
        self.hub = SessionManager(template, folder)
        self.hub.failed = _print_failure
        self.users = Users(self.hub.folder, token or os.environ.get(KEY_VARIABLE) or None)
        audit = Audit(self.hub.folder / "audit.jsonl")
        self.server = ServerState(self.hub, self.users, audit, ALL_ROUTES)
        self.router = router = Router(self.server, [*ALL_ROUTES, *leaf_routes()])
        limits = Limits(template.server_rate, template.server_max_body, template.server_max_upload)
        self.secure = template.server_cert is not None
        self.gate = Gate(
            StarletteRouter(router.routes, redirect_slashes=False),
            self.users,
            audit,
            limits,
            router.known,
            self.secure,
        )
        self.port = 0
        self._uvicorn: uvicorn.Server | None = None

    def bind(self, host: str | None = None, port: int | None = None) -> socket.socket:
        """Open the port. Beyond this machine, there must be TLS, or the user must have said that there is none."""
        settings = self.settings
        host, port = host or settings.server_host, settings.server_port if port is None else port
        if (settings.server_cert is None) != (settings.server_key is None):
            raise UsageError("TLS needs both --server_cert and --server_key.")
        if not _is_loopback(host) and not self.secure and not settings.server_without_tls:
            raise UsageError(
                f"{host} can be reached from other machines. Use --server_cert and --server_key, or, behind a proxy "
                "that has TLS, --server_without_tls."
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            bound = connections.Listener(socket.create_server((host, port), family=family))
        except OSError as error:
            raise UsageError(f"Can't listen on {host}:{port}: {error.strerror}. Choose another --port.") from error
        self.answer_at(host, bound.getsockname()[1])
        self.gate.listener = bound
        return bound

    def answer_at(self, host: str, port: int) -> None:
        """Accept requests for this host and for this machine, at this port."""
        self.port = port
        own = [] if host in ("0.0.0.0", "::") else [host]
        self.gate.answer_to([*_LOOPBACK, *own], self.settings.server_names, port)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"

    @property
    def start_link(self) -> str:
        """Make a link that signs the local user in, once."""
        return f"{self.url}/start?token={self.users.link(LOCAL)}"

    def run(self, bound: socket.socket) -> None:
        """Serve until `stop` or a signal, then end all sessions."""
        import uvicorn

        settings = self.settings
        config = uvicorn.Config(
            self.gate,
            log_level="warning",
            access_log=False,  # addresses can have tokens in them
            server_header=False,
            proxy_headers=False,
            ws_max_size=settings.server_max_body,
            lifespan="off",
            timeout_graceful_shutdown=3,
            backlog=connections.ACCEPTED_AT_ONCE,
            timeout_keep_alive=connections.KEEP_ALIVE,
            ssl_certfile=settings.server_cert,
            ssl_keyfile=settings.server_key,
        )
        # uvicorn reports each refused WebSocket as an error in the terminal.
        logging.getLogger("uvicorn.error").addFilter(_is_worth_logging)
        self._uvicorn = server = uvicorn.Server(config)
        try:
            asyncio.run(server.serve(sockets=[bound]))
        finally:
            bound.close()
            self.hub.close()
            self.server.close()

    def stop(self) -> None:
        """End `run`, from any thread."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True


def serve(template: OpenInterpreter, browser: bool = False) -> int:
    """Serve sessions with these settings until the user stops it; with `browser`, open the page in one."""
    application = Application(template)
    bound = application.bind()
    link = announce(application)
    if browser:
        # Not waited for: some browsers stay in the foreground. Without one, there is the link.
        processes.start(processes.python("-c", "import sys, webbrowser; webbrowser.open(sys.argv[1])", link))
    with suppress(KeyboardInterrupt):
        application.run(bound)
    return 0


def announce(application: Application) -> str:
    """Print the server's address and how to sign in. Return the sign-in link."""
    link = application.start_link
    print(f"Listening on {application.url}. Press Ctrl-C to stop.", file=sys.stderr)
    print(f"Open this link once: {link}", file=sys.stderr)
    where = KEY_VARIABLE if KEY_VARIABLE in os.environ else application.hub.folder / "token"
    print(f"For scripts, the token is in {where}. See docs/server.md.", file=sys.stderr, flush=True)
    return link


def _is_worth_logging(record: logging.LogRecord) -> bool:
    return "without completing handshake" not in record.getMessage()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _print_failure(error: BaseException) -> None:
    print(visible("".join(traceback.format_exception(error)), PROSE), file=sys.stderr, flush=True)
