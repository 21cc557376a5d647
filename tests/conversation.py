"""A conversation with a scripted model, and a language that needs no process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interpreter import BaseLanguage, OpenInterpreter
from interpreter.messages import Chunk
from model_server import ModelServer

Chatting = Callable[..., tuple[OpenInterpreter, ModelServer]]


class Echo(BaseLanguage):
    """Prints its code; `raise WORD` raises, `hush` prints nothing."""

    name = "echo"

    def run(self, code: str) -> Iterator[Chunk]:
        yield {"type": "console", "format": "active_line", "content": 1}
        if code.startswith("raise "):
            raise ValueError(code[6:])
        if code != "hush":
            yield {"type": "console", "format": "output", "content": code + "\n"}


@pytest.fixture
def chatting() -> Iterator[Chatting]:
    """`chatting(reply, ..., setting=value)` returns an interpreter and its model server."""
    opened: list[tuple[OpenInterpreter, ModelServer]] = []

    def start(*replies: Any, **settings: Any) -> tuple[OpenInterpreter, ModelServer]:
        server = ModelServer(replies=list(replies)).start()
        interpreter = OpenInterpreter(**{"stream_all": True, **settings})
        interpreter.llm.api_base, interpreter.llm.api_key = server.base_url, "key"
        interpreter.llm.max_retries = 0
        interpreter.computer.languages.append(Echo)
        opened.append((interpreter, server))
        return interpreter, server

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()
