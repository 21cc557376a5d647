"""The one lazy way up: loads the terminal by name when something is to be shown."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.messages import Chunk


def _terminal() -> Any:
    return import_module("interpreter.terminal")


def show_chat(interpreter: OpenInterpreter, message: Any) -> Iterator[Chunk]:
    """Chat in the terminal, or show the answer to one message; yields every chunk."""
    yield from _terminal().show_chat(interpreter, message)


def show_chunks(interpreter: OpenInterpreter | None, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Show the chunks of a block while they pass."""
    yield from _terminal().show_chunks(interpreter, chunks)


def show_message(interpreter: OpenInterpreter, markdown: str) -> None:
    _terminal().show_message(interpreter, markdown)


def local_setup(interpreter: OpenInterpreter) -> None:
    """Ask which local model to use."""
    _terminal().local_setup(interpreter)
