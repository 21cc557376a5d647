"""The one lazy way up: loads the terminal by name when something is to be shown."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk
    from interpreter.session import Event


def _terminal() -> Any:
    return import_module("interpreter.frontends.terminal.library")


def show_chat(interpreter: OpenInterpreter, message: Any) -> Generator[Chunk]:
    """Chat in the terminal, or show the answer to one message; yields every chunk."""
    yield from _terminal().show_chat(interpreter, message)


def show_events(interpreter: OpenInterpreter | None, events: Iterator[Event]) -> Generator[Chunk]:
    """Show the events of a block while they pass."""
    yield from _terminal().show_events(interpreter, events)


def show_message(interpreter: OpenInterpreter, markdown: str) -> None:
    _terminal().show_message(interpreter, markdown)


def local_setup(interpreter: OpenInterpreter) -> None:
    """Ask which local model to use."""
    _terminal().local_setup(interpreter)
