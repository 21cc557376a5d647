"""`interpreter.server.app` takes routes and middleware of the user's own, behind the gate."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from interpreter import AsyncInterpreter
from model_server import ModelServer, text
from running_server import LIMIT
from waiting import until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("INTERPRETER_API_KEY", "the-key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Extended:
    """A server with added routes, served by uvicorn as in scripts for 0.4.3."""

    def __init__(self) -> None:
        self.interpreter: Any = AsyncInterpreter()
        self.app = self.interpreter.server.app
        self.url = ""

    def serve(self) -> Iterator[httpx.Client]:
        config = uvicorn.Config(self.app, port=0, log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        until(lambda: server.started, "the server")
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        with httpx.Client(base_url=self.url, headers={"X-API-KEY": "the-key"}, timeout=LIMIT) as http:
            yield http
        server.should_exit = True
        thread.join(LIMIT)


@pytest.fixture
def extended(home: Path) -> Extended:
    return Extended()


def test_functions_get_values_by_name(extended: Extended) -> None:
    @extended.app.get("/status")
    def status() -> Any:
        return {"messages": len(extended.interpreter.messages)}

    @extended.app.post("/notes/{name}")
    async def note(name: str, data: dict, loud: str = "no") -> Any:  # type: ignore[type-arg]
        return [name, data, loud]

    @extended.app.put("/raw")
    async def raw(request: Request) -> Any:
        return PlainTextResponse(await request.body())

    @extended.app.api_route("/either", methods=["GET", "POST"])
    def either(request: Request) -> Any:
        return request.method

    @extended.app.websocket("/echo")
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text(await websocket.receive_text())

    extended.app.add_api_route("/added", lambda: "added")

    for http in extended.serve():
        assert (http.get("/either").json(), http.post("/either").json()) == ("GET", "POST")
        assert http.get("/added").json() == "added"
        with connect(
            f"{extended.url.replace('http', 'ws', 1)}/echo", additional_headers={"X-API-KEY": "the-key"}
        ) as ws:
            ws.send("hi")
            assert ws.recv(LIMIT) == "hi"
        assert http.get("/status").json() == {"messages": 0}
        assert http.post("/notes/a?loud=yes", json={"text": "Hi"}).json() == ["a", {"text": "Hi"}, "yes"]
        assert http.post("/notes/a").status_code == 422
        assert http.put("/raw", content=b"abc", headers={"Content-Type": "application/octet-stream"}).text == "abc"
        assert http.get("/heartbeat").json() == {"status": "alive"}
        assert http.get("/nowhere").status_code == 404


def test_the_gate_is_in_front_of_every_route(extended: Extended) -> None:
    calls = []

    @extended.app.get("/status")
    def status() -> Any:
        calls.append(1)
        return {}

    for _ in extended.serve():
        assert httpx.get(f"{extended.url}/status").status_code == 401
        assert httpx.get(f"{extended.url}/heartbeat").status_code == 401
        with_key = {"X-API-KEY": "the-key"}
        assert httpx.get(f"{extended.url}/status", headers=with_key | {"Host": "evil.example"}).status_code == 421
        assert (
            httpx.get(f"{extended.url}/status", headers=with_key | {"Origin": "http://evil.example"}).status_code == 403
        )
        assert calls == []


def test_routers_mounts_and_middleware(extended: Extended, home: Path) -> None:
    async def pong(request: Request) -> PlainTextResponse:
        return PlainTextResponse("pong")

    (home / "static").mkdir()
    (home / "static" / "a.txt").write_text("static")
    extended.app.include_router(Router([Route("/ping", pong)]))
    extended.app.include_router(Router([Route("/ping", pong)]), prefix="/more")
    extended.app.mount("/static", StaticFiles(directory=home / "static"))

    @extended.app.middleware("http")
    async def mark(request: Request, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["X-Seen"] = "yes"
        return response

    for http in extended.serve():
        assert http.get("/ping").text == http.get("/more/ping").text == "pong"
        assert http.get("/static/a.txt").text == "static"
        assert http.get("/heartbeat").headers["X-Seen"] == "yes"


def test_the_servers_own_addresses_work_as_before(extended: Extended) -> None:
    with ModelServer([text("I am served.")]) as model:
        llm = extended.interpreter.llm
        llm.model, llm.api_key, llm.api_base = "gpt-4o", "key", model.base_url
        for http in extended.serve():
            refused = http.post("/settings", json={"no_such": 1})
            assert refused.status_code == 403 and refused.json()["error"]["type"] == "setting"
            address = extended.url.replace("http", "ws", 1) + "/"
            with connect(address, additional_headers={"X-API-KEY": "the-key"}, proxy=None) as socket:
                for frame in ('"start": true', '"type": "message", "content": "Hi"', '"end": true'):
                    socket.send(f'{{"role": "user", {frame}}}')
                received = ""
                while "complete" not in received:
                    received += str(socket.recv(LIMIT))
                assert "served" in received


def test_a_router_for_another_application_keeps_the_gate(home: Path) -> None:
    from starlette.applications import Starlette

    from interpreter.frontends.server.async_interpreter import create_router

    extended = Extended()
    extended.app = Starlette(routes=create_router(extended.interpreter).routes)
    for http in extended.serve():
        assert http.get("/heartbeat").json() == {"status": "alive"}
        assert httpx.get(f"{extended.url}/heartbeat").status_code == 401


def test_a_websocket_of_the_users_own(extended: Extended) -> None:
    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(await socket.receive_text())

    extended.app.router.add_websocket_route("/echo", echo)
    for _ in extended.serve():
        address = extended.url.replace("http", "ws", 1) + "/echo"
        with connect(address, additional_headers={"X-API-KEY": "the-key"}, proxy=None) as socket:
            socket.send("Hi")
            assert socket.recv(LIMIT) == "Hi"
        with pytest.raises(Exception, match="401"):
            connect(address, proxy=None)
