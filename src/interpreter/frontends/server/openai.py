"""The OpenAI-compatible endpoint: a chat client talks to a session as if it were a model.

A session is named by the header `X-Session-Id`, by its id, or by the field `user`, by a name of the client's. Then the
server keeps the conversation, and only the last message counts. Without either, the request has the whole conversation,
and the session ends with it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import JSONResponse, StreamingResponse

from interpreter.frontends.server.gate import Refused
from interpreter.frontends.server.questions import answer_to, digest_of
from interpreter.frontends.server.routes import (
    ANY,
    FLAG,
    TEXT,
    Route,
    Schema,
    ServerRequest,
    reader_from_now,
)
from interpreter.frontends.server.sessions import LiveSession
from interpreter.session import Event

MODEL = "open-interpreter"
ASKS = "\n\nDo you want to run this code? (Answer yes.)"
_DATA = re.compile(r"data:image/(png|jpeg);base64,([A-Za-z0-9+/=]+)")
_REQUEST: Schema = {
    "type": "object",
    "properties": {
        "model": TEXT,
        "messages": {"type": "array", "items": {"type": "object"}},
        "stream": FLAG,
        "stream_options": {"type": "object"},
        "user": TEXT,
    },
    "required": ["messages"],
}


async def complete(call: ServerRequest) -> Any:
    """Answer the last message."""
    try:
        return await _complete(call)
    except Exception as error:  # noqa: BLE001 - the client gets it in OpenAI's form
        refused = call.server.refusal(error)
        return JSONResponse(_error(refused), refused.status)


def _error(refused: Refused) -> dict[str, Any]:
    kind = "invalid_request_error" if refused.status < 500 else "server_error"
    return {"error": {"message": str(refused), "type": kind, "param": None, "code": refused.kind}}


async def _complete(call: ServerRequest) -> Any:
    body = call.body
    said: list[Any] = [message for each in body["messages"][:-1] for message in _messages(each)]
    newest = _messages(body["messages"][-1]) if body["messages"] else []
    if not newest or newest[-1]["role"] != "user":
        raise Refused(400, "messages", "The last message must be the user's.")
    live, keeps = await _session(call)
    answer = _Answer(call, live, keeps)
    if not keeps:
        live.interpreter.messages = [message for message in said if message["role"] != "system"]
        live.interpreter.custom_instructions += "\n".join(
            str(message["content"]) for message in said if message["role"] == "system"
        )
    pieces = answer.pieces(newest)
    if body.get("stream"):
        first = await anext(pieces, None)  # an error comes before the stream begins
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return StreamingResponse(_stream(answer, first, pieces, wants_usage), media_type="text/event-stream")
    message = {"role": "assistant", "content": "".join([piece async for piece in pieces]), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**answer.head("chat.completion"), "choices": [choice], "usage": answer.usage}


def _messages(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert a message in OpenAI's form to ours."""
    role, content = given.get("role"), given.get("content")
    role = {"developer": "system"}.get(str(role), role)
    if role not in ("user", "assistant", "system"):
        raise Refused(400, "messages", "The role of a message is user, assistant or system.")
    if isinstance(content, str):
        return [{"role": role, "type": "message", "content": content}]
    made = []
    for part in content if isinstance(content, list) else [None]:
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            made.append({"role": role, "type": "message", "content": part["text"]})
            continue
        url = (part.get("image_url") or {}).get("url") if isinstance(part, dict) else None
        match = _DATA.fullmatch(url) if isinstance(url, str) else None
        if match is None:
            raise Refused(
                400,
                "messages",
                "The content of a message is a text, or parts that are text, or images as data addresses.",
            )
        made.append({"role": role, "type": "image", "format": f"base64.{match[1]}", "content": match[2]})
    return made


async def _session(call: ServerRequest) -> tuple[LiveSession, bool]:
    """Return the request's session, and whether to keep that session afterwards."""
    hub, server = call.server.hub, call.server
    if named := call.request.headers.get("x-session-id"):
        return await server.working(hub.open, hub.locate(call.user, named, write=True)), True
    if name := call.body.get("user"):
        return await call.named_session(f"openai {name}", f"OpenAI client {name}"[:100]), True
    return await server.working(hub.create, call.user.name), False


class _Answer:
    """The answer of a session to a message, as text."""

    def __init__(self, call: ServerRequest, live: LiveSession, keeps: bool) -> None:
        self.call, self.live, self._keeps = call, live, keeps
        self.usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        self._id, self._created = f"chatcmpl-{os.urandom(8).hex()}", int(time.time())
        self._over = False  # whether this turn has ended
        self._turn = ""  # the id of this turn, as soon as it is the client's to cancel
        self._said: Any = None  # the message whose answer follows it; None if it has come

    def head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": MODEL, "session": self.live.key.id}

    async def pieces(self, said: list[dict[str, Any]]) -> AsyncIterator[str]:
        """Send the message, and yield the text of the answer as it arrives: prose, and code in fences."""
        live, server = self.live, self.call.server
        reader = reader_from_now(self.call, live)
        try:
            if not await self._approved(said[-1]):
                self._said = said[-1]["content"]
                self._turn, _ = await server.working(live.say, said)
            while (found := await reader.batch()) is not None:
                for event in found:
                    if (piece := self._text(event)) is not None:
                        yield piece
                    if self._over:
                        return
        finally:
            reader.close()
            if self._turn and not self._over:  # the client has left
                live.cancel()
            if not self._keeps:
                await server.working(server.hub.delete, live.key)

    async def _approved(self, message: dict[str, Any]) -> bool:
        """Check whether a message approves the waiting block. Any other message ends the turn."""
        live = self.live
        asked = [each for each in live.interpreter.session.questions.open if each.kind == "block"]
        if not asked:
            return False
        if re.sub(r"\W", "", str(message["content"])).lower() == "yes":
            turn, shown = self.call.server.shown.get(live.key, ("", ""))  # what the last answer ended with
            answer_to(live, asked[0].id, {"choice": "approve", "digest": shown}, self.call.user)
            self._turn = turn
            return True
        answer_to(live, asked[0].id, {"choice": "refuse"}, self.call.user)
        await self.call.server.working(live.cancel, True)
        return False

    def _text(self, event: Event) -> str | None:
        data, role = event.data, event.data.get("role")
        if event.ids.action == self._turn and event.kind == "action" and data["state"] == "ended":
            self._over = True
            if "text" in data:
                raise Refused(502, "model", str(data["text"]))
        elif self._said is not None:  # what came before it is no answer to it
            last = (data.get("messages") or [data])[-1]
            if last.get("role") == "user" and last.get("content") == self._said:
                self._said = None
            return None
        match event.kind:
            case "status" if data.get("format") == "usage":
                used = data["content"]
                self.usage["prompt_tokens"] += used.get("input_tokens", 0)
                self.usage["completion_tokens"] += used.get("output_tokens", 0)
                self.usage["total_tokens"] = self.usage["prompt_tokens"] + self.usage["completion_tokens"]
            case "confirmation" | "input_request" if "question" in data:
                question = self.live.interpreter.session.questions.find(data["question"])
                if question is None:
                    return None
                if self._keeps and question.kind == "block":
                    self.call.server.shown[self.live.key] = self._turn, digest_of(data.get("content"))
                    self._over = True
                    return ASKS
                answer_to(self.live, question.id, {"choice": "refuse"}, self.call.user)
            case "message" if role == "assistant" and "content" in data:
                return str(data["content"])
            case "code" if role == "assistant":
                if data.get("start"):
                    return f"\n```{data.get('format', '')}\n"
                return "\n```\n" if data.get("end") else str(data.get("content", ""))
        return None


async def _stream(
    answer: _Answer, first: str | None, pieces: AsyncIterator[str], wants_usage: bool
) -> AsyncIterator[str]:
    head = answer.head("chat.completion.chunk")

    def line(delta: dict[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

    try:
        yield line({"role": "assistant", "content": first or ""})
        if first is not None:
            async for piece in pieces:
                yield line({"content": piece})
        yield line({}, "stop")
        if wants_usage:
            yield f"data: {json.dumps({**head, 'choices': [], 'usage': answer.usage})}\n\n"
    except Refused as refused:
        yield f"data: {json.dumps(_error(refused))}\n\n"
    finally:
        await pieces.aclose()  # type: ignore[attr-defined]
    yield "data: [DONE]\n\n"


async def models(call: ServerRequest) -> Any:
    return {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "open-interpreter"}],
    }


ROUTES = [
    Route("POST", "/v1/chat/completions", complete, "OpenAI: answer a conversation", ANY, _REQUEST),
    Route("POST", "/openai/chat/completions", complete, "0.4.3: the same", ANY, _REQUEST),
    Route("GET", "/v1/models", models, "OpenAI: the models", ANY),
]
