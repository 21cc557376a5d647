"""One connection to an MCP server: started on first use, bounded in time and size, and started again with a delay.

The SDK runs in one thread with an event loop, for all servers; callers wait for it in their own threads. The SDK
is imported when the first connection is made.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import logging
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from interpreter.console_text import visible
from interpreter.host import processes
from interpreter.host.installation import install_hint
from interpreter.mcp import schemas
from interpreter.mcp.accounts import SIGN_IN_TIMEOUT, make_auth
from interpreter.mcp.config import McpError, Server
from interpreter.mcp.elicitation import ask_for, open_if_agreed
from interpreter.mcp.schemas import Spec, prompt_spec, resource_specs, specs_of
from interpreter.mcp.values import MAX_RESULT_LENGTH
from interpreter.runtimes.launch import Start
from interpreter.tools import ToolContext

if TYPE_CHECKING:
    from interpreter.sandbox.containment import Containment

Result = TypeVar("Result")

CONNECT_TIMEOUT = 60.0  # seconds; the first start of a server may fetch packages
MAX_DELAY = 60.0  # seconds before a server that failed is started again
MAX_TOOLS = 10_000
STDERR_LINES = 20
MAX_VISITS = 5  # that a server may want before one call
MAX_NOTIFICATIONS = 200  # per second; a server that sends more is flooding, and the rest is dropped
_ENDING_TIMEOUT = 2.0
_INHERITED = (
    "HOME LOGNAME PATH SHELL TERM USER LANG LC_ALL LC_CTYPE TZ TMPDIR SYSTEMROOT APPDATA LOCALAPPDATA PATHEXT TEMP "
    "USERPROFILE HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE"
).split()


_processes: set[Any] = set()  # of servers that run


@cache
def _loop() -> asyncio.AbstractEventLoop:
    for name in ("mcp", "client"):  # the SDK's loggers would write to the terminal
        logging.getLogger(name).addHandler(logging.NullHandler())
    atexit.register(_kill_all)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="mcp", daemon=True).start()
    return loop


def _import_sdk() -> None:
    """Import the SDK, which takes a second, in the thread that needs it, so that the loop stays free."""
    try:
        import_module("mcp.client.client")
    except ModuleNotFoundError as error:
        raise McpError(f"MCP needs extra packages: {install_hint('mcp')}") from error


def _kill_all() -> None:
    for process in list(_processes):
        processes.kill(process)


class Connection:
    """A session's connection to one MCP server. Methods block; call them from any thread but the event loop's."""

    def __init__(
        self, server: Server, workspace: str, is_offline: Callable[[], bool], containment: Containment | None = None
    ) -> None:
        self.server, self._workspace, self._is_offline = server, workspace, is_offline
        self.containment = containment  # the sandbox that its process runs in
        self.visit = open_if_agreed  # has the user open an address to sign in: (server, address, context) -> bool
        self.needs_sign_in = False  # someone has to be asked, and no one could be when it connected
        self._is_signing_in = False
        self.specs: dict[str, Spec] = {}  # as the server lists its tools now
        self.problem = ""  # why the last start failed, or the connection ended
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._client: Any = None
        self._serving: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self.stop = asyncio.Event()
        self.is_stale = False  # the server says that its tools have changed
        self._failures, self._retry_at = 0, 0.0
        self._contexts: list[ToolContext | None] = []  # of the calls that run
        self._context: ToolContext | None = None  # of the call that connects

    @property
    def state(self) -> str:
        """Describe the connection's state in a few words."""
        if self._client is not None:
            return f"connected, {len(self.specs)} tools"
        return f"failed: {self.problem}" if self.problem else "not started"

    def connect(self, context: ToolContext | None = None) -> dict[str, Spec]:
        """Connect if necessary, and return the tools."""
        if self._client is None:
            _import_sdk()
        self._context = context
        self._wait(self._connected(), context)
        return self.specs

    def call(self, spec: Spec, arguments: dict[str, Any], context: ToolContext | None) -> dict[str, Any]:
        """Call a tool and return its result as a JSON object. Raises McpError if no result arrives."""
        return self._wait(self._call(spec, arguments, context), context)

    def close(self) -> None:
        """End the connection and its process; the next use connects again."""
        if self._serving is not None:
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(self._close(), _loop()).result(2 * _ENDING_TIMEOUT + 1)

    def abandon(self) -> None:
        """End soon, from any thread and without waiting: the session is gone."""
        if self._serving is not None:
            _loop().call_soon_threadsafe(self.stop.set)

    def _wait(self, work: Coroutine[Any, Any, Result], context: ToolContext | None) -> Result:
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, _loop())
        if context is not None:
            context.on_cancel(future.cancel)
        try:
            return future.result()
        except CancelledError:
            raise McpError(f"The call of {self.server.name} was cancelled.") from None
        finally:
            future.cancel()  # if this thread was interrupted

    # -- in the loop's thread ------------------------------------------------------------------------------------------

    async def _call(self, spec: Spec, arguments: dict[str, Any], context: ToolContext | None) -> dict[str, Any]:
        client = await self._connected()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if not total else f"{100 * progress / total:.0f} %"
            await asyncio.to_thread(
                context.progress if context is not None else str,
                f"{self.server.name}: {share} {visible(message or '')[:200]}".strip(),
            )

        self._contexts.append(context)
        try:
            try:
                result = await _asked_for(client, spec, arguments, self.server.timeout, report)
            except Exception as error:
                if context is None or not await self._visited(error, context):
                    raise
                result = await _asked_for(client, spec, arguments, self.server.timeout, report)
        except Exception as error:
            raise self._failure(error, f"{self.server.name}.{spec.code_name} failed") from error
        finally:
            self._contexts.remove(context)
        self._failures = 0
        parts = [*getattr(result, "content", ()), *getattr(result, "contents", ())]
        size = sum(len(getattr(part, name, None) or "") for part in parts for name in ("text", "data", "blob"))
        if size > MAX_RESULT_LENGTH:
            raise McpError(f"{self.server.name}.{spec.code_name} returned {size:,} characters; that is too much.")
        return result if isinstance(result, dict) else _as_json(result)

    async def _visited(self, error: Exception, context: ToolContext) -> bool:
        """Ask the user for the visits that an error names; return whether they made them."""
        from mcp import types

        rows = getattr(error, "data", None) if getattr(error, "code", 0) == types.URL_ELICITATION_REQUIRED else None
        wanted = (rows or {}).get("elicitations") or []
        for row in wanted[:MAX_VISITS]:
            params = types.ElicitRequestURLParams.model_validate(row)
            if await asyncio.to_thread(ask_for, self.server.name, params, context) is None:
                return False
        return bool(wanted)

    async def _connected(self) -> Any:
        """Return the client; connect it if necessary."""
        async with self._lock:
            if self._client is None:
                await self._start()
            elif self.is_stale:
                self.is_stale = False
                self.specs = await self._list(self._client)
            return self._client

    async def _start(self) -> None:
        name = self.server.name
        if self._is_offline() and not self._works_offline():
            raise McpError(
                f"The MCP server {name} isn't used while `offline` is set. If it needs no network, put "
                f'"offline": true into its configuration.'
            )
        if (delay := self._retry_at - time.monotonic()) > 0:
            raise McpError(f"The MCP server {name} {self.problem}. It can be tried again in {delay:.0f} s.")
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.stop.clear()
        self._serving = asyncio.create_task(self._serve(ready))
        try:
            await asyncio.wait([ready], timeout=CONNECT_TIMEOUT)
            if not ready.done() and self._is_signing_in:
                await asyncio.wait([ready], timeout=SIGN_IN_TIMEOUT)
            if not ready.done():
                raise TimeoutError
            ready.result()
        except BaseException as error:
            self._serving.cancel()
            self._failures += not self.needs_sign_in
            self._retry_at = time.monotonic() + min(MAX_DELAY, 2.0**self._failures) * (not self.needs_sign_in)
            if not isinstance(error, Exception):
                raise
            self.problem = "took too long to start" if isinstance(error, TimeoutError) else _reason(error)
            raise McpError(f"The MCP server {name} {self.problem}.{self._last_line()}") from error
        self.problem = ""

    def _works_offline(self) -> bool:
        from interpreter.llm.providers import is_loopback

        return is_loopback(self.server.url) if self.server.url else self.server.offline

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        """Hold the connection until it ends or is closed: the SDK wants this in one task."""
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._make_client())
                self.specs = await self._list(client)
                self._client = client
                ready.set_result(None)
                await self.stop.wait()
        except BaseException as error:  # noqa: BLE001 - the waiting caller raises it; a cancellation ends this task only
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else McpError("was stopped"))
                ready.exception()  # no one may wait any more
        finally:
            self._client = None

    def prompt(self, name: str = "", arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Get a prompt for the user; without a name, list them."""
        self.connect()
        return self.call(Spec(schemas.PROMPT, "prompt", "", {}), {"name": name, "arguments": arguments}, None)

    async def _sign_in(self, url: str) -> bool:
        context = self._contexts[-1] if self._contexts else self._context
        self._is_signing_in, self.needs_sign_in = True, context is None
        return await asyncio.to_thread(self.visit, self.server.name, url, context)

    def _make_client(self) -> Any:
        from mcp import types
        from mcp.client.client import Client

        server = self.server.expanded()

        async def elicit(context: Any, params: Any) -> Any:
            asked = self._contexts[-1] if self._contexts else None
            content = await asyncio.to_thread(ask_for, server.name, params, asked) if asked is not None else None
            if content is None:
                return types.ElicitResult(action="decline")
            return types.ElicitResult(action="accept", content=content or None)

        async def roots(context: Any) -> Any:
            return types.ListRootsResult(roots=[types.Root(uri=Path(self._workspace).as_uri(), name="workspace")])

        async def log(params: Any) -> None:
            self.stderr.append(visible(f"{params.level}: {params.data}")[:500])

        async def notified(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                self.is_stale = True

        return Client(
            _stdio(server, self) if server.command else _http(server, self._sign_in),
            client_info=types.Implementation(name="open-interpreter", version="1"),
            elicitation_callback=elicit,
            list_roots_callback=roots,
            logging_callback=log,
            message_handler=notified,
            cache=None,
        )

    async def _list(self, client: Any) -> dict[str, Spec]:
        rows: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(rows) < MAX_TOOLS and client.server_capabilities.tools is not None:
            try:
                page = await asyncio.wait_for(client.list_tools(cursor=cursor), CONNECT_TIMEOUT)
            except ValueError as error:  # of the check of its form
                raise McpError(f"lists its tools in a form that the protocol doesn't allow: {error}") from None
            rows += map(_as_json, page.tools)
            cursor = page.next_cursor
            if not cursor:
                break
        specs, offered = specs_of(self.server, rows[:MAX_TOOLS]), client.server_capabilities
        specs |= resource_specs(specs) if offered.resources is not None else {}
        return specs | (prompt_spec(specs) if offered.prompts is not None else {})

    async def read_stderr(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(65536):
            self.keep_lines(piece)

    def keep_lines(self, piece: bytes) -> None:
        """Keep the last lines that it wrote for people."""
        lines = piece[-100_000:].decode("utf-8", "replace").splitlines()[-STDERR_LINES:]
        self.stderr.extend(visible(line)[:500] for line in lines if line.strip())

    def _failure(self, error: Exception, what: str) -> McpError:
        """Say in a sentence what went wrong with a call."""
        if self.stop.is_set():
            self.problem = "ended"
            self._failures += 1  # so that one that ends at each call is not started at each call
            self._retry_at = time.monotonic() + min(MAX_DELAY, 2.0**self._failures) * (self._failures > 1)
            return McpError(f"{what}: the server ended.{self._last_line()}")
        return McpError(f"{what}: {_reason(error)}")

    def _last_line(self) -> str:
        return f" It wrote: {self.stderr[-1]}" if self.stderr else ""

    async def _close(self) -> None:
        self.stop.set()
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=2 * _ENDING_TIMEOUT)
            self._serving.cancel()


async def _asked_for(client: Any, spec: Spec, arguments: dict[str, Any], timeout: float, report: Any) -> Any:
    """Call a tool, or read what a server has besides its tools."""
    if spec.name.startswith("@"):
        async with asyncio.timeout(timeout):
            return await _read(client, spec, arguments)
    rules: dict[str, Any] = spec.schema.get("properties") or {}
    defaults = {name: rule["default"] for name, rule in rules.items() if "default" in rule}
    return await client.call_tool(spec.name, {**defaults, **arguments}, timeout, report)


async def _read(client: Any, spec: Spec, arguments: dict[str, Any]) -> Any:
    match spec.name:
        case schemas.READ:
            uri = arguments["uri"]
            return await client.read_resource(str(uri.get("uri") if isinstance(uri, dict) else uri))
        case schemas.LIST:
            resources = await _every(client.list_resources, "resources")
            templates = await _every(client.list_resource_templates, "resource_templates")
            return {"resources": resources, "templates": templates}
        case schemas.PROMPT if not arguments.get("name"):
            return {"prompts": await _every(client.list_prompts, "prompts")}
        case _:
            return await client.get_prompt(arguments["name"], arguments.get("arguments") or {})


async def _every(page_of: Callable[..., Any], name: str) -> list[dict[str, Any]]:
    """Return all pages of a listing, within the bound of tools."""
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(rows) < MAX_TOOLS:
        try:
            page = await page_of(cursor=cursor)
        except Exception:  # noqa: BLE001 - many servers have no templates, and say so with an error
            break
        rows += map(_as_json, getattr(page, name))
        cursor = page.next_cursor
        if not cursor:
            break
    return rows[:MAX_TOOLS]


def _as_json(model: Any) -> dict[str, Any]:
    return dict(model.model_dump(mode="json", by_alias=True, exclude_none=True))


def _reason(error: BaseException) -> str:
    """Describe the innermost error in one line; task groups wrap theirs."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"can't be started: {error.filename}: {error.strerror}"
    text = " ".join(visible(str(error)).split())[:500]
    return text or type(error).__name__


# -- transports --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _http(server: Server, sign_in: Callable[[str], Awaitable[bool]]) -> AsyncIterator[Any]:
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    has_token = any(name.lower() == "authorization" for name in server.headers)
    auth = None if has_token else make_auth(server, sign_in)
    if server.type == "sse":
        async with sse_client(server.url, dict(server.headers), auth=auth) as streams:
            yield streams
        return
    async with (
        create_mcp_http_client(dict(server.headers), auth=auth) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def _start(server: Server, containment: Containment | None) -> Any:
    """Start the process of a server, with a minimal environment, and inside the sandbox if there is one."""
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), processes.PIPE)
    cwd = os.path.expanduser(server.cwd) or None
    if containment is None:
        return processes.start(server.command, env=server.env, cwd=cwd, inherited=_INHERITED, **streams)
    program = server.command[0] if os.path.isabs(server.command[0]) else processes.which(server.command[0])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), server.command[0])
    env = containment.environment(processes.environment(server.env, _INHERITED))
    start = Start([sys.executable, program, *server.command[1:]], env, cwd)
    with containment.wrap(start, Path(tempfile.mkdtemp(dir=containment.scratch))) as inside:
        return processes.start(
            inside.argv, cwd=inside.cwd, pass_fds=inside.fds, inherited=(), env=inside.env, **streams
        )


@asynccontextmanager
async def _stdio(server: Server, connection: Connection) -> AsyncIterator[Any]:
    """Start the server with a minimal environment, and pass its messages on, one JSON text a line."""
    import anyio
    import anyio.to_thread
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    loop = asyncio.get_running_loop()
    process = _start(server, connection.containment)
    _processes.add(process)
    incoming, received = anyio.create_memory_object_stream[Any](16)
    sending, outgoing = anyio.create_memory_object_stream[Any](16)
    stdout, stderr = asyncio.StreamReader(limit=2 * MAX_RESULT_LENGTH), asyncio.StreamReader()
    opened: list[Any] = [incoming, received, sending, outgoing]
    tasks: list[asyncio.Task[None]] = []

    async def read() -> None:
        second, count = 0, 0
        async with incoming:
            with suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await stdout.readline():  # ValueError for a line that is too long
                    if b'"id"' not in line[:200] and b'"method"' in line:
                        now = int(time.monotonic())
                        second, count = now, count + 1 if now == second else 0
                        connection.is_stale = connection.is_stale or b"tools/list_changed" in line
                        if count > MAX_NOTIFICATIONS:
                            # Not after each line: what the server writes meanwhile would pile up before its answers.
                            if count % 1000 == 0:
                                await asyncio.sleep(0)
                            continue
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:  # some servers print other things, too, and a sandbox joins the two streams
                        connection.keep_lines(line)
                        continue
                    await incoming.send(SessionMessage(message))
        connection.stop.set()

    async def write(stdin: asyncio.StreamWriter) -> None:
        with suppress(OSError, anyio.ClosedResourceError):
            async for message in outgoing:
                stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()

    try:
        for reader, pipe in ((stdout, process.stdout), (stderr, process.stderr)):
            protocol = asyncio.StreamReaderProtocol(reader)
            opened.append((await loop.connect_read_pipe(lambda made=protocol: made, pipe))[0])  # type: ignore[misc]
        transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
        opened.insert(0, transport)
        stdin = asyncio.StreamWriter(transport, flow, None, loop)
        tasks += [asyncio.create_task(work) for work in (read(), write(stdin), connection.read_stderr(stderr))]
        yield received, sending
    finally:
        for each in opened:
            each.close()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(processes.end, process, _ENDING_TIMEOUT)
        _processes.discard(process)
        for task in tasks:
            task.cancel()
