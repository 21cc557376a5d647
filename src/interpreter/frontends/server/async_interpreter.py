"""`AsyncInterpreter` and its `Server`, as 0.4.3 has them: one interpreter, served to those who have the token."""

from __future__ import annotations

import asyncio
import os
import threading
import traceback
from collections import deque
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from interpreter.api import OpenInterpreter
from interpreter.errors import InterpreterError, UsageError
from interpreter.leaves import load
from interpreter.messages import as_original

if TYPE_CHECKING:
    from interpreter.frontends.server.app import ServerApp
    from interpreter.frontends.server.application import Application
    from interpreter.session import Event

_SENT = ("role", "type", "format", "content")


class AsyncInterpreter(OpenInterpreter):
    """An interpreter that takes its messages in chunks, with `input`, and gives its answer with `output`.

    `server.run()` serves it over HTTP and WebSocket.
    """

    if not TYPE_CHECKING:

        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            vars(self).update(  # these are no settings
                respond_thread=None,
                stop_event=threading.Event(),
                output_queue=asyncio.Queue(),
                unsent_messages=deque(),
                acknowledged_outputs=[],
                require_acknowledge=os.environ.get("INTERPRETER_REQUIRE_ACKNOWLEDGE") == "True",
                server=Server(self),
                _said=[],
            )

    server: Server
    output_queue: asyncio.Queue[Any]
    respond_thread: threading.Thread | None
    _said: list[Any]

    async def input(self, chunk: dict[str, Any]) -> None:
        """Take a chunk of the user's message; the one that ends it starts the answer."""
        if chunk.get("start"):
            self._said.clear()
            if self.respond_thread is not None and self.respond_thread.is_alive():
                self.cancel()
                await asyncio.to_thread(self.respond_thread.join)
        if chunk.get("content") is not None:
            self.accumulate(chunk)
        if chunk.get("end") and self._said:
            said: list[Any] = [{name: each[name] for name in _SENT if name in each} for each in self._said]
            self._said.clear()
            if said[-1].get("type") == "command":
                if said[-1]["content"] == "stop":
                    self.cancel()
                elif self.pending is not None:
                    self.pending.approve()
                return
            self.agent.messages.extend(said[:-1])
            turn, answer = self.agent.turn(said[-1]), partial(self._answer, asyncio.get_running_loop())
            started = await asyncio.to_thread(self.session.start, turn, self.agent.actor, answer)
            vars(self)["respond_thread"] = started.thread

    def accumulate(self, chunk: dict[str, Any]) -> None:
        """Add a piece to the message that is coming in."""
        piece = {"role": "user", "type": "message", **{name: chunk[name] for name in _SENT if name in chunk}}
        last = self._said[-1] if self._said else {}
        if last and all(last.get(name) == piece.get(name) for name in ("type", "format")):
            last["content"] += piece["content"]
        else:
            self._said.append(piece)

    def _answer(self, loop: asyncio.AbstractEventLoop, events: Iterator[Event]) -> None:
        def put(chunk: Any) -> None:
            loop.call_soon_threadsafe(self.output_queue.put_nowait, chunk)

        complete = {"role": "server", "type": "status", "content": "complete"}
        try:
            with self.session.questions.answerable(["block"]):
                for event in events:
                    if event.kind == "confirmation":
                        put(complete)
                    elif (chunk := event.chunk) is not None and (original := as_original(chunk)) is not None:
                        put(original)
        except Exception as error:  # noqa: BLE001 - who reads the output gets it
            put({"role": "server", "type": "error", "content": str(error)})
            if not isinstance(error, InterpreterError):
                traceback.print_exc()
        put(complete)

    async def output(self) -> Any:
        """Return the next chunk of the answer."""
        return await self.output_queue.get()


class Server:
    """Serves one interpreter. The token is INTERPRETER_API_KEY, or one in a file whose path is printed."""

    DEFAULT_HOST = "127.0.0.1"
    DEFAULT_PORT = 8000

    def __init__(self, async_interpreter: OpenInterpreter, host: str | None = None, port: int | None = None) -> None:
        self._interpreter = async_interpreter
        self.host = host or os.environ.get("INTERPRETER_HOST") or self.DEFAULT_HOST
        self.port = port or int(os.environ.get("INTERPRETER_PORT") or self.DEFAULT_PORT)
        self._application: Application | None = None
        self._app: ServerApp | None = None

    @property
    def application(self) -> Application:
        if self._application is None:
            load("interpreter.frontends.server.commands:check_extra")()
            from interpreter.frontends.server.application import Application
            from interpreter.frontends.server.gate import LOCAL

            made = self._application = Application(self._interpreter)
            made.server.named[LOCAL, ""] = made.hub.adopt(LOCAL, self._interpreter).key
        return self._application

    @property
    def app(self) -> Any:
        """Return the ASGI application, behind its gate. It takes more routes, as FastAPI does."""
        if self._app is None:
            application = self.application
            from interpreter.frontends.server.app import ServerApp

            self._app = ServerApp(application)
        return self._app

    def run(self, host: str | None = None, port: int | None = None, retries: int = 5) -> None:
        """Serve until it is stopped."""
        from interpreter.frontends.server.application import announce

        bound = self.application.bind(host or self.host, self.port if port is None else port)
        announce(self.application)
        self.application.run(bound)

    __call__ = run

    @property
    def authenticate(self) -> Any:
        raise UsageError(
            "The server always checks its token. Make tokens for others with `interpreter --server_token`."
        )


def create_router(async_interpreter: AsyncInterpreter) -> Any:
    """Make a router with the server's routes, behind its gate, for another application's `include_router`."""
    app = async_interpreter.server.app
    from starlette.routing import Route, Router, WebSocketRoute

    routes: list[Route | WebSocketRoute] = []
    for route in async_interpreter.server.application.router.routes:
        if isinstance(route, Route):
            routes.append(Route(route.path, app, methods=list(route.methods or ())))
        elif isinstance(route, WebSocketRoute):
            routes.append(WebSocketRoute(route.path, app))
    return import_module("fastapi").APIRouter(routes=routes) if find_spec("fastapi") else Router(routes)
