"""The HTTP interface: a table of routes, from which the router, the gate and the OpenAPI document are made."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, WebSocketRoute, compile_path
from starlette.routing import Route as StarletteRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from interpreter.app import exports, result_of
from interpreter.app.own_blocks import run_own_block
from interpreter.errors import (
    BusyError,
    ConversationInUseError,
    ConversationNotFoundError,
    InterpreterError,
    UndoError,
)
from interpreter.export import EXPORTERS
from interpreter.frontends.server import questions
from interpreter.frontends.server.gate import LOCAL, Audit, Refused, User, Users
from interpreter.frontends.server.questions import (
    MAX_OUTPUT_LENGTH,
    answer_to,
    clean,
    digest_of,
    dumped,
    open_questions,
)
from interpreter.frontends.server.sessions import (
    CLIENT_SETTINGS,
    LiveSession,
    SessionKey,
    SessionManager,
)
from interpreter.host.files import Folder, remove
from interpreter.leaves import leaves, load
from interpreter.messages import fold
from interpreter.runtimes.state import File, RichValue, TableQuery, TableWindow, Text
from interpreter.session import Do, Event
from interpreter.tools.toolbox import problems_of
from interpreter.version import __version__

Result = TypeVar("Result")
Schema = dict[str, Any]
MAX_BATCH = 500  # events that a reader gets at once
_HEARTBEAT = 15.0  # seconds between comments in an idle stream
_MAX_WAIT = 60.0
_CHUNK = 256 * 1024
_MAX_FILES = 2000
_MAX_WINDOW = 500  # rows or columns of a table in one answer
_BYTES = "application/octet-stream"
_MAX_NUMBER = 2**53  # that JavaScript counts to; databases refuse larger ones
_CONFIRM = "delete all my data"


# -- events --------------------------------------------------------------------------------------------------------


def event_data(event: Event) -> dict[str, Any]:
    """Convert an event to JSON. A reader asks for the next events with its `position`."""
    number, offset = event.position
    data = {**event.data}
    if event.kind == "confirmation":
        data["digest"] = digest_of(data.get("content"))
    return {
        "number": event.number,
        "position": f"{number}:{offset}",
        "kind": event.kind,
        "data": data,
        **event.ids._asdict(),
        "time": event.time,
    }


def position_of(text: str) -> tuple[int, int | None]:
    """Parse a position: `12` is after event 12, `12:40` in its text."""
    match = re.fullmatch(r"(\d{1,15})(?::(\d{1,15}))?", text)
    if match is None:
        raise Refused(400, "position", f"A position is a number such as 12, or 12:40, not {text[:40]!r}.")
    return int(match[1]), int(match[2]) if match[2] is not None else None


class EventReader:
    """Reads the events of a session at its own pace. A slow reader doesn't slow others down and needs no buffer."""

    def __init__(self, call: ServerRequest, key: SessionKey, position: tuple[int, int | None]) -> None:
        self._call, self._key, self.position = call, key, position
        self._news, self._woken, self._loop = asyncio.Event(), False, asyncio.get_running_loop()
        self._unwatch = call.server.hub.watch(key, self._wake)

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._news.set)

    async def batch(self, wait: float | None = None, most: int = MAX_BATCH) -> list[Event] | None:
        """Return new events, after waiting at most this many seconds; None if the session was deleted."""
        server = self._call.server
        while True:
            self._news.clear()
            self._woken = False
            events = await server.reading(server.hub.read, self._key, *self.position, most)
            if self._key.owner != self._call.user.name:  # check again: sharing may have ended since
                server.hub.locate(self._call.user, self._key.id)
            if events:
                self.position = events[-1].position
                return events
            if not server.hub.exists(self._key):
                return None
            try:
                await asyncio.wait_for(self._news.wait(), wait)
            except TimeoutError:
                return []

    def close(self) -> None:
        self._unwatch()


def reader_from_now(call: ServerRequest, live: LiveSession) -> EventReader:
    return EventReader(call, live.key, (live.interpreter.session.log.last, None))


# -- a request -----------------------------------------------------------------------------------------------------


class ServerState:
    """State that the handlers share."""

    def __init__(self, hub: SessionManager, users: Users, audit: Audit, routes: list[Route]) -> None:
        self.hub, self.users, self.audit, self.routes = hub, users, audit, routes
        # Each session may be doing one thing that takes long; that leaves threads for the other requests.
        self._workers = ThreadPoolExecutor(32 + hub.template.server_max_sessions, "request")
        self._readers = ThreadPoolExecutor(8, "reader")
        self.naming = asyncio.Lock()
        self.named: dict[
            tuple[str, str], SessionKey
        ] = {}  # sessions that clients of other protocols named, by user and name
        # What a chat client was asked about last: the turn, and the digest of the block.
        self.shown: dict[SessionKey, tuple[str, str]] = {}
        # The last event that clients of 0.4.3's protocol received, by session.
        self.original: dict[SessionKey, tuple[int, int | None]] = {}

    async def working(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function that may block, in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, function, *args)

    async def reading(self, function: Callable[..., Result], *args: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *args)

    def refusal(self, error: Exception) -> Refused:
        """Turn an error into what the client gets. The server prints its own failures in its terminal."""
        match error:
            case Refused():
                return error
            case BusyError():
                return Refused(409, "busy", str(error))
            case UndoError() | ConversationInUseError():
                return Refused(409, "conflict", str(error))
            case ClientDisconnect():
                return Refused(400, "broken_off", "The request broke off.")
            case ConversationNotFoundError() | FileNotFoundError() | NotADirectoryError():
                return Refused(404, "not_found", "It is not there.")
            case OSError():
                return Refused(400, "file", f"It can't be used: {error.strerror or 'an error of the system'}.")
            case InterpreterError() | UnicodeEncodeError():
                return Refused(400, type(error).__name__, str(error))
        self.hub.failed(error)
        return Refused(500, "internal", "The server failed at this request. Its terminal says more.")

    def close(self) -> None:
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)


@dataclass
class ServerRequest:
    """One request, after the gate and the check of its parameters."""

    server: ServerState
    user: User
    request: Any
    query: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)

    def key(self, write: bool = False) -> SessionKey:
        return self.server.hub.locate(self.user, self.request.path_params["id"], write)

    def live(self, write: bool = False) -> LiveSession:
        """Return the session, reviving it if it is not live, which may block."""
        return self.server.hub.open(self.key(write))

    @property
    def asked(self) -> tuple[LiveSession | None, str]:
        """Return the session, if it is live, and the question that the address names."""
        return self.server.hub.find(self.key(write=True)), self.request.path_params["question"]

    def note(self, what: str) -> None:
        """Record what a frame of a WebSocket does in the audit log; for requests, the gate does that."""
        address = self.request.client.host if self.request.client is not None else ""
        self.server.audit.write(self.user.name, "FRAME", f"{self.request.url.path} {what}", 200, address)

    async def do(self, what: str, function: Callable[[LiveSession], Result]) -> Result:
        """Do something in the session that the address names."""
        live = await self.server.working(self.live, True)
        return await self.server.working(live.do, what, lambda: function(live))

    async def named_session(self, name: str, title: str = "") -> LiveSession:
        """Find or make the session that clients of another protocol know by a name; after a restart, by its title."""
        hub, working, named = self.server.hub, self.server.working, self.server.named
        async with self.server.naming:
            key = named.get((self.user.name, name))
            if key is None and title:
                rows, _ = await working(hub.rows, self.user, title, 1000)
                known = [row["id"] for row in rows if row["title"] == title and "shared_by" not in row]
                key = hub.locate(self.user, known[0], write=True) if known else None
            if key is None or not hub.exists(key):
                live = await working(hub.create, self.user.name)
                if title:
                    live.interpreter.journal.rename(title)
                key = live.key
            named[self.user.name, name] = key
        return await working(hub.open, key)


# A coroutine function, or a plain one: that may block, so it is called in another thread.
Handler = Callable[[ServerRequest], Any]


@dataclass(frozen=True)
class Route:
    """A route of the API: its handler, and the schemas of its parameters and answer."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Schema | None = None
    body: Schema | None = None
    query: dict[str, Schema] = field(default_factory=dict)
    status: int = 200
    media: str = "application/json"
    kind: str = ""
    required: bool = True  # whether the body is

    @property
    def effect(self) -> str:
        return self.kind or ("read" if self.method == "GET" else "write")


def object_of(required: str = "", **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {"type": "object"}
PART: Schema = {"type": "string", "enum": ["conversation", "files", "variables"]}


def list_of(of: Schema) -> Schema:
    return {"type": "array", "items": of}


SETTINGS = object_of(
    model=TEXT,
    temperature={"type": "number", "minimum": 0},
    max_tokens={"type": "integer", "minimum": 1, "maximum": _MAX_NUMBER},
    custom_instructions=TEXT,
    mode={"type": "string", "enum": ["ask", "plan"]},
    sandbox={"type": "string", "enum": ["workspace", "read-only"]},
)
assert set(SETTINGS["properties"]) == set(CLIENT_SETTINGS)
SESSION: Schema = {
    "type": "object",
    "properties": {"id": TEXT, "title": TEXT, "folder": TEXT, "model": TEXT, "live": FLAG, "running": TEXT},
    "required": ["id", "title", "live"],
}
_UNDO = object_of(
    count={"type": "integer", "minimum": 1, "maximum": 1000, "default": 1},
    parts=list_of(PART),
    blocks=FLAG,
    overwrite=list_of(TEXT),
)
UNDONE = {"type": "object", "properties": {"restored": list_of(TEXT), "notes": list_of(TEXT)}, "required": ["restored"]}
_IMAGE = object_of(
    "format content", format={"type": "string", "enum": ["base64.png", "base64.jpeg"]}, content={**TEXT, "minLength": 4}
)
MESSAGE = object_of("content", content={**TEXT, "minLength": 1}, images=list_of(_IMAGE), wait=FLAG)
ANSWER = object_of(
    "choice",
    choice=TEXT,
    text=TEXT,
    digest=TEXT,
    scope={"type": "string", "enum": ["block", "session"]},
    preview=TEXT,
    rule=TEXT,
)


# -- handlers ------------------------------------------------------------------------------------------------------


def summary_of(live: LiveSession) -> dict[str, Any]:
    interpreter = live.interpreter
    used, window = interpreter.llm.context_used
    return {
        "id": live.key.id,
        "title": interpreter.journal.title,
        "folder": interpreter.workspace,
        "model": interpreter.llm.model,
        "live": True,
        "running": live.running,
        "last": interpreter.session.log.last,
        "mode": interpreter.mode or ("auto" if interpreter.auto_run else "ask"),
        "sandbox": interpreter.sandbox,
        "cost": interpreter.llm.cost,
        "context": {"used": used, "window": window},
    }


def list_sessions(call: ServerRequest) -> Any:
    query = call.query
    rows, read_all = call.server.hub.rows(call.user, query["q"], query["limit"], query.get("before"))
    return {"sessions": rows, "complete": read_all}


def create_session(call: ServerRequest) -> Any:
    body = call.body
    live = call.server.hub.create(call.user.name, body.get("workspace", ""), body.get("settings"))
    if body.get("title"):
        live.interpreter.journal.rename(body["title"])
    return summary_of(live)


def show_session(call: ServerRequest) -> Any:
    key, hub = call.key(), call.server.hub
    live = hub.find(key)
    row = summary_of(live) if live is not None else hub.row(key)
    if key.owner != call.user.name:
        return {**row, "shared_by": key.owner, "shared_with": []}
    return {**row, "shared_with": hub.shared_with(key)}


def change_session(call: ServerRequest) -> Any:
    live = call.live(write=True)
    if settings := call.body.get("settings"):
        live.change(settings, call.user)
    if title := call.body.get("title"):
        live.interpreter.journal.rename(title)
    return summary_of(live)


def delete_session(call: ServerRequest) -> None:
    call.server.hub.delete(call.key(write=True))


async def fork_session(call: ServerRequest) -> Any:
    return summary_of(await call.do("A fork", lambda live: call.server.hub.fork(live, live.actor(call.user))))


async def share_session(call: ServerRequest) -> Any:
    key, users = call.key(write=True), call.body["users"]
    unknown = [name for name in users if call.server.users.find(name) is None]
    if unknown:
        raise Refused(400, "user", f"There is no user {', '.join(unknown)}.")
    call.server.hub.share(key, users)
    return {"users": call.server.hub.shared_with(key)}


async def export_session(call: ServerRequest) -> Any:
    form = call.query["form"]

    def write(live: LiveSession) -> tuple[bytes, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"session{EXPORTERS[form].suffix}")
            made = result_of(exports.export(live.interpreter, form, str(path), by=live.actor(call.user)))
            if made is None:
                raise Refused(409, "empty", "Nothing has been said in this session yet.")
            return made.path.read_bytes(), made.path.name

    content, name = await call.do("An export", write)
    return Response(content, media_type=_BYTES, headers=_as_attachment(name))


async def read_events(call: ServerRequest) -> Any:
    reader = EventReader(call, call.key(), position_of(call.query["after"]))
    if "text/event-stream" in call.request.headers.get("accept", ""):
        return StreamingResponse(_stream(reader), media_type="text/event-stream")
    with closing(reader):
        batch = await reader.batch(min(call.query["wait"], _MAX_WAIT), call.query["limit"])
    events = [event_data(event) for event in batch or ()]
    return {"events": events, "position": events[-1]["position"] if events else call.query["after"]}


async def _stream(reader: EventReader) -> AsyncIterator[str]:
    with closing(reader):
        while (batch := await reader.batch(_HEARTBEAT)) is not None:
            for event in batch:
                data = event_data(event)
                yield f"id: {data['position']}\ndata: {dumped(data)}\n\n"
            if not batch:
                yield ": still here\n\n"


async def send_message(call: ServerRequest) -> Any:
    """Answer at once, or with `wait` when the turn is over or asks something."""
    live = await call.server.working(call.live, True)
    count = len(live.interpreter.messages)
    messages: list[Any] = [{"role": "user", "type": "message", "content": call.body["content"]}]
    messages += [{"role": "user", "type": "image", **image} for image in call.body.get("images", ())]
    for image in call.body.get("images", ()):
        try:
            base64.b64decode(image["content"], validate=True)
        except (binascii.Error, ValueError):
            raise Refused(400, "image", "The content of an image is base64.") from None
    turn, before = await call.server.working(live.say, messages)
    answer: dict[str, Any] = {"turn": turn, "position": str(before), "messages": [], "questions": []}
    if call.body.get("wait"):
        with closing(reader_from_now(call, live)) as reader:
            while live.running and not live.interpreter.session.questions.open:
                if await reader.batch(_HEARTBEAT) is None:
                    break
        answer["messages"] = clean(live, live.interpreter.messages[count:])
        answer["questions"] = open_questions(live, call.user)
    return {**answer, "running": live.running}


def list_messages(call: ServerRequest) -> Any:
    live = call.live()
    return {"messages": clean(live, list(live.interpreter.messages))}


async def run_code(call: ServerRequest) -> Any:
    def run(live: LiveSession) -> Any:
        return run_in(live, call.user, **call.body)

    return {"output": await call.do("A block", run)}


def run_in(live: LiveSession, user: User, language: str, code: str, shared: bool = False) -> Any:
    """Run the user's code and return the messages that it made."""
    events = run_own_block(live.interpreter, language, code, shared, live.actor(user))
    chunks = [event.chunk for event in events if event.chunk is not None]
    return clean(live, [each for each in fold(chunks, MAX_OUTPUT_LENGTH) if each.get("role") == "computer"])


async def list_questions(call: ServerRequest) -> Any:
    live = call.server.hub.find(call.key())
    return {"questions": open_questions(live, call.user) if live is not None else []}


async def answer_question(call: ServerRequest) -> Any:
    answer_to(*call.asked, call.body, call.user)
    return {"answered": True}


def preview_block(call: ServerRequest) -> Any:
    return questions.preview(*call.asked, call.body["digest"], call.user)


def discard_preview(call: ServerRequest) -> None:
    questions.discard(*call.asked)


def show_rule(call: ServerRequest) -> Any:
    return questions.proposed_rule(*call.asked, call.user)


async def cancel(call: ServerRequest) -> Any:
    live = call.server.hub.find(call.key(write=True))
    running = live is not None and bool(live.running)
    if live is not None:
        await call.server.working(live.cancel)
    return {"cancelled": running}


async def go_to_checkpoint(name: str, call: ServerRequest) -> Any:
    """Do `undo`, `redo` or `restore` with the fields of the body as arguments; an empty list of parts means all."""

    def act(live: LiveSession) -> Any:
        arguments = {**call.body, "parts": call.body.get("parts") or None, "by": live.actor(call.user)}
        result = getattr(live.interpreter, name)(**arguments)
        return clean(live, {"restored": list(result.restored), "notes": result.sentences})

    return await call.do(name.capitalize(), act)


async def reset(call: ServerRequest) -> Any:
    return summary_of(await call.do("A reset", call.server.hub.successor))


# -- files, variables, figures -------------------------------------------------------------------------------------


def _as_attachment(name: str) -> dict[str, str]:
    safe = re.sub(r"[^\w.\-]", "_", name, flags=re.ASCII) or "file"
    return {"content-disposition": f'attachment; filename="{safe}"'}


def list_files(call: ServerRequest) -> Any:
    place = call.query["path"].strip("/")
    with Folder(call.live().interpreter.workspace) as folder:
        rows, names = [], sorted(folder.listdir(place))
        for name in names[:_MAX_FILES]:
            with suppress(OSError):
                facts = folder.stat(f"{place}/{name}" if place else name)
                kind = {0o040000: "folder", 0o100000: "file", 0o120000: "link"}.get(facts.st_mode & 0o170000, "other")
                shown = name.encode("utf-8", "replace").decode()
                rows.append({"name": shown, "kind": kind, "size": facts.st_size, "modified": facts.st_mtime})
    return {"files": rows, "more": max(0, len(names) - _MAX_FILES)}


def read_file(call: ServerRequest) -> Any:
    return open_file(call, call.live(), call.request.path_params["path"])


def open_file(call: ServerRequest, live: LiveSession, name: str) -> Response:
    """Serve a file of the workspace, piece by piece."""
    with Folder(live.interpreter.workspace) as folder:
        file = folder.open(name)
    return sent_in_pieces(call, file, os.fstat(file.fileno()).st_size, name.rpartition("/")[2], _BYTES)


def sent_in_pieces(call: ServerRequest, file: BinaryIO, size: int, name: str, media: str) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        left = size  # not more, even if the file grows
        with file:
            while left > 0 and (piece := await call.server.working(file.read, min(_CHUNK, left))):
                left -= len(piece)
                yield piece

    headers = {**_as_attachment(name), "content-length": str(size)}
    return StreamingResponse(pieces(), media_type=media, headers=headers)


async def write_file(call: ServerRequest) -> Any:
    live, name = await call.server.working(call.live, True), call.request.path_params["path"]
    return {"path": name, "size": await save_upload(call, live, name, call.request.stream())}


async def save_upload(call: ServerRequest, live: LiveSession, name: str, pieces: AsyncIterator[bytes]) -> int:
    """Write a file of the workspace completely or not at all; return the number of its bytes."""
    work, temporary, size = call.server.working, f".upload-{os.urandom(8).hex()}", 0
    with Folder(live.interpreter.workspace) as folder:

        def put() -> None:
            if above := name.rpartition("/")[0]:
                folder.mkdir(above, parents=True, exist_ok=True)
            if folder.is_dir(name):
                raise IsADirectoryError(21, "it is a folder", name)
            folder.replace(temporary, name)

        try:
            with await work(folder.open, temporary, "xb") as file:
                async for piece in pieces:
                    size += len(piece)
                    await work(file.write, piece)
            performance = live.interpreter.session.perform(Do("upload", put), live.actor(call.user), wait=False)
            await work(performance.result)
        finally:
            folder.unlink(temporary, missing_ok=True)
    return size


def list_variables(call: ServerRequest) -> Any:
    live = call.live()
    variables = live.interpreter.computer.variables()
    return {"variables": clean(live, {name: [vars(row) for row in rows] for name, rows in variables.items()})}


def look_at(call: ServerRequest, live: LiveSession, rows: tuple[int, int], view: TableQuery | None) -> Any:
    """Read the live value that the address names: of a table, these rows and the columns that the query asks for."""
    computer, language, first = live.interpreter.computer, call.request.path_params["language"], call.query["column"]
    if computer.get_language(language) is None:
        raise Refused(404, "language", "There is no such language.")
    return computer.look(language, call.request.path_params["name"], rows, (first, first + call.query["columns"]), view)


def show_variable(call: ServerRequest) -> Any:
    live, query = call.live(), call.query
    view = TableQuery(query["sort"], query["descending"], query["filter"], query["find"])
    rows = query["row"], query["row"] + query["rows"]
    match value := look_at(call, live, rows, None if view == TableQuery() else view):
        case TableWindow():
            table = {**vars(value), "cells": [_clean_column(live, column) for column in value.cells]}
            return {"kind": "table", **json.loads(dumped(table))}
        case RichValue():
            return {"kind": "picture", "type": value.type, "data": json.loads(dumped(value.data))}
        case Text():
            return clean(live, {"kind": "text", "type": value.type, "text": value.text})
        case File():
            raise Refused(400, "variable", "This value is a file.")


def _clean_column(live: LiveSession, column: Any) -> list[str]:
    cleaned = live.interpreter.session.clean("\x1f".join(column)).split("\x1f")
    return cleaned if len(cleaned) == len(column) else [live.interpreter.session.clean(cell) for cell in column]


def _pictures(live: LiveSession) -> list[tuple[int, str, str]]:
    return [
        (number, message["format"].removeprefix("base64.").removeprefix("base64") or "png", message["content"])
        for number, message in enumerate(live.interpreter.messages)
        if message.get("type") == "image" and str(message.get("format")).startswith("base64")
    ]


def list_figures(call: ServerRequest) -> Any:
    return {"figures": [{"number": number, "format": form} for number, form, _ in _pictures(call.live())]}


def show_figure(call: ServerRequest) -> Any:
    for number, form, content in _pictures(call.live()):
        if number == call.request.path_params["number"]:
            media = {"png": "image/png", "jpeg": "image/jpeg", "jpg": "image/jpeg"}.get(
                form, "application/octet-stream"
            )
            return Response(base64.b64decode(content), media_type=media)
    raise Refused(404, "figure", "There is no such figure. GET .../figures lists them.")


# -- the user ------------------------------------------------------------------------------------------------------


async def show_me(call: ServerRequest) -> Any:
    labels = {form: exporter.label for form, exporter in EXPORTERS.items()}
    return {"name": call.user.name, "role": call.user.role, "version": __version__, "exports": labels}


def show_audit(call: ServerRequest) -> Any:
    return {"entries": call.server.audit.read(call.user.name, call.query["limit"])}


def export_data(call: ServerRequest) -> Any:
    name = call.user.name
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as made:
        for title, root in call.server.hub.folders(name).items():
            for place, _, names in os.walk(root):
                for path in (os.path.join(place, each) for each in sorted(names)):
                    if os.path.isfile(path) and not os.path.islink(path):
                        inside = os.path.relpath(path, root)
                        # Code may be running there: it must not swap in a link to a file outside.
                        with (
                            suppress(OSError),
                            Folder(root) as folder,
                            folder.open(inside) as source,
                            made.open(f"{title}/{inside}", "w", force_zip64=True) as target,
                        ):
                            shutil.copyfileobj(source, target)
        made.writestr("audit.json", json.dumps(call.server.audit.read(name, 10_000)))
    size = file.tell()
    file.seek(0)
    return sent_in_pieces(call, file, size, "my-data.zip", "application/zip")


def delete_data(call: ServerRequest) -> Any:
    hub, name = call.server.hub, call.user.name
    ids = hub.ids(name)
    for each in ids:
        hub.delete(SessionKey(name, each))
    if name != LOCAL:
        remove(hub.workspaces(name))
    return {"deleted": len(ids)}


async def show_openapi(call: ServerRequest) -> Any:
    return openapi(call.server.routes)


SESSION_PATH = "/api/sessions/{id}"
_QUESTION_PATH = f"{SESSION_PATH}/questions/{{question}}"
_WINDOW: Schema = {"type": "integer", "minimum": 0, "maximum": _MAX_WINDOW, "default": 50}
_FROM: Schema = {"type": "integer", "minimum": 0, "maximum": 2**40, "default": 0}
_WORDS: Schema = {"type": "string", "default": ""}
_EVENTS: dict[str, Schema] = {
    "after": {"type": "string", "pattern": "^[0-9]{1,15}(:[0-9]{1,15})?$", "default": "0"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "default": MAX_BATCH},
    "wait": {"type": "number", "minimum": 0, "maximum": _MAX_WAIT, "default": 0},
}
_LISTING = {
    "q": _WORDS,
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    "before": {"type": "number", "minimum": 0, "maximum": _MAX_NUMBER},
}
VIEW: dict[str, Schema] = {
    "row": _FROM,
    "rows": _WINDOW,
    "column": _FROM,
    "columns": _WINDOW,
    "sort": _WORDS,
    "descending": {"type": "boolean", "default": False},
    "filter": _WORDS,
    "find": _WORDS,
}

ROUTES: list[Route] = [
    Route("GET", "/openapi.json", show_openapi, "This document", ANY),
    Route(
        "GET",
        "/api/me",
        show_me,
        "Who you are, and what the server can export",
        object_of("name role version exports", name=TEXT, role=TEXT, version=TEXT, exports=ANY),
    ),
    Route("GET", "/api/audit", show_audit, "What was done in your name", ANY, query={"limit": _LISTING["limit"]}),
    Route("GET", "/api/data", export_data, "Everything the server has of you, as a ZIP", media="application/zip"),
    Route(
        "DELETE",
        "/api/data",
        delete_data,
        "Delete all your sessions",
        object_of("deleted", deleted=NUMBER),
        object_of("confirm", confirm={"type": "string", "enum": [_CONFIRM]}),
    ),
    Route(
        "GET",
        "/api/sessions",
        list_sessions,
        "List or search",
        object_of("sessions complete", sessions=list_of(ANY), complete=FLAG),
        query=_LISTING,
    ),
    Route(
        "POST",
        "/api/sessions",
        create_session,
        "Start a session",
        SESSION,
        object_of(title=TEXT, workspace=TEXT, settings=SETTINGS),
        status=201,
        required=False,
    ),
    Route("GET", SESSION_PATH, show_session, "One session", SESSION),
    Route(
        "PATCH",
        SESSION_PATH,
        change_session,
        "Change title or settings",
        SESSION,
        object_of(title={**TEXT, "minLength": 1}, settings=SETTINGS),
    ),
    Route("DELETE", SESSION_PATH, delete_session, "Delete a session and its record", status=204),
    Route("POST", f"{SESSION_PATH}/fork", fork_session, "Continue in a copy", SESSION, status=201),
    Route(
        "PUT",
        f"{SESSION_PATH}/share",
        share_session,
        "Let these users read it",
        ANY,
        object_of("users", users=list_of(TEXT)),
    ),
    Route(
        "GET",
        f"{SESSION_PATH}/export",
        export_session,
        "The conversation as a file",
        query={"form": {"type": "string", "enum": sorted(EXPORTERS), "default": "notebook"}},
        media=_BYTES,
        kind="write",
    ),
    Route(
        "GET",
        f"{SESSION_PATH}/events",
        read_events,
        "What happened after a position; as a stream with `Accept: text/event-stream`",
        object_of("events position", events=list_of(ANY), position=TEXT),
        query=_EVENTS,
    ),
    Route(
        "GET",
        f"{SESSION_PATH}/messages",
        list_messages,
        "The conversation",
        object_of("messages", messages=list_of(ANY)),
    ),
    Route("POST", f"{SESSION_PATH}/messages", send_message, "Send a message", ANY, MESSAGE, status=202),
    Route(
        "POST",
        f"{SESSION_PATH}/run",
        run_code,
        "Run your own code",
        object_of("output", output=list_of(ANY)),
        object_of("language code", language={**TEXT, "minLength": 1}, code=TEXT, shared=FLAG),
    ),
    Route(
        "GET",
        f"{SESSION_PATH}/questions",
        list_questions,
        "List the open questions",
        object_of("questions", questions=list_of(ANY)),
    ),
    Route("POST", _QUESTION_PATH, answer_question, "Answer a question", ANY, ANSWER),
    Route(
        "POST",
        f"{_QUESTION_PATH}/preview",
        preview_block,
        "A dry run of the block that waits",
        ANY,
        object_of("digest", digest=TEXT),
    ),
    Route("DELETE", f"{_QUESTION_PATH}/preview", discard_preview, "Discard the dry run", status=204),
    Route("GET", f"{_QUESTION_PATH}/rule", show_rule, "The rule that would always allow the block", ANY, kind="write"),
    Route("POST", f"{SESSION_PATH}/cancel", cancel, "Stop what is running", object_of("cancelled", cancelled=FLAG)),
    Route(
        "POST",
        f"{SESSION_PATH}/undo",
        partial(go_to_checkpoint, "undo"),
        "Undo turns or blocks",
        UNDONE,
        _UNDO,
        required=False,
    ),
    Route(
        "POST",
        f"{SESSION_PATH}/redo",
        partial(go_to_checkpoint, "redo"),
        "Redo what was undone",
        UNDONE,
        _UNDO,
        required=False,
    ),
    Route(
        "POST",
        f"{SESSION_PATH}/reset",
        reset,
        "Start again in the same workspace, as a new session",
        SESSION,
        status=201,
    ),
    Route("GET", f"{SESSION_PATH}/files", list_files, "The files of a folder", ANY, query={"path": _WORDS}),
    Route("GET", f"{SESSION_PATH}/files/{{path:path}}", read_file, "Download a file", media=_BYTES),
    Route(
        "PUT", f"{SESSION_PATH}/files/{{path:path}}", write_file, "Upload a file", ANY, {"media": _BYTES}, kind="upload"
    ),
    Route(
        "GET", f"{SESSION_PATH}/variables", list_variables, "The live variables", object_of("variables", variables=ANY)
    ),
    Route("GET", f"{SESSION_PATH}/variables/{{language}}/{{name}}", show_variable, "A live value", ANY, query=VIEW),
    Route("GET", f"{SESSION_PATH}/figures", list_figures, "The figures", object_of("figures", figures=list_of(ANY))),
    Route("GET", f"{SESSION_PATH}/figures/{{number:int}}", show_figure, "A figure", media="image/png"),
]


# -- the socket of a session ---------------------------------------------------------------------------------------


async def event_socket(server: ServerState, socket: WebSocket) -> None:
    """Send all events from a position on; receive messages, answers and cancellations."""
    call = ServerRequest(server, socket.scope["user"], socket)
    key, position = call.key(), position_of(socket.query_params.get("after", "0"))
    await socket.accept()
    reader = EventReader(call, key, position)

    async def send() -> None:
        while (batch := await reader.batch()) is not None:
            for event in batch:
                await socket.send_text(dumped(event_data(event)))

    await until_either(socket, send(), _frames(call, socket), reader)


async def until_either(
    socket: WebSocket, sending: Coroutine[Any, Any, None], receiving: Coroutine[Any, Any, None], reader: EventReader
) -> None:
    """Send and receive on a WebSocket until one of them ends, or its token does."""

    async def checking() -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            socket.scope["user_now"]()

    tasks = [asyncio.ensure_future(each) for each in (sending, receiving, checking())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        reader.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _frames(call: ServerRequest, socket: WebSocket) -> None:
    while True:
        text = await socket.receive_text()
        try:
            await _frame(call, socket, text)
        except Exception as error:  # noqa: BLE001 - the client gets it
            await socket.send_text(call.server.refusal(error).body.decode())


async def _frame(call: ServerRequest, socket: WebSocket, text: str) -> None:
    """Handle one frame: `{"type": "message" | "answer" | "cancel", ...}`."""
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        frame = None
    if not isinstance(frame, dict) or frame.get("type") not in ("message", "answer", "cancel"):
        raise Refused(400, "frame", "A frame is a JSON object whose type is message, answer or cancel.")
    call.user = socket.scope["user_now"]()
    if call.user.role != "owner":
        raise Refused(403, "role", "A viewer can only read.")
    call.key(write=True)
    kind, question = frame.pop("type"), frame.pop("question", "")
    call.note(kind)
    if kind == "message":
        call.body = checked(frame, MESSAGE)
        call.body.pop("wait", None)
        await send_message(call)
    elif kind == "answer":
        answer_to(call.server.hub.find(call.key(True)), str(question), checked(frame, ANSWER), call.user)
    else:
        await cancel(call)


# -- from the table --------------------------------------------------------------------------------------------------

# The WebSockets: path, `read` or `frames` (the token may come as the first frame), and handler.
SOCKETS: list[tuple[str, str, Callable[[ServerState, WebSocket], Awaitable[None]]]] = [
    (f"{SESSION_PATH}/events", "read", event_socket),
]

_NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def checked(value: Any, schema: Schema, where: str = "") -> Any:
    """Return the value if it fits the schema, otherwise raise `Refused`."""
    problems = problems_of(value, schema, where)
    if _NULL.search(json.dumps(value)):
        problems.append("a text can't have a null character in it")
    if problems:
        raise Refused(400, "parameter", f"{'; '.join(problems)}.")
    return value


def _query(request: Request, declared: dict[str, Schema]) -> dict[str, Any]:
    values = {name: schema["default"] for name, schema in declared.items() if "default" in schema}
    for name, text in request.query_params.multi_items():
        if name not in declared:
            raise Refused(400, "parameter", f"Unknown parameter: {name[:40]}")
        schema, value = declared[name], text
        if schema["type"] != "string":
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                raise Refused(400, "parameter", f"{name} must be of type {schema['type']}.") from None
        values[name] = checked(value, schema, name)
    return values


async def _body(request: Request, route: Route) -> dict[str, Any]:
    if route.body is None or "media" in route.body:
        return {}
    text = await request.body()
    if not text and not route.required:
        return {}
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(400, "json", "The body is not JSON.") from None
    return checked(body, route.body)  # type: ignore[no-any-return]


class _PassedOn(Response):
    """Leaves the request to an ASGI application."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)


async def _pass_on(app: str, call: ServerRequest) -> Response:
    return _PassedOn(await load(app)(call.server.hub, call.user))


def leaf_routes() -> list[Route]:
    """Make the routes that other leaves add, for owners only. They speak protocols of their own, not OpenAPI."""
    rows = [row for leaf in leaves() for row in leaf.addresses]
    return [
        Route(method, row.path, partial(_pass_on, row.app), row.help, kind="write")
        for row in rows
        for method in row.methods
    ]


class Router:
    """Makes the table into routes for Starlette, and tells the gate what there is."""

    def __init__(self, server: ServerState, routes: list[Route]) -> None:
        self._server = server
        self._known = [(compile_path(route.path)[0], route) for route in routes]
        self._sockets = [(compile_path(path)[0], kind) for path, kind, _ in SOCKETS]
        self.routes: list[BaseRoute] = [
            *(StarletteRoute(route.path, self._endpoint(route), methods=[route.method]) for route in routes),
            *(WebSocketRoute(path, self._socket(handler)) for path, _, handler in SOCKETS),
        ]

    def known(self, method: str, path: str) -> str | None:
        if method == "WEBSOCKET":
            return next((kind for pattern, kind in self._sockets if pattern.match(path)), None)
        routes = [route for pattern, route in self._known if pattern.match(path)]
        if routes and not any(route.method == method for route in routes):
            allowed = ", ".join(sorted({route.method for route in routes}))
            raise Refused(405, "method", f"This address takes {allowed}.", {"allow": allowed})
        return next((route.effect for route in routes if route.method == method), None)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the client gets it
            raise self._server.refusal(error) from None

    def _endpoint(self, route: Route) -> Any:
        async def endpoint(request: Request) -> Response:
            with self._refusing():
                call = ServerRequest(self._server, request.scope["user"], request)
                call.query, call.body = _query(request, route.query), await _body(request, route)
                if iscoroutinefunction(route.handler):
                    result = await route.handler(call)
                else:
                    result = await self._server.working(route.handler, call)
            if isinstance(result, Response):
                return result
            if route.status == 204:
                return Response(status_code=204)
            # In ASCII, as the name of a file may be no text; JSON has no NaN.
            text = json.dumps(json.loads(dumped(result), parse_constant=lambda name: None))
            return Response(text, route.status, media_type="application/json")

        return endpoint

    def _socket(self, handler: Callable[[ServerState, WebSocket], Awaitable[None]]) -> Any:
        async def endpoint(socket: WebSocket) -> None:
            with self._refusing():
                await handler(self._server, socket)

        return endpoint


def openapi(routes: list[Route]) -> dict[str, Any]:
    """Build the OpenAPI document from the table."""
    paths: dict[str, Any] = {}
    problem = {
        "description": "Refused",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for route in routes:
        names = re.findall(r"{(\w+)(?::(\w+))?}", route.path)
        parameters: list[Any] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "integer" if kind == "int" else "string"}}
            for name, kind in names
        ]
        parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in route.query.items()]
        answer: dict[str, Any] = {"description": route.summary}
        if route.status != 204:
            schema = route.answer or {"type": "string", "format": "binary"}
            answer["content"] = {route.media: {"schema": schema}}
            if route.path.endswith("/events"):
                answer["content"]["text/event-stream"] = {"schema": TEXT}
        operation: dict[str, Any] = {
            "operationId": re.sub(r"\W+", "_", f"{route.method.lower()}{route.path}").strip("_"),
            "summary": route.summary,
            "parameters": parameters,
            "responses": {str(route.status): answer, "4XX": problem, "503": problem},
        }
        if route.body is not None:
            media = route.body.get("media", "application/json")
            schema = {"type": "string", "format": "binary"} if "media" in route.body else route.body
            operation["requestBody"] = {"required": route.required, "content": {media: {"schema": schema}}}
        paths.setdefault(re.sub(r":\w+}", "}", route.path), {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Open Interpreter", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": object_of("error", error={"type": "object", "required": ["type", "message"]})},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
