"""Servers at an address: streamable HTTP, and the transport of the first generation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.mcp.config import save_server
from mcp_servers.support import listens, ran
from ports import closed_port, free_ports
from waiting import until

Make = Callable[..., OpenInterpreter]
SERVER = Path(__file__).parent / "http_server.py"


@pytest.fixture(params=["http", "sse"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server over HTTP, configured as `web`."""
    (port,) = free_ports(1)
    process = subprocess.Popen([sys.executable, str(SERVER), request.param, str(port)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: listens(port), "the server")
        url = f"http://127.0.0.1:{port}/{'mcp' if request.param == 'http' else 'sse'}"
        save_server("web", {"url": url, "type": request.param, "headers": {"X-Key": "${KEY}"}})
        yield url
    finally:
        process.terminate()
        process.wait()


def test_a_server_at_an_address_works(session: Make, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "secret words")
    interpreter = session(offline=True)  # it is on this machine
    output = ran(interpreter, "print(tools.web.add(first=1, second=2) + 1)\nprint(tools.web.headers()['x-key'])")
    assert "\n4\n" in output and "secret words\n" in output and "web: 50 % half" in output
    assert "secret" not in str([event.data for event in interpreter.session.log.read() if event.data.get("call")])


def test_a_variable_that_is_not_set_is_named(session: Make, address: str) -> None:
    assert "needs the environment variable KEY, which isn't set" in ran(session(), "tools.web.add(first=1, second=2)")


def test_an_address_where_no_one_answers_is_one_plain_error(session: Make) -> None:
    with closed_port() as port:
        save_server("web", {"url": f"http://127.0.0.1:{port}/mcp"})
        output = ran(session(), "tools.web.add(first=1)")
    assert "RuntimeError: The MCP server web" in output and "ConnectError" not in output.splitlines()[-1]


def test_an_address_elsewhere_is_not_used_offline(session: Make) -> None:
    save_server("web", {"url": "https://example.com/mcp"})
    assert "isn't used while `offline` is set" in ran(session(offline=True), "tools.web.add(first=1)")


@pytest.mark.full
def test_a_server_made_with_an_old_sdk_works(session: Make, tmp_path: Path) -> None:
    """In an environment of its own, as servers of others are."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", "mcp==1.9.4", "pydantic<2.11"], check=True)
    program = tmp_path / "old.py"
    program.write_text(OLD_SERVER)
    save_server("old", {"command": str(python), "args": [str(program)]})
    interpreter = session()
    assert "6" in ran(interpreter, "print(tools.old.multiply(first=2, second=3))")
    assert "Hello, Ada" in ran(interpreter, "print(tools.old.read('greeting://Ada'))")
    assert "Sort this: b a" in ran(interpreter, "print(tools.old.prompt('sort', {'text': 'b a'}))")
    assert "old.fail failed" in ran(interpreter, "tools.old.fail()")


OLD_SERVER = """
from mcp.server.fastmcp import FastMCP
server = FastMCP("old")

@server.tool()
def multiply(first: int, second: int) -> int:
    return first * second

@server.tool()
def fail() -> str:
    raise ValueError("no")

@server.resource("greeting://{name}")
def greeting(name: str) -> str:
    return f"Hello, {name}"

@server.prompt()
def sort(text: str) -> str:
    return f"Sort this: {text}"

server.run()
"""
