"""A session with MCP servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.mcp.config import save_server
from mcp_servers.support import Hostile

__all__ = ["chatting"]


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    """The hostile server, configured as `bad`."""
    made = Hostile(tmp_path / "options.json")
    save_server("bad", made.row)
    return made


@pytest.fixture
def session(chatting: Chatting) -> Callable[..., OpenInterpreter]:
    """`session(setting=value)` is an interpreter whose code may call everything, unless told otherwise."""

    def make(*replies: Any, **settings: Any) -> OpenInterpreter:
        return chatting(*replies, **{"auto_run": True, **settings})[0]

    return make
