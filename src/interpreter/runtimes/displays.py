"""From what code displays (a MIME bundle) to chunks: what the user sees, and what the model can read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interpreter.messages import Chunk

IMAGES = {"image/png": "base64.png", "image/jpeg": "base64.jpeg"}
READABLE = ("text/markdown", "text/latex", "application/json")  # good for the user and the model alike
PICTORIAL = ("image/svg+xml", "application/javascript")  # for the user; the model gets the plain text


def display_chunks(data: dict[str, Any]) -> Iterator[Chunk]:
    """The chunks of one display, the richest form that we know first."""
    plain = data.get("text/plain", "")
    for mime, name in IMAGES.items():
        if mime in data:
            yield {"type": "image", "format": name, "content": "".join(data[mime]).replace("\n", "")}
            return
    if "text/html" in data:
        for chunk in output(plain):
            yield {**chunk, "also": "html"}  # what follows is the same for the user
        yield {"type": "code", "format": "html", "content": "".join(data["text/html"]), "recipient": "user"}
        return
    for mime in PICTORIAL:
        if mime in data:
            yield from output(plain)
            yield {**console("".join(data[mime])), "mime": mime, "recipient": "user"}
            return
    for mime in READABLE:
        if mime in data:
            yield {**console(line(text_form(data[mime]))), "mime": mime}
            return
    if plain or not data:
        yield from output(plain)
        return
    mime = next(iter(data))
    yield {**console(line(text_form(data[mime]))), "mime": mime}


def console(text: str) -> Chunk:
    return {"type": "console", "format": "output", "content": text}


def notice(text: str) -> Chunk:
    """Words of ours among what a block prints."""
    return {**console(text), "stream": "stderr", "ours": True}


def output(text: str) -> Iterator[Chunk]:
    if text:
        yield console(line(text))


def line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def text_form(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
