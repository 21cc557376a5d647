"""Secrets of MCP servers, and signing in with OAuth: they are in the system's keyring, or in our file of keys."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from html import escape
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

from interpreter.llm.providers import save_key, saved_keys
from interpreter.mcp.config import McpError, Server

SERVICE = "open-interpreter"  # in the keyring
SIGN_IN_TIMEOUT = 300.0  # seconds
_PAGE = (
    "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n"
    "content-security-policy: default-src 'none'\r\n\r\n<!doctype html><title>Open Interpreter</title><p>{}"
)


def read_secret(name: str) -> str | None:
    """Read a secret from the keyring, if the package `keyring` is installed, or from our file."""
    with suppress(Exception):  # without a keyring, or while it is locked, there is the file
        if value := import_module("keyring").get_password(SERVICE, name):
            return str(value)
    return saved_keys().get(name)


def save_secret(name: str, value: str) -> str:
    """Save a secret, and say where it is; an empty one is forgotten."""
    with suppress(Exception):
        import_module("keyring").set_password(SERVICE, name, value)
        return "the keyring"
    return str(save_key(name, value)) if value or name in saved_keys() else ""


def account_name(server: str) -> str:
    return f"MCP_{server.upper()}_ACCOUNT"


class Account:
    """What OAuth left us with a server: our registration and the tokens. Another address needs a new one."""

    def __init__(self, server: Server) -> None:
        self._name = account_name(server.name)
        stored: Any = {}
        with suppress(ValueError):
            stored = json.loads(read_secret(self._name) or "{}")
        is_same = isinstance(stored, dict) and stored.get("url") == server.url
        self._record: dict[str, Any] = stored if is_same else {"url": server.url, "port": _free_port()}

    @property
    def port(self) -> int:
        """Return the port that the browser returns to. The server has registered it."""
        return int(self._record["port"])

    async def get_tokens(self) -> Any:
        from mcp.shared.auth import OAuthToken

        return OAuthToken.model_validate(self._record["tokens"]) if "tokens" in self._record else None

    async def set_tokens(self, tokens: Any) -> None:
        await self._set("tokens", tokens)

    async def get_client_info(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull

        return OAuthClientInformationFull.model_validate(self._record["client"]) if "client" in self._record else None

    async def set_client_info(self, client_info: Any) -> None:
        await self._set("client", client_info)

    async def _set(self, key: str, model: Any) -> None:
        self._record[key] = model.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(save_secret, self._name, json.dumps(self._record))


def make_auth(server: Server, visit: Callable[[str], Awaitable[bool]]) -> Any:
    """Make what signs in to a server that asks for it: OAuth with PKCE. `visit` has the user open an address."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    account = Account(server)
    returned: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split()
        address = urlsplit(line[1] if len(line) > 1 else "")
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        is_ours = address.path == "/callback" and ("code" in query or "error" in query)
        text = "You are signed in. You can close this page." if "code" in query else escape(str(query.get("error")))
        writer.write(_PAGE.format(text if is_ours else "There is nothing here.").encode())
        await writer.drain()
        writer.close()
        if is_ours and not returned.done():
            returned.set_result(query)

    async def redirect(url: str) -> None:
        nonlocal returned
        if urlsplit(url).scheme not in ("https", "http"):
            raise McpError(f"names an address to sign in that is no web page: {url[:200]}")
        returned = asyncio.get_running_loop().create_future()
        listening = await asyncio.start_server(answer, "127.0.0.1", account.port)
        asyncio.get_running_loop().call_later(SIGN_IN_TIMEOUT, listening.close)
        returned.add_done_callback(lambda _: listening.close())
        if not await visit(url):
            returned.cancel()
            raise McpError(f"needs you to sign in. `interpreter mcp test {server.name}` does that")

    async def come_back() -> Any:
        query = await asyncio.wait_for(returned, SIGN_IN_TIMEOUT)
        if "code" not in query:
            raise McpError(f"did not sign you in: {query.get('error', '')[:200]}")
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "Open Interpreter",
            "redirect_uris": [f"http://127.0.0.1:{account.port}/callback"],
            "token_endpoint_auth_method": "none",
        }
    )
    return OAuthClientProvider(server.url, metadata, account, redirect, come_back)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])
