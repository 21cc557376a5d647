"""The protocol of 0.4.3's server: the WebSocket `/` with LMC chunks, and its addresses for HTTP.

Each user has one session for it. Nothing here widens what a client may do: settings go through the same list, files
stay in the workspace, and `go` approves the block that this connection was shown, and no other.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from interpreter.config.setting import setting_named
from interpreter.frontends.server.gate import Refused
from interpreter.frontends.server.questions import answer_to, clean, digest_of, dumped
from interpreter.frontends.server.routes import (
    ANY,
    SOCKETS,
    TEXT,
    EventReader,
    Route,
    ServerRequest,
    ServerState,
    object_of,
    open_file,
    run_in,
    save_upload,
    until_either,
)
from interpreter.frontends.server.sessions import CLIENT_SETTINGS, LiveSession
from interpreter.messages import as_original
from interpreter.session import Do, Event

COMPLETE = {"role": "server", "type": "status", "content": "complete"}
_ACK_TIMEOUT, _MAX_ACK_ATTEMPTS = 1.0, 20
_OWNERS = {"system_message", "messages"}  # settings that only this protocol takes
_MERGED = ("message", "code", "console")  # types whose chunks are put together


class WebSocketClient:
    """One client of the WebSocket: what it says in pieces, and which block it was shown."""

    def __init__(self, call: ServerRequest, live: LiveSession) -> None:
        self.call, self.live = call, live
        self._said: list[dict[str, Any]] = []
        self._shown: tuple[str, str] | None = None  # the question and the digest of the code
        self.acknowledges = os.environ.get("INTERPRETER_REQUIRE_ACKNOWLEDGE") == "True"
        self._acks: dict[str, asyncio.Event] = {}

    async def input(self, chunk: Any) -> None:
        """Take a frame of the client: the start of a message, a piece of it, or its end."""
        if isinstance(chunk, dict) and "ack" in chunk:
            if (waiting := self._acks.get(str(chunk["ack"]))) is not None:
                waiting.set()
            return
        if not isinstance(chunk, dict) or chunk.get("role") != "user":
            raise Refused(
                400, "chunk", 'A frame is a chunk such as {"role": "user", "type": "message", "content": "Hi"}.'
            )
        if chunk.get("start"):
            self._said = []
            if self._shown is None:  # else this may become the `go` for the block that waits
                await self._stop()
        if chunk.get("content") is not None:
            self._add(
                {"type": "message", **{key: value for key, value in chunk.items() if key not in ("start", "end")}}
            )
        if chunk.get("end") and self._said:
            said, self._said = self._said, []
            await self._end(said)

    def _add(self, chunk: dict[str, Any]) -> None:
        last = self._said[-1] if self._said else {}
        same = all(last.get(name) == chunk.get(name) for name in ("type", "format"))
        if not isinstance(chunk["content"], str):
            raise Refused(400, "chunk", "The content of a chunk is a text.")
        most = self.call.server.hub.template.server_max_body
        if len(chunk["content"]) + sum(len(each["content"]) for each in self._said) > most:
            raise Refused(413, "too_large", f"The message is larger than {most:,} characters.")
        if last and same and chunk["type"] in _MERGED:
            last["content"] += chunk["content"]
        else:
            self._said.append(chunk)

    async def _end(self, said: list[dict[str, Any]]) -> None:
        if said[-1]["type"] == "command":
            command = said[-1]["content"].strip()
            self.call.note(f"command {command[:20]}")
            if command == "go":
                shown, self._shown = self._shown, None
                if shown is None:
                    raise Refused(409, "question", "No code that was shown to you waits for approval.")
                answer_to(self.live, shown[0], {"choice": "approve", "digest": shown[1]}, self.call.user)
            elif command == "stop":
                await self._stop()
            else:
                raise Refused(400, "command", "The commands are go and stop.")
            return
        messages = [{key: each[key] for key in ("role", "type", "format", "content") if key in each} for each in said]
        if self._shown is not None:
            self._shown = None
            await self._stop()
        self.call.note("message")
        await self.call.server.working(self.live.say, messages)

    async def _stop(self) -> None:
        """Cancel the running action, and wait for its end."""
        if self.live.running:
            await self.call.server.working(self.live.cancel, True)

    def output(self, event: Event) -> list[dict[str, Any]]:
        """Yield what the client gets: the chunks of 0.4.3, and `complete` whenever it is the client's turn."""
        data, questions = event.data, self.live.interpreter.session.questions
        if event.kind == "action" and (data["kind"], data["state"]) == ("turn", "ended"):
            failed = [{"role": "server", "type": "error", "content": data["text"]}] if "text" in data else []
            return [*failed, COMPLETE]
        if event.kind in ("confirmation", "input_request") and "question" in data:
            question = questions.find(data["question"])
            if question is not None and question.kind != "block":  # this protocol can't ask it
                answer_to(self.live, question.id, {"choice": "refuse"}, self.call.user)
                return []
            self._shown = (data["question"], digest_of(data.get("content")))
            return [COMPLETE]
        chunk = as_original(event.chunk) if event.chunk is not None and data.get("role") != "user" else None
        return [dict(chunk)] if chunk is not None and "type" in chunk else []

    async def send(self, socket: WebSocket, frame: dict[str, Any]) -> None:
        """Send a frame; if the client acknowledges frames, until it has."""
        if not self.acknowledges:
            await socket.send_text(dumped(frame))
            return
        name = os.urandom(8).hex()
        received = self._acks[name] = asyncio.Event()
        try:
            for _ in range(_MAX_ACK_ATTEMPTS):
                await socket.send_text(dumped({**frame, "id": name}))
                try:
                    await asyncio.wait_for(received.wait(), _ACK_TIMEOUT)
                    return
                except TimeoutError:
                    continue
            raise Refused(408, "ack", "No acknowledgement came.")
        finally:
            del self._acks[name]


async def original_session(call: ServerRequest) -> LiveSession:
    """Return the user's session for this protocol."""
    if call.user.role != "owner":
        raise Refused(403, "role", "A viewer can't start a session.")
    return await call.named_session("")


async def chunk_socket(server: ServerState, socket: WebSocket) -> None:
    call = ServerRequest(server, socket.scope["user"], socket)
    live = await original_session(call)
    connection = WebSocketClient(call, live)
    await socket.accept()
    position = server.original.setdefault(live.key, (live.interpreter.session.log.last, None))
    reader = EventReader(call, live.key, position)

    async def send() -> None:
        while (found := await reader.batch()) is not None:
            for event in found:
                for frame in connection.output(event):
                    await connection.send(socket, frame)
                server.original[live.key] = event.position

    async def receive() -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1000))
            try:
                chunk = json.loads(message.get("text") or "null")
                if isinstance(chunk, dict) and "auth" in chunk:  # the gate has seen the token
                    await socket.send_text(json.dumps({"auth": True}))
                    continue
                call.user = socket.scope["user_now"]()
                connection.live = await server.working(server.hub.open, live.key)
                await connection.input(chunk)
            except (ValueError, RecursionError):
                await socket.send_text(dumped({"role": "server", "type": "error", "content": "A frame must be JSON."}))
            except Exception as error:
                refused = server.refusal(error)
                if refused.status == 401:
                    raise
                await socket.send_text(dumped({"role": "server", "type": "error", "content": str(refused)}))
                await socket.send_text(dumped(COMPLETE))

    await until_either(socket, send(), receive(), reader)


# -- http ----------------------------------------------------------------------------------------------------------


async def heartbeat(call: ServerRequest) -> Any:
    return {"status": "alive"}


async def change(call: ServerRequest) -> Any:
    live = await original_session(call)
    interpreter = live.interpreter
    flat = {name: value for name, value in call.body.items() if name not in ("llm", "auto_run", *_OWNERS)}
    llm = call.body.get("llm", {})
    if not isinstance(llm, dict) or not set(llm) <= {"model", "temperature", "max_tokens", "api_base", "api_key"}:
        raise Refused(
            403,
            "setting",
            "Of llm, only model, temperature, max_tokens, api_base and api_key can be set over the network.",
        )
    if "api_key" in llm and "api_base" not in llm:
        raise Refused(403, "setting", "Send api_key together with the api_base that it is for.")
    if call.body.get("auto_run") not in (None, interpreter.auto_run):
        raise Refused(
            403,
            "setting",
            "auto_run can't be set over the network. Start the server with -y, or send `go` for each block.",
        )
    messages = call.body.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(each, dict) and "content" in each for each in messages):
        raise Refused(400, "messages", "messages takes a list of messages.")

    def change_own() -> None:
        if "api_base" in llm and llm["api_base"] != interpreter.llm.api_base:
            # The key is for one address. Without its own, the new one gets a word, and no key of the environment.
            interpreter.llm.api_base, interpreter.llm.api_key = llm["api_base"], llm.get("api_key") or "none"
        for name in _OWNERS & call.body.keys():
            setattr(interpreter, name, call.body[name])

    if _OWNERS & call.body.keys() or "api_base" in llm:
        performance = interpreter.session.perform(Do("settings", change_own), live.actor(call.user))
        await call.server.working(live.do, "A change of settings", performance.result)
    of_model = {name: value for name, value in llm.items() if name not in ("api_base", "api_key")}
    if flat or of_model:
        await call.server.working(live.change, {**flat, **of_model}, call.user)
    return {"status": "success"}


async def show(call: ServerRequest) -> Any:
    name, live = call.request.path_params["name"], await original_session(call)
    if name == "messages":
        value: Any = clean(live, list(live.interpreter.messages))
    elif name in (*CLIENT_SETTINGS, "auto_run", "system_message", "safe_mode", "max_output", "verbose", "loop"):
        row = setting_named(CLIENT_SETTINGS.get(name, name))
        value = getattr(live.interpreter.llm if row.group else live.interpreter, row.leaf)
    else:
        raise Refused(404, "setting", "This setting can't be read over the network.")
    return json.dumps({name: value})  # as in 0.4.3, a text that is JSON


async def run(call: ServerRequest) -> Any:
    live = await original_session(call)
    output = await call.server.working(live.do, "A block", lambda: run_in(live, call.user, **call.body))
    return {"output": [{key: value for key, value in each.items() if key != "role"} for each in output]}


async def upload(call: ServerRequest) -> Any:
    """Save the `file` of a form at its `path`."""
    request, most = call.request, call.server.hub.template.server_max_body
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise Refused(415, "content_type", "Send a form with file and path, or use PUT /api/sessions/ID/files/PATH.")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refused(
                413,
                "too_large",
                f"Forms can have {most:,} bytes. For larger files, use PUT /api/sessions/ID/files/PATH.",
            )
    parts = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind.encode("latin-1") + b"\r\n\r\n" + body)
    fields = {str(part.get_param("name", header="content-disposition")): part for part in parts.iter_parts()}
    if "file" not in fields:
        raise Refused(400, "form", "The form has no file.")
    content: Any = fields["file"].get_payload(decode=True)
    path: Any = fields["path"].get_payload(decode=True) if "path" in fields else b""
    name = path.decode("utf-8", "replace").strip() or fields["file"].get_filename() or ""
    if not name or "\0" in name or not isinstance(content, bytes):
        raise Refused(400, "form", "The form has no path, or one with a null character in it.")

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    await save_upload(call, await original_session(call), name, pieces())
    return {"status": "success"}


async def download(call: ServerRequest) -> Any:
    live = await original_session(call)
    return await call.server.working(open_file, call, live, call.request.path_params["filename"])


SOCKETS.append(("/", "frames", chunk_socket))
ROUTES = [
    Route("GET", "/heartbeat", heartbeat, "Whether the server is alive", object_of("status", status=TEXT)),
    Route("POST", "/settings", change, "0.4.3: change settings", ANY, {"type": "object", "additionalProperties": True}),
    Route("GET", "/settings/{name}", show, "0.4.3: a setting, as JSON in a text", TEXT),
    Route("POST", "/run", run, "0.4.3: run code", ANY, object_of("language code", language=TEXT, code=TEXT)),
    Route("POST", "/upload", upload, "0.4.3: upload a file", ANY, {"media": "multipart/form-data"}, kind="upload"),
    Route("GET", "/download/{filename:path}", download, "0.4.3: download a file", media="application/octet-stream"),
]
