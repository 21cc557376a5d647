"""Which MCP servers there are: those of the user's own file, and those of files that others write, once accepted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from interpreter.config.homes import home, make_folder, our_folder
from interpreter.errors import InterpreterError, UsageError
from interpreter.host import files

FILE, PROJECT_FILE, ANSWERS = "mcp.json", ".mcp.json", "mcp-accepted.json"
MAX_FILE_BYTES = 1_000_000
MAX_NAME_LENGTH = 24  # so that the names of its tools have room
TIMEOUT = 300.0  # seconds that a call may take
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{MAX_NAME_LENGTH - 1}}}")


class McpError(InterpreterError, RuntimeError):
    """A server can't be used, or its tool failed."""


@dataclass(frozen=True)
class Server:
    """One server: a command that speaks over its standard input and output, or an address."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    type: str = "stdio"  # or http, or sse for servers of the first generation
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    timeout: float = TIMEOUT
    offline: bool = False  # whether it needs no network, so that it also runs with `offline`
    sandbox: bool = True  # whether it runs inside the session's sandbox, if there is one
    source: str = ""  # the file that it is from

    @property
    def digest(self) -> str:
        """Return a digest of the configuration, without the values of variables."""
        described = {**asdict(self), "source": ""}
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    @property
    def address(self) -> str:
        """Return the command or the address, as it is in the file."""
        return self.url or " ".join(self.command)

    @property
    def variables(self) -> list[str]:
        """Return the environment variables that the server needs and that have no default."""
        texts = (*self.command, self.url, *self.env.values(), *self.headers.values())
        return [match[1] for text in texts for match in _VARIABLE.finditer(text) if match[2] is None]

    def expanded(self) -> Server:
        """Replace each `${VAR}` and `${VAR:-default}`; McpError for a variable that isn't set."""

        from interpreter.mcp.accounts import read_secret

        def expand(text: str) -> str:
            return _VARIABLE.sub(value, text)

        def value(match: re.Match[str]) -> str:
            given = os.environ.get(match[1]) or read_secret(match[1]) or match[2]
            if given is None:
                raise McpError(
                    f"The MCP server {self.name} needs the environment variable {match[1]}, which isn't set."
                )
            return given

        return Server(
            self.name,
            tuple(map(expand, self.command)),
            expand(self.url),
            self.type,
            {name: expand(text) for name, text in self.env.items()},
            {name: expand(text) for name, text in self.headers.items()},
            expand(self.cwd),
            self.timeout,
            self.offline,
            self.sandbox,
            self.source,
        )


def read_servers(text: bytes, source: str) -> dict[str, Server]:
    """Read a file with `mcpServers`, as other programs write it too; UsageError if it has a mistake."""
    try:
        rows = json.loads(text).get("mcpServers", {})
        return {(server := _server(name, row, source)).name: server for name, row in rows.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"{source} has a mistake: {error}") from None


def _server(name: str, row: Mapping[str, Any], source: str) -> Server:
    command, url = row.get("command"), row.get("url") or row.get("serverUrl")
    if not isinstance(command or url, str):
        raise ValueError(f"{name} needs a `command` or a `url`")
    kind = row.get("type") or row.get("transport") or ""
    return Server(
        re.sub(r"\W+", "_", name, flags=re.ASCII)[:MAX_NAME_LENGTH] if not _NAME.fullmatch(name) else name,
        (str(command), *map(str, row.get("args") or ())) if command else (),
        "" if command else str(url),
        "stdio" if command else "sse" if kind == "sse" else "http",
        {str(key): str(value) for key, value in (row.get("env") or {}).items()},
        {str(key): str(value) for key, value in (row.get("headers") or {}).items()},
        str(row.get("cwd") or ""),
        float(row.get("timeout") or TIMEOUT),
        row.get("offline") is True,
        row.get("sandbox") is not False or source != str(own_file()),
        source,
    )


# -- the user's own file -----------------------------------------------------------------------------------------------


def own_file() -> Path:
    return our_folder() / FILE


def own_servers() -> dict[str, Server]:
    try:
        return read_servers(own_file().read_bytes(), str(own_file()))
    except FileNotFoundError:
        return {}


def save_server(name: str, row: Mapping[str, Any] | None) -> None:
    """Add a server to the user's file, or with None remove it; the rest of the file stays."""
    if row is not None:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} can't be the name of a server: use up to {MAX_NAME_LENGTH} letters, digits and `_`, with a "
                f"letter first."
            )
        _server(name, row, "")
    path = own_file()
    own_servers()  # an error if the file has a mistake
    content: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    servers = content.setdefault("mcpServers", {})
    if row is None and name not in servers:
        raise UsageError(f"There is no MCP server named {name!r}. `interpreter mcp list` shows them.")
    servers.pop(name, None)
    if row is not None:
        servers[name] = dict(row)
    make_folder(path.parent)
    files.write_bytes(path, f"{json.dumps(content, indent=2)}\n".encode(), 0o600)


# -- files that others write -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Offer:
    """A file of servers that the user did not write for us. It counts only after a yes to this very content."""

    path: str
    digest: str
    servers: Mapping[str, Server]
    answer: bool | None = None  # None: not asked yet

    @property
    def text(self) -> str:
        """Return the question, with everything that would be started."""
        lines = [f"  {server.name}: {server.address}" for server in self.servers.values()]
        variables = sorted({name for server in self.servers.values() for name in server.env})
        more = [f"  with the variables {', '.join(variables)}"] if variables else []
        return "\n".join([f"{self.path} names MCP servers that aren't yours yet:", *lines, *more, "Use them?"])


def offers(workspace: str) -> list[Offer]:
    """Read the files of the folder and of Claude Desktop, if they exist; ignore a broken one."""
    listed, answers = [], _answers()
    for path in (Path(workspace, PROJECT_FILE), _claude_desktop_file()):
        with suppress(OSError, UsageError):
            data = files.read_bytes(path, MAX_FILE_BYTES + 1)
            servers = read_servers(data, str(path)) if len(data) <= MAX_FILE_BYTES else {}
            if servers:
                digest = hashlib.sha256(data).hexdigest()
                answer = answers.get(str(path), {}).get(digest)
                listed.append(Offer(str(path), digest, servers, answer))
    return listed


def remember_answer(offer: Offer, answer: bool) -> None:
    """Remember a yes or a no to this content; another content is asked about again."""
    make_folder(our_folder())
    answers = _answers() | {offer.path: {offer.digest: answer}}
    files.write_bytes(our_folder() / ANSWERS, f"{json.dumps(answers, indent=1)}\n".encode(), 0o600)


def _answers() -> dict[str, dict[str, bool]]:
    try:
        stored = json.loads((our_folder() / ANSWERS).read_bytes())
    except (OSError, ValueError):
        return {}  # an unreadable file accepts nothing
    return stored if isinstance(stored, dict) else {}


def _claude_desktop_file() -> Path:
    folders = {
        "darwin": Path(home(), "Library", "Application Support"),
        "win32": Path(os.environ.get("APPDATA", home())),
    }
    return folders.get(sys.platform, Path(home(), ".config")) / "Claude" / "claude_desktop_config.json"


def stamp_of_files(workspace: str) -> tuple[Any, ...]:
    """Return a value that changes when one of the files does."""
    stamps: list[Any] = []
    for path in (own_file(), our_folder() / ANSWERS, Path(workspace, PROJECT_FILE), _claude_desktop_file()):
        try:
            status = path.stat()
            stamps.append((status.st_mtime_ns, status.st_ino, status.st_size))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def servers_for(workspace: str) -> dict[str, Server]:
    """Return the servers that may be used in a workspace; the user's own come before those of accepted files."""
    servers: dict[str, Server] = {}
    for offer in offers(workspace):
        if offer.answer:
            servers = {**offer.servers, **servers}
    return {**servers, **own_servers()}
