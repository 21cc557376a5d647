"""A model behind a real socket, called through `Llm.reply`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from interpreter import BaseLanguage, OpenInterpreter
from interpreter.llm import Llm
from interpreter.messages import Chunk, Message
from model_server import ModelServer

SYSTEM: Message = {"role": "system", "type": "message", "content": "Be brief."}
HELLO: Message = {"role": "user", "type": "message", "content": "Hello"}


class Python(BaseLanguage):
    name = "Python"


class Shell(BaseLanguage):
    name = "Shell"


@dataclass
class ScriptedLlm:
    llm: Llm
    server: ModelServer

    def stream(self, *messages: Message) -> Iterator[Chunk]:
        return self.llm.reply([SYSTEM, *(messages or [HELLO])])

    def chunks(self, *messages: Message) -> list[Chunk]:
        """Return the whole reply without its usage."""
        return [chunk for chunk in self.stream(*messages) if chunk.get("format") != "usage"]

    def until_error(self, kind: type[Exception]) -> tuple[list[Chunk], Any]:
        """Return the chunks before the error, and the error."""
        chunks: list[Chunk] = []
        with pytest.raises(kind) as caught:
            chunks.extend(self.stream())
        return chunks, caught.value


Start = Callable[..., ScriptedLlm]


@pytest.fixture
def asking() -> Iterator[Start]:
    """`asking(reply, ..., server={...}, setting=value)` returns a model that answers with these replies."""
    opened: list[ScriptedLlm] = []

    def start(
        *replies: Any,
        server: dict[str, Any] | None = None,
        kind: type[ModelServer] = ModelServer,
        **settings: Any,
    ) -> ScriptedLlm:
        served = kind(replies, **(server or {})).start()
        interpreter = OpenInterpreter()
        interpreter.computer.languages = [Python, Shell]
        settings = {"api_base": served.base_url, "model": "gpt-4o", "api_key": "key"} | settings
        for name, value in settings.items():
            setattr(interpreter.llm, name, value)
        opened.append(ScriptedLlm(interpreter.llm, served))
        return opened[-1]

    yield start
    for each in opened:
        each.server.close()


def folded(chunks: Sequence[Chunk]) -> list[Any]:
    """Messages as strings, finished blocks as (language, code), an unfinished one as (code,)."""
    out: list[Any] = []
    code: list[str] | None = None
    for chunk in chunks:
        if chunk["type"] == "message":
            assert code is None, "text in the middle of a block"
            joins = bool(out) and isinstance(out[-1], str)
            out.append(out.pop() + chunk["content"] if joins else chunk["content"])
        elif chunk["type"] == "code" and chunk.get("end"):
            assert code is not None, "a block that ends without a start"
            out.append((chunk["format"], "".join(code)))
            code = None
        elif chunk["type"] == "code":
            code = [*(code or []), chunk["content"]]
    return out if code is None else [*out, ("".join(code),)]
