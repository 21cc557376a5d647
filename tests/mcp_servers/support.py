"""MCP servers for tests: hostile ones of ours, and real ones where they are installed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.mcp.config import own_file, save_server

HOSTILE = Path(__file__).parent / "hostile_server.py"
PACKAGES = {
    "mcp-server-everything": "npm install --global @modelcontextprotocol/server-everything",
    "mcp-server-filesystem": "npm install --global @modelcontextprotocol/server-filesystem",
    "mcp-server-memory": "npm install --global @modelcontextprotocol/server-memory",
    "mcp-server-git": "pip install mcp-server-git",
    "mcp-server-time": "pip install mcp-server-time",
}


class Hostile:
    """The options of the hostile server, which it reads again at each listing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set()

    def set(self, **options: Any) -> None:
        self.path.write_text(json.dumps(options))

    @property
    def row(self) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(HOSTILE), str(self.path)], "env": marks()}


def marks() -> dict[str, str]:
    """What lets the tests find processes that are left; servers don't inherit it."""
    return {name: value for name, value in os.environ.items() if name.startswith("TEST_RUN_MARK")}


def real(name: str, program: str, *arguments: str) -> None:
    """Configure a real server; the test is skipped where it is not installed."""
    path = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    if path is None:
        pytest.skip(f"{program} is not installed: {PACKAGES[program]}")
    save_server(name, {"command": path, "args": list(arguments), "env": marks()})


def ran(interpreter: OpenInterpreter, code: str, language: str = "python") -> str:
    """The output of a block of the user's."""
    messages = interpreter.computer.run(language, code)
    return "".join(str(each["content"]) for each in messages if each["type"] == "console")


def edit_own_file(change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(own_file().read_text())
    change(content["mcpServers"])
    own_file().write_text(json.dumps(content))


def listens(port: int) -> bool:
    """Whether a server of this machine answers at a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
