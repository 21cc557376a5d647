"""`interpreter.server.app`: the server's addresses and the user's own, behind the gate."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partialmethod
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Mount, WebSocketRoute

from interpreter.frontends.server.gate import Refused

if TYPE_CHECKING:
    from interpreter.frontends.server.application import Application

_READING = ("GET", "HEAD", "OPTIONS")


class ServerApp:
    """Takes routes and middleware as FastAPI does; it is FastAPI's own object where that is installed."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._app: Any = import_module("fastapi").FastAPI() if find_spec("fastapi") else PlainApp()
        self._served = application.router.known
        self._first = len(application.router.routes)
        self._app.router.routes[:0] = application.router.routes
        self._app.add_exception_handler(Refused, _refuse)
        application.gate.lead_to(self._app, self._known)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not self._application.gate.hosts and scope.get("server"):
            self._application.answer_at(*scope["server"])
        await self._application.gate(scope, receive, send)

    def _known(self, method: str, path: str) -> str | None:
        if (effect := self._served(method, path)) is not None:
            return effect
        kind = "websocket" if method == "WEBSOCKET" else "http"
        scope = {"type": kind, "method": method, "path": path, "root_path": "", "headers": []}
        if all(route.matches(scope)[0] is not Match.FULL for route in self._app.router.routes[self._first :]):
            return None
        return "read" if kind == "websocket" or method in _READING else "upload"


class PlainApp(Starlette):
    """FastAPI's decorators, for functions that take values of the path and the query, the JSON body, or `request`."""

    def api_route(
        self, path: str, methods: Sequence[str] = ("GET",)
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add_route(path, _endpoint(function), methods=list(methods))
            return function

        return add

    def add_api_route(self, path: str, endpoint: Callable[..., Any], methods: Sequence[str] = ("GET",)) -> None:
        self.api_route(path, methods)(endpoint)

    get, post = partialmethod(api_route, methods=["GET"]), partialmethod(api_route, methods=["POST"])
    put, patch = partialmethod(api_route, methods=["PUT"]), partialmethod(api_route, methods=["PATCH"])
    delete = partialmethod(api_route, methods=["DELETE"])

    def websocket(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.router.routes.append(WebSocketRoute(path, function))
            return function

        return add

    def include_router(self, router: Any, prefix: str = "") -> None:
        self.router.routes += [Mount(prefix, routes=router.routes)] if prefix else router.routes

    def middleware(self, kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add_middleware(BaseHTTPMiddleware, dispatch=function)
            return function

        return add


def _endpoint(function: Callable[..., Any]) -> Callable[[Request], Any]:
    parameters = inspect.signature(function).parameters

    async def endpoint(request: Request) -> Response:
        given: dict[str, Any] = {**request.query_params, **request.path_params, "request": request}
        values = {name: given[name] for name in parameters if name in given}
        missing = [name for name, row in parameters.items() if row.default is row.empty and name not in values]
        if missing and request.headers.get("content-type", "").startswith("application/json"):
            kind, body = parameters[missing[0]].annotation, await request.json()
            values[missing.pop(0)] = kind.model_validate(body) if hasattr(kind, "model_validate") else body
        if missing:
            raise Refused(422, "query", f"There is no value for {', '.join(missing)}.")
        if inspect.iscoroutinefunction(function):
            result = await function(**values)
        else:
            result = await run_in_threadpool(function, **values)
        return result if isinstance(result, Response) else JSONResponse(result)

    return endpoint


async def _refuse(connection: Any, refused: Any) -> Response:
    if connection.scope["type"] == "websocket":
        raise refused  # the gate closes it
    return Response(refused.body, refused.status, refused.headers, "application/json")
